"""Changes counted by a directory server."""

from __future__ import annotations

from typing import Any

from ironbench.workloads.directory import counts


class Counting:
    """A server that counts a change shortly after it has answered."""

    is_own = True

    def __init__(self, *seen: int) -> None:
        self._seen = list(seen)

    def counters(self) -> dict[str, int]:
        modified = self._seen.pop(0) if len(self._seen) > 1 else self._seen[0]
        return {name: modified if name == "modify" else 0 for name in counts.WRITES}


def _check(session: Any, summary: dict[str, int]) -> bool:
    (check,) = counts.changes(session, 100, counts.writes_after(session, 100, summary), summary)
    return check.passed


def test_a_change_that_the_server_counts_after_its_answer_is_waited_for() -> None:
    assert _check(Counting(128, 129, 130), {"commits": 29, "refused_changes": 1})


def test_a_change_that_the_server_never_counts_is_missed_and_one_too_many_is_seen(monkeypatch: Any) -> None:
    monkeypatch.setattr(counts, "_PATIENCE_S", 0.05)
    assert not _check(Counting(129), {"commits": 30})
    assert not _check(Counting(131), {"commits": 30})


def test_after_a_power_cut_nothing_is_waited_for() -> None:
    session: Any = Counting(5)
    assert counts.writes_after(session, 100, {"commits": 30, "power_cut": 1}) == 5
