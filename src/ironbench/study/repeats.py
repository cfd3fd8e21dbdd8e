"""Repeated values of one figure of a system, grouped so that their spread contains the variation from run to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean

from ironbench.model.cost import CostRange
from ironbench.model.record import Record
from ironbench.model.sample import sampled
from ironbench.stats.intervals import half_width


@dataclass(frozen=True, slots=True)
class Repeats:
    """Values above 0 of one metric."""

    of_trials: tuple[float, ...]
    values: tuple[float, ...]
    """Of runs, geometric means of their trials; the trials themselves where these are independent repeats."""
    runs: int
    """Independent repeats: the length of `values`."""

    def range(self, centre: float) -> CostRange:
        """`centre` with its 95% confidence interval: of runs, or of trials where there is a single run (see `runs`).
        The interval is Student's t of the logarithms; without two values it is unbounded."""
        known = self.values if self.runs > 1 else self.of_trials
        if len(known) < 2:
            return CostRange(0.0, math.inf, centre)
        if min(known) == max(known):
            return CostRange(min(known[0], centre), max(known[0], centre), centre)
        logs = [math.log(value) for value in known]
        mean, half = fmean(logs), half_width(logs)
        return CostRange(min(math.exp(mean - half), centre), max(math.exp(mean + half), centre), centre)


def repeats(trials: Sequence[Record], metric: str, interleaved: bool = False) -> Repeats:
    """`interleaved`: the trials are blocks of a lab that measured all systems in turn, each an independent repeat.

    Otherwise a run is the repeat: its trials share the start of the server and the state of the machine, so they vary
    less than runs do.
    """
    runs: dict[str, list[float]] = {}
    for record in trials:
        value = record.metrics.get(metric, 0.0)
        if 0 < value < math.inf and sampled(record, metric):
            runs.setdefault(record.series, []).append(value)
    flat = tuple(value for run in runs.values() for value in run)
    values = flat if interleaved else tuple(map(geometric_mean, runs.values()))
    return Repeats(flat, values, len(values))
