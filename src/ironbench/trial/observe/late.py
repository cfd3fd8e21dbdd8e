"""Handles server counters that are published with a delay. Such counters are left out if they miss too much of a
trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ironbench.model.note import Note, note
from ironbench.model.observation import Observation

MISSED = 0.10
"""If the server's counters miss a larger fraction of a trial than this, there is a warning."""
_MOST = 0.50
"""If the counters miss a larger fraction of a trial than this, they are not shown."""
CODE = "counts-late"


def published(observation: Observation, summary: Mapping[str, Any], scripts: bool) -> Observation:
    """Returns the observation without the server's counters if these miss too much. `scripts`: whether clients ran
    scripts, so that the server counted each transaction at least once."""
    late_s, window_s = max(observation.late.values(), default=0.0), float(summary["elapsed_s"])
    if not late_s:
        return observation
    why: Note | None = None
    if late_s / window_s > _MOST:
        why = note(CODE, late_s=late_s, window_s=window_s)
    elif scripts and (done := _done(summary)):
        share = _ended_per_s(observation) * window_s / done
        if 1.0 - share > max(MISSED, late_s / window_s):
            why = note(CODE, published=share, transactions=done)
    if why is None:
        return observation
    metrics = {name: value for name, value in observation.metrics.items() if name not in observation.late}
    series = tuple(one for one in observation.series if one.name not in observation.late)
    return replace(observation, metrics=metrics, series=series, withheld=why)


def late_note(observation: Observation, window_s: float) -> Note | None:
    """Returns the warning about the delayed counters. Returns None if there is none."""
    late_s = max((late_s for name, late_s in observation.late.items() if name in observation.metrics), default=0.0)
    if observation.withheld or late_s <= MISSED * window_s:
        return observation.withheld
    return note(CODE, late_s=late_s, window_s=window_s, error=late_s / window_s)


def _ended_per_s(observation: Observation) -> float:
    return sum(observation.metrics.get(f"engine_{how}_per_s", 0.0) for how in ("commits", "rollbacks"))


def _done(summary: Mapping[str, Any]) -> int:
    """Returns the number of transactions. Scripts that send no statements are not included."""
    scripts = summary.get("scripts")
    if not scripts:
        return int(summary.get("transactions", 0))
    return sum(int(one["transactions"]) for one in scripts if one.get("statements", 1))
