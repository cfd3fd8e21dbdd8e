"""Fits scalability laws to trials with several numbers of clients, with confidence intervals of all quantities.

Throughput of a busy system varies in proportion to its size, so its logarithm is fitted. A least squares fit of
throughput itself, as in the R package `usl`, is available for comparison with published fits; if variation is
proportional, its 95% intervals may cover the true value in only 72% of cases. Intervals are profile intervals: all
values of a quantity for which the best curve with that value does not fit significantly worse, by the F distribution
(Bates and Watts, "Nonlinear Regression Analysis and Its Applications", Wiley 1988, section 6.1). Unlike intervals from
the covariance matrix, they may be asymmetric and unbounded above, for example the interval of a peak that lies beyond
the measured numbers of clients. The bootstrap was rejected because with 6 to 10 points the percentiles of resampled
residuals are too narrow (Hesterberg, The American Statistician 69, 2015). `python -m bench scalability` simulates the
coverage.

No system follows the law exactly. If repeats show that the curve misses the means by more than the variation between
repeats (lack-of-fit test, Draper and Smith, "Applied Regression Analysis", Wiley 1998, section 2.1), the misfit and its
degrees of freedom replace the variation between repeats, and all intervals become wider.
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
"""Minimum number of different numbers of clients: three parameters and one degree of freedom."""
ENOUGH_DISTINCT = 6
"""With fewer numbers of clients, the shape of the curve is poorly determined (workloads in the `usl` package's manual
have at least 7)."""
MISFIT_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class BoundedValue:
    """A value with its 95% confidence interval; a bound may be infinite."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Residual:
    """Throughput at one number of clients, measured and by the curve, in 1/s."""

    clients: float
    measured: float
    """Mean of the trials."""
    fitted: float
    trials: int


@dataclass(frozen=True, slots=True)
class Band:
    """The curve with its 95% confidence interval at one number of clients, in 1/s."""

    clients: float
    fitted: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A law fitted to the trials of one system."""

    law: str
    """`usl`, or `amdahl`: without the coherency term."""
    curve: Usl
    alpha: BoundedValue
    beta: BoundedValue
    gamma: BoundedValue
    knee: BoundedValue
    """Clients; infinite without contention."""
    peak_clients: BoundedValue
    peak_throughput: BoundedValue
    """In 1/s. For Amdahl's law: the asymptote."""
    residual_error: float
    """Standard deviation of trials around the curve: a fraction if `proportional`, else in 1/s."""
    error: float
    """Basis of the intervals: `residual_error`, or the misfit if it is larger."""
    freedom: int
    proportional: bool
    misfit: bool
    """Whether the curve misses the means by more than the variation between repeats."""
    residuals: tuple[Residual, ...]
    trials: int

    @property
    def first(self) -> float:
        return self.residuals[0].clients

    @property
    def last(self) -> float:
        """Largest number of clients measured; beyond it, the curve is a prediction."""
        return self.residuals[-1].clients

    @property
    def superlinear(self) -> bool:
        """Whether contention is certainly negative, even at the upper bound of its interval."""
        return self.alpha.high < 0

    @property
    def falls(self) -> bool:
        """Whether the curve falls from the smallest measured number of clients on."""
        return self.curve.falls or self.peak_clients.value < self.first

    @property
    def peak_is_beyond(self) -> bool:
        return self.peak_clients.value > self.last

    @property
    def peak_is_certain(self) -> bool:
        """Whether the upper bound of the peak is within the measured range."""
        return self.peak_clients.high <= self.last

    def band(self, clients: Sequence[float]) -> list[Band]:
        """Confidence band by the delta method (Bates and Watts 1988, section 2.3): X(N) ± t · standard error of the
        curve."""
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
    """∂X/∂(α, β, γ), with a row for each number of clients."""
    below = denominator(clients, curve.alpha, curve.beta)
    by_alpha = -curve.gamma * clients * (clients - 1) / below**2
    return np.column_stack([by_alpha, by_alpha * clients, clients / below])


def fitted(points: Sequence[tuple[float, float]], law: str = "usl", *, proportional: bool = True) -> Fit | None:
    """Fits the law to (clients, throughput) of single trials; None for fewer than 4 different numbers of clients."""
    usable = tuple((float(n), float(x)) for n, x in points if n > 0 and x > 0 and math.isfinite(x))
    return _fitted(usable, law, proportional)


@lru_cache(maxsize=256)  # sections and formats of one page request the same fit, which takes 0.1 to 0.4 s
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
    """Profiled as 1/N, which stays finite if the peak goes to infinity."""
    if problem.amdahl:
        return BoundedValue(math.inf, math.inf, math.inf)
    if curve.falls and not within.holds("peak_inverse", 1.0):
        return BoundedValue(1.0, 1.0, 1.0)
    low, high = within.interval("peak_inverse", 1 / curve.peak_clients)
    return BoundedValue(curve.peak_clients, _inverse(high), _inverse(low))


def _peak_throughput(curve: Usl, within: usl.Region, gamma: BoundedValue) -> BoundedValue:
    """Peak throughput; for a curve that falls from one client on, the throughput of one client."""
    return gamma if curve.falls else _estimate(curve.peak_throughput, within.interval("peak", curve.peak_throughput))


def _estimate(value: float, interval: tuple[float, float]) -> BoundedValue:
    return BoundedValue(value, *interval)


def _inverse(value: float) -> float:
    return 1 / value if value > 1e-12 else math.inf


def _residual(clients: float, throughput: Vector, curve: Usl) -> Residual:
    return Residual(clients, float(throughput.mean()), curve.at(clients), len(throughput))


def _error(problem: usl.Problem, best: usl.Solution, distinct: Sequence[float]) -> tuple[float, int, bool]:
    """Returns the standard error of a trial, its degrees of freedom, and whether it is the misfit."""
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
