"""Detects whether the rate changed during a trial. Used for closed loops, and for parts of a trial from which a score
is computed."""

from __future__ import annotations

NOTABLE = 0.10
"""Smallest relative change within a trial that is reported. Smaller changes are not unusual between blocks either."""
CODE = "not-steady"
"""Code of the note about a change of the rate within a trial."""
_BATCHES = 20
_LEAST_IN_BATCH = 5
"""Minimum number of values in each batch. With fewer values, the means of batches would not be independent, as the test
assumes. MSER-5 also uses batches of five values (`stats.steadiness`). If successive values have a correlation of 0.5,
the test reports a change in 3% of steady trials of the minimum length, instead of 1%."""
_LEAST_VALUES = _BATCHES * _LEAST_IN_BATCH
LEAST_S = 0.1 * _LEAST_VALUES
"""Minimum length in seconds of a measurement that is tested. A column of a trial's time line has a value for each 100
ms."""


def is_long_enough(column: bytes) -> bool:
    """Returns whether the column has enough values to detect a change within the trial."""
    return len(column) >= _LEAST_VALUES * 8


def changed(column: bytes, elapsed_s: float, share: float = 1.0) -> dict[str, float]:
    """Returns how the rate in a column of the time line changed. Returns {} if it changed by less than `NOTABLE`.
    `change` is relative to the rate before. `after_s` is the time of a step. This time is missing if the rate drifted
    over the whole trial. `share`: fraction of the trial that is examined, from its start.
    """
    # numpy is imported here because loading it would slow down commands that only list workloads.
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
