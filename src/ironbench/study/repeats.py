"""Groups repeated values of a metric so that their variation includes the variation between runs."""

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
    """Positive values of one metric."""

    of_trials: tuple[float, ...]
    values: tuple[float, ...]
    """Geometric means of the runs' trials, or the trials themselves if they are independent repeats."""
    runs: int
    """Number of runs."""

    def range(self, centre: float) -> CostRange:
        """Returns `centre` with its 95% confidence interval: over runs, or over trials if there is only one run.

        The interval is Student's t of the logarithms; with fewer than two values it is unbounded.
        """
        known = self.values if self.runs > 1 else self.of_trials
        if len(known) < 2:
            return CostRange(0.0, math.inf, centre)
        if min(known) == max(known):
            return CostRange(min(known[0], centre), max(known[0], centre), centre)
        logs = [math.log(value) for value in known]
        mean, half = fmean(logs), half_width(logs)
        return CostRange(min(math.exp(mean - half), centre), max(math.exp(mean + half), centre), centre)


def repeats(trials: Sequence[Record], metric: str, interleaved: bool = False) -> Repeats:
    """Groups the trials' values. `interleaved`: the trials are blocks of a lab that measured all systems in turn.

    Blocks of a lab are independent repeats. Otherwise a run is the repeat: its trials share the start of the server and
    the state of the machine, so they vary less than runs do.
    """
    runs: dict[str, list[float]] = {}
    for record in trials:
        value = record.metrics.get(metric, 0.0)
        if 0 < value < math.inf and sampled(record, metric):
            runs.setdefault(record.series, []).append(value)
    flat = tuple(value for run in runs.values() for value in run)
    values = flat if interleaved else tuple(map(geometric_mean, runs.values()))
    return Repeats(flat, values, len(values))
