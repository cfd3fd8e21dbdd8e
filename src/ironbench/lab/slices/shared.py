"""Systems of a block that work on the same tables: the checks of each see what all of them have done."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

Summary = Mapping[str, Any]
_SUMMED = (
    *("commits", "server_commits_uncertain", "connections_lost"),
    *("observer_commits", "observer_commits_uncertain", "observer_connections"),
    *("clients", "waiting_clients", "elapsed_s", "warmup_s"),
)
"""Fields of a summary that checks hold against the data (`workloads.commits` and those of each workload)."""
_OF_SCRIPTS = ("completed", "transactions", "failed")
_STATEMENTS = 100
"""At most, of each further system: what its own session asks before it is driven and for its checks."""


class Shared:
    """Of one block and one database. Checks begin when the clients of all of them are gone."""

    def __init__(self, systems: int) -> None:
        self._systems = systems
        self._summaries: list[Summary] = []
        self._given_up = False
        self._changed = threading.Condition()

    def whole(self, summary: Summary) -> Summary | None:
        """Waits until every system has ended; what they have done together. None: one of them never will."""
        with self._changed:
            self._summaries.append(summary)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._given_up or len(self._summaries) == self._systems)
            return together(self._summaries) if len(self._summaries) == self._systems else None

    def give_up(self) -> None:
        """One of them has ended without its end, so that nothing can be checked."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()


def together(summaries: Sequence[Summary]) -> Summary:
    """The work of all of them as that of one trial, as far as checks ask for it."""
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
    return found
