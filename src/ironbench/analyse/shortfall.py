"""Whether fresh trials of the peak bear out the sweep, and if not, what was different about the machine."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ironbench.analyse.curve import Curve
from ironbench.model.record import Record
from ironbench.words import counted, in_percent

MOST_LOST = 0.1
"""Share by which confirmation may fall short of the sweep. The best of several noisy trials is too high by about one
to two standard deviations (order statistics of a normal sample: Harter 1961, Biometrika 48), 5 to 10 % on small
machines."""
NOTABLE = 0.05
"""Share of the machine's CPU time that is worth naming as a cause."""


def shortfall(curve: Curve) -> str:
    """A sentence when even the best confirmation trial is far below what the sweep promised, else an empty one."""
    if curve.peak is None or not curve.peak.confirmed:
        return ""
    peak = curve.peak
    promised, best = peak.chosen.centre, peak.throughput.high
    if best >= promised * (1 - MOST_LOST):
        return ""
    lost = 1 - peak.throughput.centre / promised
    swept = next(point.trials for point in curve.points if point.clients == peak.clients)
    less = f"confirmation trials of {counted(peak.clients, 'client')} gave {in_percent(lost)} less"
    return f"{less} than the sweep that chose them: {_cause(swept, peak.trials)}"


def _cause(swept: Sequence[Record], fresh: Sequence[Record]) -> str:
    before, after = _others(swept), _others(fresh)
    if before is None or after is None or after - before < NOTABLE:
        return "the system or the machine changed in between, so neither number is safe; repeat on a quiet machine"
    return (
        f"other programs and the hypervisor took {in_percent(after)} of the CPU time during them and "
        f"{in_percent(before)} before; repeat on a quiet machine"
    )


def _others(records: Sequence[Record]) -> float | None:
    """Median share of CPU time that went to neither server nor client nor us; None where nothing was measured."""
    shares = [record.budget.taken for record in records if record.budget.idle < 1.0]
    return statistics.median(shares) if shares else None
