"""Fits the scalability laws to trials at several numbers of clients, with intervals that say what the fit cannot tell.

Trials of a busy system scatter in proportion to their throughput, so its logarithm is fitted. Least squares on
throughput itself, as in the R package `usl`, serves to compare with published fits; where trials scatter in proportion
its 95 % intervals may hold in 72 % only. Intervals are profile intervals: all values of a quantity for which the best
curve through it fits not significantly worse, by the F distribution (Bates and Watts, "Nonlinear Regression Analysis
and Its Applications", Wiley 1988, section 6.1). Unlike intervals from the covariance they may be lopsided and may have
no upper end, as that of a peak has when trials end before it. Chosen over the bootstrap because with 6 to 10 points
percentiles of resampled residuals are too narrow (Hesterberg, The American Statistician 69, 2015).
`python -m bench scalability` simulates how often they hold.

No system follows the law exactly. Where repeats show that the curve misses the means by more than repeats differ from
each other (lack-of-fit test, Draper and Smith, "Applied Regression Analysis", Wiley 1998, section 2.1), that misfit and
its degrees of freedom replace the spread of repeats, and all intervals widen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ironbench.stats import usl
from ironbench.stats.intervals import t_quantile
from ironbench.stats.usl import Usl, Vector, denominator

LEAST_DISTINCT = 4
"""Numbers of clients: three parameters and one degree of freedom."""
ENOUGH_DISTINCT = 6
"""Below this the curve's shape rests on too little (workloads of the `usl` package's manual have 7 and more)."""
MISFIT_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class BoundedValue:
    """A value with its 95 % interval; an end may be infinite."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Residual:
    """Measured throughput at one number of clients and that of the curve, 1/s."""

    clients: float
    measured: float
    """Mean of the trials."""
    fitted: float
    trials: int


@dataclass(frozen=True, slots=True)
class Band:
    """The curve with its 95 % interval at one number of clients, 1/s."""

    clients: float
    fitted: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A law fitted to one system's trials."""

    law: str
    """`usl`, or `amdahl`: without coherency."""
    curve: Usl
    alpha: BoundedValue
    beta: BoundedValue
    gamma: BoundedValue
    knee: BoundedValue
    """Clients; infinite where there is no contention."""
    peak_clients: BoundedValue
    peak_throughput: BoundedValue
    """1/s. Of Amdahl's law: the asymptote."""
    residual_error: float
    """Standard deviation of trials around the curve: a share where `proportional`, else in 1/s."""
    error: float
    """What the intervals are made from: `residual_error`, or the misfit where that is larger."""
    freedom: int
    proportional: bool
    misfit: bool
    """Whether the curve misses the means by more than repeats differ."""
    residuals: tuple[Residual, ...]
    trials: int

    @property
    def first(self) -> float:
        return self.residuals[0].clients

    @property
    def last(self) -> float:
        """Most clients measured; beyond them the curve is a prediction."""
        return self.residuals[-1].clients

    @property
    def superlinear(self) -> bool:
        """Surely: contention is negative even at the upper end of its interval."""
        return self.alpha.high < 0

    @property
    def falls(self) -> bool:
        """Whether the curve falls from the fewest clients measured on."""
        return self.curve.falls or self.peak_clients.value < self.first

    @property
    def peak_is_beyond(self) -> bool:
        return self.peak_clients.value > self.last

    @property
    def peak_is_certain(self) -> bool:
        """Whether its interval lies within what was measured."""
        return self.peak_clients.high <= self.last

    def band(self, clients: Sequence[float]) -> list[Band]:
        """By the delta method (Bates and Watts 1988, section 2.3): X(N) ± t · standard error of the curve there."""
        at, measured = np.array(clients, dtype=float), np.array([row.clients for row in self.residuals])
        fitted, slopes, jacobian = self.curve.throughput(at), self._slopes(at), self._slopes(measured)
        repeats = np.array([row.trials for row in self.residuals])
        spread = np.linalg.pinv((jacobian * repeats[:, None]).T @ jacobian)
        half = t_quantile(0.975, self.freedom) * self.error * np.sqrt(np.einsum("ij,jk,ik->i", slopes, spread, slopes))
        if self.proportional:
            return _bands(at, fitted, fitted * np.exp(-half), fitted * np.exp(half))
        return _bands(at, fitted, np.maximum(0.0, fitted - half), fitted + half)

    def _slopes(self, clients: Vector) -> Vector:
        slopes = gradient(clients, self.curve)
        if self.proportional:
            slopes = slopes / self.curve.throughput(clients)[:, None]
        return slopes[:, [0, 2]] if self.law == "amdahl" else slopes


def _bands(*columns: Vector) -> list[Band]:
    return [Band(*map(float, row)) for row in zip(*columns, strict=True)]


def gradient(clients: Vector, curve: Usl) -> Vector:
    """∂X/∂(α, β, γ), a row for each number of clients."""
    below = denominator(clients, curve.alpha, curve.beta)
    by_alpha = -curve.gamma * clients * (clients - 1) / below**2
    return np.column_stack([by_alpha, by_alpha * clients, clients / below])


def fitted(points: Sequence[tuple[float, float]], law: str = "usl", *, proportional: bool = True) -> Fit | None:
    """The law's curve through (clients, throughput) of single trials; None below 4 numbers of clients."""
    usable = tuple((float(n), float(x)) for n, x in points if n > 0 and x > 0 and math.isfinite(x))
    return _fitted(usable, law, proportional)


@lru_cache(maxsize=256)  # sections and formats of one page ask for the same curves, and a fit takes 0.1 to 0.4 s
def _fitted(usable: tuple[tuple[float, float], ...], law: str, proportional: bool) -> Fit | None:
    distinct = sorted({n for n, _ in usable})
    if len(distinct) < LEAST_DISTINCT:
        return None
    clients, throughput = np.array([n for n, _ in usable], float), np.array([x for _, x in usable], float)
    problem = usl.Problem(clients, throughput, law == "amdahl", proportional)
    best = problem.solved()
    error, freedom, misfit = _error(problem, best, distinct)
    within = usl.Region(problem, best, error, freedom)
    curve = best.curve
    alpha = _estimate(curve.alpha, within.interval("alpha", curve.alpha))
    beta = BoundedValue(0.0, 0.0, 0.0) if problem.amdahl else _estimate(curve.beta, within.interval("beta", curve.beta))
    gamma = _estimate(curve.gamma, within.interval("gamma", curve.gamma))
    return Fit(
        law=law,
        curve=curve,
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        knee=BoundedValue(curve.knee, _inverse(alpha.high), _inverse(alpha.low)),
        peak_clients=_peak_clients(problem, curve, within),
        peak_throughput=_peak_throughput(curve, within, gamma),
        residual_error=math.sqrt(best.squares / max(1, len(usable) - problem.parameters)),
        error=error,
        freedom=freedom,
        proportional=proportional,
        misfit=misfit,
        residuals=tuple(_residual(n, throughput[clients == n], curve) for n in distinct),
        trials=len(usable),
    )


def _peak_clients(problem: usl.Problem, curve: Usl, within: usl.Region) -> BoundedValue:
    """Profiled as 1/N, which stays finite where the peak recedes to infinity."""
    if problem.amdahl:
        return BoundedValue(math.inf, math.inf, math.inf)
    if curve.falls and not within.holds("peak_inverse", 1.0):
        return BoundedValue(1.0, 1.0, 1.0)
    low, high = within.interval("peak_inverse", 1 / curve.peak_clients)
    return BoundedValue(curve.peak_clients, _inverse(high), _inverse(low))


def _peak_throughput(curve: Usl, within: usl.Region, gamma: BoundedValue) -> BoundedValue:
    """Of a curve that falls from one client on: that of one client."""
    return gamma if curve.falls else _estimate(curve.peak_throughput, within.interval("peak", curve.peak_throughput))


def _estimate(value: float, interval: tuple[float, float]) -> BoundedValue:
    return BoundedValue(value, *interval)


def _inverse(value: float) -> float:
    return 1 / value if value > 1e-12 else math.inf


def _residual(clients: float, throughput: Vector, curve: Usl) -> Residual:
    return Residual(clients, float(throughput.mean()), curve.at(clients), len(throughput))


def _error(problem: usl.Problem, best: usl.Solution, distinct: Sequence[float]) -> tuple[float, int, bool]:
    """Standard error of a trial, its degrees of freedom, and whether it is the misfit that it is made of."""
    from scipy import special

    n, p = len(problem.clients), problem.parameters
    groups = [problem.values[problem.clients == at] for at in distinct]
    pure = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    lack, lack_freedom, pure_freedom = max(0.0, best.squares - pure), len(distinct) - p, n - len(distinct)
    pooled = math.sqrt(best.squares / (n - p))
    if pure_freedom < 1 or pure <= 0:
        return pooled, n - p, False
    f = (lack / lack_freedom) / (pure / pure_freedom)
    if special.fdtrc(lack_freedom, pure_freedom, f) >= MISFIT_LEVEL:
        return pooled, n - p, False
    return math.sqrt(lack / lack_freedom), lack_freedom, True
