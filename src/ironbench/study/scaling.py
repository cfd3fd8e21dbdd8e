"""Describes how a system's throughput grows with clients. Fits the scalability law, and finds its peak, knee and
misfit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.study.curve import alike

if TYPE_CHECKING:
    from ironbench.stats.scalability import Fit

MOST_CURVES = 8
"""Maximum number of systems in a report for which curves are drawn. A chart with more curves would be unreadable."""
BEYOND = 1.5
"""The curve is drawn up to this multiple of the largest measured number of clients, so that a fall beyond the peak is
visible."""
KNEE_WITHIN = 4
"""A small contention cannot be measured. A knee is therefore not reported if it is beyond this multiple of the largest
measured number of clients."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """A system's fitted curve."""

    name: str
    fit: Fit
    sentences: tuple[Note, ...]
    """Notes about the peak, the knee and the coherency parameter."""
    caveats: tuple[Note, ...]


def scaling(name: str, trials: Sequence[Record]) -> Scaling | None:
    """Fits the law to the comparable closed-loop trials of one system. Returns None with fewer than 4 numbers of
    clients."""
    from ironbench.stats.scalability import fitted  # needs numpy

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
    return Scaling(name, fit, tuple(_sentences(fit, alike(by_clients))), tuple(_caveats(fit)))


def scalings(systems: Sequence[tuple[str, Sequence[Record]]]) -> tuple[Scaling, ...]:
    """Fits the law to every system. Returns nothing if there are more than `MOST_CURVES` systems."""
    if len(systems) > MOST_CURVES:
        return ()
    results = (scaling(name, trials) for name, trials in systems)
    return tuple(one for one in results if one is not None)


def _sentences(fit: Fit, highest: Sequence[int]) -> Iterator[Note]:
    """Yields notes about a fitted curve. `highest`: numbers of clients whose measured throughput is indistinguishable
    from the highest."""
    curve = fit.curve
    if curve.falls:
        yield note("curve-falls", throughput=curve.gamma)
    elif math.isinf(curve.peak_clients):
        asymptote = curve.asymptote if math.isfinite(curve.asymptote) else None
        yield note("curve-rises", last=fit.last, asymptote=asymptote)
    else:
        peak = {"clients": curve.peak_clients, "throughput": curve.peak_throughput}
        yield note("curve-peak", **peak, last=fit.last, beyond=fit.peak_is_beyond)
    if curve.alpha < 0:
        yield note("curve-superlinear", contention=curve.alpha)
    elif curve.knee <= KNEE_WITHIN * fit.last:
        yield note("curve-knee", clients=curve.knee, contention=curve.alpha, measured=curve.knee <= fit.last)
    if not fit.peak_is_beyond and highest[-1] >= fit.last:
        yield note("curve-without-measured-fall", first=highest[0], last=fit.last)


def _caveats(fit: Fit) -> Iterator[Note]:
    from ironbench.stats.scalability import ENOUGH_DISTINCT

    if len(fit.residuals) < ENOUGH_DISTINCT:
        yield note("curve-of-few-points", points=len(fit.residuals), enough=ENOUGH_DISTINCT)
    if fit.misfit:
        worst = max(fit.residuals, key=lambda row: abs(math.log(row.measured / row.fitted)))
        yield note("curve-misfit", clients=worst.clients, missed=abs(worst.measured / worst.fitted - 1))
    if fit.peak_is_beyond and math.isfinite(fit.curve.peak_clients):
        yield note("curve-peak-beyond", clients=fit.curve.peak_clients, last=fit.last)
