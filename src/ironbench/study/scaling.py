"""What the scalability laws predict for a system, as sentences and as a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.model.record import Record
from ironbench.study.curve import alike
from ironbench.words import counted, grouped, in_percent, percents

if TYPE_CHECKING:
    from ironbench.stats.scalability import Band, Estimate, Fit

MOST_CURVES = 8
"""Systems of one report that get a curve: a fit takes a quarter of a second, and a chart holds no more."""
_STEPS = 40
_FAR = 10
"""An interval that ends beyond so many times its value bounds nothing."""
_BEYOND = 1.5
"""The curve is drawn this many times as far as was measured, that its end or its fall can be seen."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """A system's fitted curve."""

    name: str
    fit: Fit
    curve: tuple[Band, ...]
    """To draw: up to the most clients measured, and a prediction beyond."""
    sentences: tuple[str, ...]
    cautions: tuple[str, ...]


def scaling(name: str, trials: Sequence[Record]) -> Scaling | None:
    """Of closed-loop trials that may be compared; None with fewer than 4 numbers of clients."""
    from ironbench.stats.scalability import fitted

    points = [
        (float(trial.cell.load.clients), trial.metrics["throughput"])
        for trial in trials
        if trial.status.comparable and trial.cell.load.rate is None and "throughput" in trial.metrics
    ]
    fit = fitted(points)
    if fit is None:
        return None
    by_clients: dict[int, list[float]] = {}
    for clients, throughput in points:
        by_clients.setdefault(round(clients), []).append(throughput)
    sentences = _sentences(fit, alike(by_clients))
    return Scaling(name, fit, tuple(fit.band(_grid(fit))), tuple(sentences), tuple(_cautions(fit)))


def scalings(systems: Sequence[tuple[str, Sequence[Record]]]) -> tuple[Scaling, ...]:
    """Of every system where there are few enough of them to be drawn."""
    if len(systems) > MOST_CURVES:
        return ()
    results = (scaling(name, trials) for name, trials in systems)
    return tuple(one for one in results if one is not None)


def _grid(fit: Fit) -> list[float]:
    """Evenly spaced, and every number of clients that was measured, so that both parts of the curve meet."""
    end = fit.last * _BEYOND
    even = [fit.first + (end - fit.first) * step / _STEPS for step in range(_STEPS + 1)]
    return sorted({*even, *(row.clients for row in fit.residuals)})


def _sentences(fit: Fit, highest: Sequence[int]) -> list[str]:
    """`highest`: numbers of clients whose measured throughput cannot be told apart from the highest."""
    return [_peak(fit), _knee(fit), _coherency(fit, highest)]


def _peak(fit: Fit) -> str:
    peak, throughput = fit.peak_clients, fit.peak_throughput
    if fit.curve.falls:
        if peak.high == peak.value:
            return f"The fitted curve falls from the first client on: one alone does most, {_rate(throughput)}."
        end = f"reaches to {_count(peak.high)} clients" if math.isfinite(peak.high) else "has no upper end"
        return f"The fitted curve is highest at 1 client with {_rate(throughput)}; the 95 % interval of its peak {end}."
    if math.isinf(peak.value):
        rising = f" towards an asymptote of {_rate(throughput)}" if math.isfinite(throughput.value) else ""
        end = f"; its peak, if there is one, lies at {_up(peak.low)} clients or more" if _says(peak.low) else ""
        return f"The fitted curve still rises at {_count(fit.last)} clients{rising}{end}."
    sentence = f"The fitted curve peaks at {_estimate(peak)} with {_rate(throughput)}"
    if fit.peak_is_beyond:
        beyond = f"beyond the {_count(fit.last)} clients that were measured"
        return f"{sentence}: {beyond}, so measure there before you rely on it."
    if not fit.peak_is_certain:
        return f"{sentence}; the interval reaches beyond the {_count(fit.last)} clients that were measured."
    return f"{sentence}."


def _knee(fit: Fit) -> str:
    knee = fit.knee
    if fit.superlinear:
        return (
            "It is superlinear: contention comes out negative, so several clients get more out of the system than as "
            "many times one (shared caches, batched log writes). The law does not explain that, and its predictions "
            "beyond the measured range are worth little."
        )
    if not math.isfinite(knee.high):
        least = f"; if there is one, it lies at {_up(knee.low)} clients or more" if _says(knee.low) else ""
        return f"Contention cannot be told from none, so no knee is named{least}."
    where = "" if knee.value <= fit.last else " (beyond what was measured)"
    return (
        f"Its knee lies at {_estimate(knee)}{where}: up to there more clients mostly work, beyond it they "
        f"mostly wait. Contention is {share_of_work(fit.alpha)} of the work."
    )


def _coherency(fit: Fit, highest: Sequence[int]) -> str:
    if fit.beta.low > 0 and highest[-1] >= fit.last:
        flat = f"from {counted(highest[0], 'client')} to {_count(fit.last)}, the most that were measured"
        return f"No fall of throughput was measured {flat}: only the fitted curve falls beyond its peak."
    if fit.beta.low > 0:
        return "Clients also cost each other something by keeping in step: past the peak more of them do less."
    return (
        "A cost of keeping clients in step (coherency) cannot be told from none: a curve that never falls "
        "(Amdahl's law) fits as well."
    )


def _cautions(fit: Fit) -> list[str]:
    from ironbench.stats.scalability import ENOUGH_DISTINCT

    sentences = []
    distinct = len(fit.residuals)
    if distinct < ENOUGH_DISTINCT:
        sentences.append(f"the curve rests on {distinct} numbers of clients; {ENOUGH_DISTINCT} or more are advisable")
    if fit.misfit:
        worst = max(fit.residuals, key=lambda row: abs(math.log(row.measured / row.fitted)))
        sentences.append(
            "the scalability law does not follow this system: its curve misses the trials by more than repeats differ, "
            f"most at {_count(worst.clients)} clients (by {in_percent(abs(worst.measured / worst.fitted - 1))}); "
            "intervals are widened by it, and the measured points count, not the curve"
        )
    if fit.peak_is_beyond and math.isfinite(fit.peak_clients.value):
        sentences.append(
            f"the predicted peak at {_count(fit.peak_clients.value)} clients is beyond the measured range, "
            f"which ends at {_count(fit.last)}"
        )
    return sentences


def _says(least: float) -> bool:
    """Whether a lower end excludes something: every number of clients is 1 or more."""
    return 1 < least < math.inf


def _estimate(estimate: Estimate) -> str:
    low, high = _count(estimate.low), _count(estimate.high) if math.isfinite(estimate.high) else ""
    interval = f"95 % interval {low} to {high}" if high else f"95 % interval from {low} on, with no upper end"
    return f"{_count(estimate.value)} clients ({interval})"


def _rate(estimate: Estimate) -> str:
    bounded = estimate.high < _FAR * estimate.value
    low, high = grouped(estimate.low), grouped(estimate.high) if bounded else ""
    interval = f"{low} to {high}" if high else f"from {low} on, with no upper end that these trials can tell"
    return f"{grouped(estimate.value)}/s ({interval})"


def share_of_work(estimate: Estimate) -> str:
    """Of contention: below 0 where a system is superlinear."""
    return f"{in_percent(estimate.value)} ({percents(estimate.low)} to {in_percent(estimate.high)})"


def _count(clients: float) -> str:
    return grouped(clients) if clients >= 9.95 or clients == round(clients) else f"{clients:.1f}"


def _up(clients: float) -> str:
    return grouped(math.ceil(clients))
