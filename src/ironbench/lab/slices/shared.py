"""Combines the data checks of systems that use the same tables. A check compares the tables with the work of all these
systems."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Summary = Mapping[str, Any]
_SUMMED = (
    *("commits", "server_commits_uncertain", "connections_lost"),
    *("observer_commits", "observer_commits_uncertain", "observer_connections"),
    *("clients", "waiting_clients", "elapsed_s", "warmup_s"),
)
"""Fields of a trial's summary that data checks read (`workloads.commit_check` and the checks of each workload)."""
_OF_SCRIPTS = ("completed", "transactions", "failed")
_STATEMENTS = 100
"""Maximum number of statements in ironbench's own session, for each additional system. The statements are executed
before the start and for checks."""


class SharedChecks:
    """Synchronises the systems of a block that use the same database. Data checks start only after the clients of all
    these systems have finished."""

    def __init__(self, systems: int) -> None:
        self._systems = systems
        self._summaries: list[Summary] = []
        self._given_up = False
        self._changed = threading.Condition()

    def whole(self, summary: Summary) -> Summary | None:
        """Waits until every system has ended. Returns the combined summary of all systems. Returns None if one
        failed."""
        with self._changed:
            self._summaries.append(summary)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._given_up or len(self._summaries) == self._systems)
            return combined(self._summaries) if len(self._summaries) == self._systems else None

    def give_up(self) -> None:
        """Reports that one of the systems failed, so that nothing can be checked."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()


def combined(summaries: Sequence[Summary]) -> Summary:
    """Combines the systems' summaries into a single summary with the fields that checks need."""
    first, *others = summaries
    found = dict(first)
    for name in _SUMMED:
        found[name] = sum(one.get(name) or 0 for one in summaries)
    found["observer_commits_uncertain"] += _STATEMENTS * len(others)
    scripts: dict[str, dict[str, Any]] = {}
    for script in (one for summary in summaries for one in summary["scripts"]):
        known = scripts.setdefault(script["name"], {**script, **dict.fromkeys(_OF_SCRIPTS, 0)})
        for name in _OF_SCRIPTS:
            known[name] += script.get(name) or 0
    found["scripts"] = list(scripts.values())
    figures = Counter[str]()
    for summary in summaries:
        figures.update(summary.get("figures", {}))
    found["figures"] = dict(figures)
    return found
