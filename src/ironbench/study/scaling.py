"""Predictions of the scalability law for a system: the fitted curve, and notes on its peak, knee and misfit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.study.curve import alike

if TYPE_CHECKING:
    from ironbench.stats.scalability import Band, BoundedValue, Fit

MOST_CURVES = 8
"""Maximum number of systems with a curve: each fit takes 0.25 s, and a chart has no space for more."""
_STEPS = 40
_BEYOND = 1.5
"""How far the curve is drawn, as a multiple of the measured range, to show its limit or decline."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Fitted curve of one system."""

    name: str
    fit: Fit
    curve: tuple[Band, ...]
    """Points to draw: up to the most clients measured, and a prediction beyond."""
    sentences: tuple[Note, ...]
    """Notes on peak, knee and coherency."""
    cautions: tuple[Note, ...]


def scaling(name: str, trials: Sequence[Record]) -> Scaling | None:
    """Fits the comparable closed-loop trials; None with fewer than 4 numbers of clients."""
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
    notes = (_peak(fit), _knee(fit), _coherency(fit, alike(by_clients)))
    return Scaling(name, fit, tuple(fit.band(_grid(fit))), notes, tuple(_cautions(fit)))


def scalings(systems: Sequence[tuple[str, Sequence[Record]]]) -> tuple[Scaling, ...]:
    """Fits every system, unless there are too many to draw."""
    if len(systems) > MOST_CURVES:
        return ()
    results = (scaling(name, trials) for name, trials in systems)
    return tuple(one for one in results if one is not None)


def _grid(fit: Fit) -> list[float]:
    """Evenly spaced values plus all measured numbers of clients, so that measured and predicted parts connect."""
    end = fit.last * _BEYOND
    even = [fit.first + (end - fit.first) * step / _STEPS for step in range(_STEPS + 1)]
    return sorted({*even, *(row.clients for row in fit.residuals)})


def _peak(fit: Fit) -> Note:
    peak, throughput = fit.peak_clients, _bounds(fit.peak_throughput)
    if fit.curve.falls and peak.high == peak.value:
        return note("curve-falls", throughput=throughput)
    if fit.curve.falls:
        return note("curve-highest-at-one-client", throughput=throughput, high=_finite(peak.high))
    if math.isinf(peak.value):
        asymptote = throughput if math.isfinite(fit.peak_throughput.value) else None
        return note("curve-rises", last=fit.last, asymptote=asymptote, least=_excluding(peak.low))
    beyond, certain = fit.peak_is_beyond, fit.peak_is_certain
    return note(
        "curve-peak", clients=_bounds(peak), throughput=throughput, last=fit.last, beyond=beyond, certain=certain
    )


def _knee(fit: Fit) -> Note:
    knee = fit.knee
    if fit.superlinear:
        return note("curve-superlinear")
    if not math.isfinite(knee.high):
        return note("curve-without-knee", least=_excluding(knee.low))
    return note("curve-knee", clients=_bounds(knee), contention=_bounds(fit.alpha), measured=knee.value <= fit.last)


def _coherency(fit: Fit, highest: Sequence[int]) -> Note:
    """`highest`: numbers of clients whose measured throughput is indistinguishable from the highest."""
    if fit.beta.low > 0 and highest[-1] >= fit.last:
        return note("curve-without-measured-fall", first=highest[0], last=fit.last)
    if fit.beta.low > 0:
        return note("curve-coherency")
    return note("curve-without-coherency")


def _cautions(fit: Fit) -> Iterator[Note]:
    from ironbench.stats.scalability import ENOUGH_DISTINCT

    if len(fit.residuals) < ENOUGH_DISTINCT:
        yield note("curve-of-few-points", points=len(fit.residuals), enough=ENOUGH_DISTINCT)
    if fit.misfit:
        worst = max(fit.residuals, key=lambda row: abs(math.log(row.measured / row.fitted)))
        yield note("curve-misfit", clients=worst.clients, missed=abs(worst.measured / worst.fitted - 1))
    if fit.peak_is_beyond and math.isfinite(fit.peak_clients.value):
        yield note("curve-peak-beyond", clients=fit.peak_clients.value, last=fit.last)


def _bounds(estimate: BoundedValue) -> tuple[float, float, float | None]:
    """Returns the value and its 95% confidence interval; an upper bound of None is unbounded."""
    return estimate.value, estimate.low, _finite(estimate.high)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _excluding(least: float) -> float | None:
    """Returns a lower bound only if it excludes something: every number of clients is at least 1."""
    return least if 1 < least < math.inf else None
