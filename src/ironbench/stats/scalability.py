"""Fits the Universal Scalability Law to trials at several numbers of clients.

Gunther, "Guerrilla Capacity Planning", Springer 2007, chapter 6: N clients have the throughput X(N) = γN / (1 + α(N-1)
+ βN(N-1)). γ is the throughput of one client. α is contention: the share of work that only one client can do at a time
(with β = 0, this is Amdahl's law, AFIPS Spring Joint Computer Conference 1967). β is coherency: the cost of keeping
clients consistent with each other, because of which throughput falls again. Möding's R package `usl` uses the same
terms.

The variation of throughput is proportional to its size, so the fit minimises the squared residuals of its logarithm.
The fit is only a description: whether throughput grows is decided by paired trials (`ironbench.study.growth`). If the
curve misses the means by more than the variation between repeats (lack-of-fit test, Draper and Smith, "Applied
Regression Analysis", Wiley 1998, section 2.1), the fit is marked as a misfit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

LEAST_DISTINCT = 4
"""Minimum number of different numbers of clients: three parameters and one degree of freedom."""
ENOUGH_DISTINCT = 6
"""Minimum number of different numbers of clients for a well determined curve. (Examples in the manual of the `usl`
package have at least 7.)"""
MISFIT_LEVEL = 0.05
LEAST_ALPHA = -0.9
PARAMETERS = 3
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usl:
    """A curve of the Universal Scalability Law. Clients are dimensionless, throughput is in 1/s."""

    alpha: float
    """Contention. Below 0, the system is superlinear: twice as many clients have more than twice the throughput."""
    beta: float
    """Coherency, at least 0."""
    gamma: float
    """Throughput of one client, in 1/s."""

    def throughput(self, clients: Vector) -> Vector:
        """Returns the throughput X(N) in 1/s."""
        curve: Vector = self.gamma * clients / denominator(clients, self.alpha, self.beta)
        return curve

    def at(self, clients: float) -> float:
        """Returns the throughput at one number of clients, in 1/s."""
        return float(self.throughput(np.array([clients]))[0])

    @property
    def falls(self) -> bool:
        """Whether the curve falls everywhere from N = 1, that is, whether sqrt((1-α)/β) is below 1."""
        return self.beta > 1 - self.alpha

    @property
    def peak_clients(self) -> float:
        """Number of clients with the highest throughput: sqrt((1-α)/β), but at least 1. Infinite if throughput never
        falls."""
        return max(1.0, math.sqrt((1 - self.alpha) / self.beta)) if self.beta > 0 else math.inf

    @property
    def peak_throughput(self) -> float:
        """Throughput at `peak_clients`, or the asymptote if there is no coherency cost."""
        return self.at(self.peak_clients) if self.beta > 0 else self.asymptote

    @property
    def asymptote(self) -> float:
        """Amdahl's limit γ/α, which throughput would approach without coherency cost. Infinite if there is no
        contention."""
        return self.gamma / self.alpha if self.alpha > 0 else math.inf

    @property
    def knee(self) -> float:
        """Number of clients N = 1/α at which the line of perfect scaling γN meets the asymptote. Beyond this number,
        additional clients mostly wait."""
        return 1 / self.alpha if self.alpha > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Residual:
    """Measured and fitted throughput at one number of clients, in 1/s."""

    clients: float
    measured: float
    """Mean throughput of the trials."""
    fitted: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The law fitted to the trials of one system."""

    curve: Usl
    residual_error: float
    """Standard deviation of trials around the curve, as a share of throughput."""
    misfit: bool
    """Whether the curve misses the means by more than the variation between repeats."""
    residuals: tuple[Residual, ...]

    @property
    def first(self) -> float:
        """Smallest number of clients measured."""
        return self.residuals[0].clients

    @property
    def last(self) -> float:
        """Largest number of clients measured. Beyond it, the curve is a prediction."""
        return self.residuals[-1].clients

    @property
    def falls(self) -> bool:
        """Whether the curve falls from the smallest measured number of clients on."""
        return self.curve.falls or self.curve.peak_clients < self.first

    @property
    def peak_is_beyond(self) -> bool:
        """Whether the curve still rises at the largest measured number of clients."""
        return self.curve.peak_clients > self.last


def denominator(clients: Vector, alpha: float, beta: float) -> Vector:
    """Returns 1 + α(N-1) + βN(N-1), but at least a small positive number, because a fit may try strongly negative
    values of α."""
    kept: Vector = np.maximum(1 + (clients - 1) * (alpha + beta * clients), 1e-9)
    return kept


def fitted(points: Sequence[tuple[float, float]]) -> Fit | None:
    """Fits the law to (clients, throughput) of single trials. Returns None for fewer than 4 different numbers of
    clients."""
    return _fitted(tuple((float(n), float(x)) for n, x in points if n > 0 and x > 0 and math.isfinite(x)))


@lru_cache(maxsize=256)  # several sections and formats of one page request the same fit
def _fitted(points: tuple[tuple[float, float], ...]) -> Fit | None:
    distinct = sorted({n for n, _ in points})
    if len(distinct) < LEAST_DISTINCT:
        return None
    clients, throughput = np.array([n for n, _ in points]), np.array([x for _, x in points])
    curve = _solved(clients, throughput)
    squares = _squares(curve, clients, np.log(throughput))
    return Fit(
        curve,
        math.sqrt(squares / max(1, len(points) - PARAMETERS)),
        _misses(squares, clients, np.log(throughput), distinct),
        tuple(Residual(n, float(throughput[clients == n].mean()), curve.at(n)) for n in distinct),
    )


def _solved(clients: Vector, throughput: Vector) -> Usl:
    """Finds the best curve from several start values, because the surface has flat valleys at the bounds of α and β."""
    scale = float(clients.max()) ** 2
    starts = [_linearised(clients, throughput), (0.05, 0.0), (0.5, 0.0), (0.01, 0.5 / scale)]
    logs = np.log(throughput)
    curves = [_searched(clients, logs, alpha, beta, scale) for alpha, beta in starts]
    return min(curves, key=lambda curve: _squares(curve, clients, logs))


_ROUNDING = 1e-18
"""Even if the curve fits exactly, rounding may cause a sum of squared errors of logarithms up to this value."""


def _searched(clients: Vector, logs: Vector, alpha: float, beta: float, scale: float) -> Usl:
    from scipy.optimize import least_squares

    low, high = np.array([LEAST_ALPHA, 0.0]), np.array([1.0, math.inf])
    start = np.clip([alpha, beta * scale], low + 1e-9, [1.0 - 1e-9, math.inf])
    found = least_squares(
        lambda v: _residuals(_with_best_gamma(clients, logs, v[0], v[1] / scale), clients, logs),
        start, bounds=(low, high), x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12, max_nfev=200,
    )  # fmt: skip
    best = _with_best_gamma(clients, logs, float(found.x[0]), float(found.x[1]) / scale)
    # The search stops slightly before a bound, so β = 0 itself is also tried.
    bare = Usl(best.alpha, 0.0, best.gamma)
    as_good = _squares(best, clients, logs) * (1 + 1e-9) + _ROUNDING
    if best.beta * scale < 1e-6 and _squares(bare, clients, logs) <= as_good:
        return bare
    return best


def _with_best_gamma(clients: Vector, logs: Vector, alpha: float, beta: float) -> Usl:
    """Returns the best γ for given α and β. γ enters linearly (variable projection: Golub and Pereyra 1973)."""
    shape = clients / denominator(clients, alpha, beta)
    return Usl(alpha, beta, float(np.exp((logs - np.log(shape)).mean())))


def _linearised(clients: Vector, throughput: Vector) -> tuple[float, float]:
    """Returns start values from Gunther's linearised form: with C = X/X(least N), N/C - 1 = (α+β)x + βx², x = N - 1."""
    least = clients == clients.min()
    single = float(throughput[least].mean() / clients.min())
    x, y = clients - 1, clients * single / throughput - 1
    (sum_of_both, beta), *_ = np.linalg.lstsq(np.column_stack([x, x * x]), y, rcond=None)
    beta = max(0.0, float(beta))
    return min(0.95, max(LEAST_ALPHA, float(sum_of_both) - beta)), beta


def _residuals(curve: Usl, clients: Vector, logs: Vector) -> Vector:
    missed: Vector = np.log(np.maximum(curve.throughput(clients), 1e-300)) - logs
    return missed


def _squares(curve: Usl, clients: Vector, logs: Vector) -> float:
    return float((_residuals(curve, clients, logs) ** 2).sum())


def _misses(squares: float, clients: Vector, logs: Vector, distinct: Sequence[float]) -> bool:
    """Tests the lack of fit against the variation between repeats (F test). Returns False without repeats."""
    from scipy import special

    groups = [logs[clients == at] for at in distinct]
    pure = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    lack_freedom, pure_freedom = len(distinct) - PARAMETERS, len(logs) - len(distinct)
    if pure_freedom < 1 or pure <= 0:
        return False
    f = (max(0.0, squares - pure) / lack_freedom) / (pure / pure_freedom)
    return bool(special.fdtrc(lack_freedom, pure_freedom, f) < MISFIT_LEVEL)
