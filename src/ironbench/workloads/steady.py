"""Whether a rate stayed as it was within a trial: asked of every closed loop, and of what a score counts."""

from __future__ import annotations

NOTABLE = 0.10
"""Change within a trial that is reported; the spread of blocks covers smaller ones."""
CODE = "not-steady"
"""Code of the note on such a change."""
_BATCHES = 20
_LEAST_BUCKETS = 100
"""Five in each batch at least."""
LEAST_S = 0.1 * _LEAST_BUCKETS
"""A column of a trial's timeline has a value for each 100 ms."""


def is_long_enough(column: bytes) -> bool:
    """Whether a change within the trial could be noticed."""
    return len(column) >= _LEAST_BUCKETS * 8


def changed(column: bytes, elapsed_s: float, share: float = 1.0) -> dict[str, float]:
    """By how much what a column of the timeline counts changed, where that is `NOTABLE` or more; empty: it did not.

    `change`: relative to the rate before; `after_s`: the time of a step, absent for a drift over the whole trial.
    `share`: of the time, from its start, that is looked at.
    """
    # Numpy is not there for free, and whoever lists workloads wants none.
    import numpy as np

    from ironbench.stats import steadiness

    counts = np.frombuffer(column, dtype="<f8")
    counts = counts[: int(len(counts) * share)]
    shift = steadiness.change(steadiness.batch_means(counts, _BATCHES))
    if shift is None or not shift.before or abs(shift.after / shift.before - 1) < NOTABLE:
        return {}
    change = float(shift.after / shift.before - 1)
    if shift.kind == "drift":
        return {"change": change}
    return {"change": change, "after_s": float(shift.place / _BATCHES * share * elapsed_s)}
