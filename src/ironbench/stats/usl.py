"""The Universal Scalability Law, and Amdahl's law as the special case without coherency: pure formulas.

Gunther, "Guerrilla Capacity Planning", Springer 2007, chapter 6: N clients have the throughput X(N) = γN / (1 + α(N-1)
+ βN(N-1)). γ is the throughput of a single client. α is contention: the share of work that waits for a resource used by
one client at a time (Amdahl, AFIPS Spring Joint Computer Conference 1967: β = 0). β is coherency: the cost of keeping
clients consistent with each other, which makes throughput fall again. Möding's R package `usl` uses the same terms, and
its published example is a test case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ironbench.stats.intervals import t_quantile

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usl:
    """A curve of the law. Clients are dimensionless, throughput is in 1/s."""

    alpha: float
    """Contention. If below 0, the system is superlinear: twice the clients give more than twice the throughput."""
    beta: float
    """Coherency, at least 0."""
    gamma: float
    """Throughput of one client, in 1/s."""

    def throughput(self, clients: Vector) -> Vector:
        """X(N) in 1/s."""
        curve: Vector = self.gamma * clients / denominator(clients, self.alpha, self.beta)
        return curve

    def at(self, clients: float) -> float:
        return float(self.throughput(np.array([clients]))[0])

    @property
    def falls(self) -> bool:
        """Whether throughput falls from one client on: sqrt((1-α)/β) is below 1."""
        return self.beta > 1 - self.alpha

    @property
    def peak_clients(self) -> float:
        """Number of clients with the highest throughput, sqrt((1-α)/β), at least 1; infinite if throughput never
        falls."""
        return max(1.0, math.sqrt((1 - self.alpha) / self.beta)) if self.beta > 0 else math.inf

    @property
    def peak_throughput(self) -> float:
        """Throughput at `peak_clients`; without coherency, the asymptote."""
        return self.at(self.peak_clients) if self.beta > 0 else self.asymptote

    @property
    def asymptote(self) -> float:
        """γ/α: the limit of Amdahl's law for infinitely many clients without coherency; infinite without contention."""
        return self.gamma / self.alpha if self.alpha > 0 else math.inf

    @property
    def knee(self) -> float:
        """N = 1/α, where the line of perfect scaling γN meets the asymptote; additional clients mostly wait."""
        return 1 / self.alpha if self.alpha > 0 else math.inf


def denominator(clients: Vector, alpha: float, beta: float) -> Vector:
    """1 + α(N-1) + βN(N-1), kept positive for the strongly negative α that a fit may try."""
    kept: Vector = np.maximum(1 + (clients - 1) * (alpha + beta * clients), 1e-9)
    return kept


# Least squares fits of these laws, and the region of parameters that do not fit significantly worse.

LEAST_ALPHA = -0.9
FAR = 1e4
"""A bound that differs from the value by more than this factor is treated as infinite (or 0)."""


@dataclass(frozen=True, slots=True)
class Solution:
    curve: Usl
    squares: float
    """Sum of squared residuals."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The trials to fit, and the law."""

    clients: Vector
    throughput: Vector
    amdahl: bool = False
    proportional: bool = True
    """Whether the variation of trials is proportional to throughput, so that logarithms are fitted; else the variation
    is constant."""

    @property
    def parameters(self) -> int:
        return 2 if self.amdahl else 3

    @property
    def most(self) -> float:
        return float(self.clients.max())

    @property
    def values(self) -> Vector:
        """Values to fit: throughput, or its logarithm."""
        return np.log(self.throughput) if self.proportional else self.throughput

    def residuals(self, curve: Usl) -> Vector:
        """Residuals in the unit of `values`."""
        expected = curve.throughput(self.clients)
        missed: Vector = (np.log(np.maximum(expected, 1e-300)) if self.proportional else expected) - self.values
        return missed

    def squares(self, curve: Usl) -> float:
        return float((self.residuals(curve) ** 2).sum())

    def solved(self) -> Solution:
        """Finds the best curve. Uses several start values, because the surface has flat valleys if α and β are at their
        bounds."""
        starts = [self.guessed(), Usl(0.05, 0.0, 0.0), Usl(0.5, 0.0, 0.0), Usl(0.01, 0.5 / self.most**2, 0.0)]
        solutions = [self.free(start.alpha, 0.0 if self.amdahl else start.beta) for start in starts]
        return min(solutions, key=lambda one: one.squares)

    def guessed(self) -> Usl:
        """Start value from Gunther's linearised form: with C = X/X(least N), N/C - 1 = (α+β)x + βx², x = N - 1."""
        least = self.clients == self.clients.min()
        single = float(self.throughput[least].mean() / self.clients.min())
        x = self.clients - 1
        y = self.clients * single / self.throughput - 1
        basis = np.column_stack([x, x * x])
        (sum_of_both, beta), *_ = np.linalg.lstsq(basis, y, rcond=None)
        beta = max(0.0, float(beta))
        return Usl(min(0.95, max(LEAST_ALPHA, float(sum_of_both) - beta)), beta, single)

    def best_gamma(self, alpha: float, beta: float) -> Usl:
        """Best γ for given α and β: γ enters linearly (variable projection: Golub and Pereyra 1973)."""
        shape = self.clients / denominator(self.clients, alpha, beta)
        if self.proportional:
            return Usl(alpha, beta, float(np.exp((self.values - np.log(shape)).mean())))
        return Usl(alpha, beta, float(shape @ self.values / (shape @ shape)))

    def free(self, alpha: float, beta: float) -> Solution:
        """Searches for the best curve from these start values."""
        if self.amdahl:
            return self.search([alpha], [(LEAST_ALPHA, 1.0)], lambda v: self.best_gamma(v[0], 0.0))
        scale = self.most**2
        return self.search(
            [alpha, beta * scale],
            [(LEAST_ALPHA, 1.0), (0.0, math.inf)],
            lambda v: self.best_gamma(v[0], v[1] / scale),
        )

    def search(self, start: list[float], bounds: list[tuple[float, float]], curve: Callable[[Vector], Usl]) -> Solution:
        """Minimises over the parameters from which `curve` builds a curve."""
        from scipy.optimize import least_squares

        size = 1.0 if self.proportional else float(self.throughput.max())
        low, high = np.array([b[0] for b in bounds]), np.array([b[1] for b in bounds])
        inside = np.clip(start, low + 1e-9, np.where(np.isfinite(high), high - 1e-9, np.inf))
        fit = least_squares(
            lambda v: self.residuals(curve(v)) / size, inside, bounds=(low, high), x_scale="jac",
            xtol=1e-12, ftol=1e-12, gtol=1e-12, max_nfev=200,
        )  # fmt: skip
        best = curve(fit.x)
        best = Usl(float(best.alpha), float(best.beta), float(best.gamma))
        # The search stops slightly before a bound, so the bound itself is tried.
        bare = Usl(best.alpha, 0.0, best.gamma)
        if best.beta * self.most**2 < 1e-6 and self.squares(bare) <= self.squares(best) * (1 + 1e-9):
            best = bare
        return Solution(best, self.squares(best))


@dataclass(frozen=True, slots=True)
class Region:
    """The curves that do not fit significantly worse than the best: (S(v) - S) / s² ≤ t², where one quantity is fixed
    at v and the others are optimal."""

    problem: Problem
    best: Solution
    error: float
    freedom: int

    def interval(self, quantity: str, value: float) -> tuple[float, float]:
        """95% profile interval of a quantity around its best `value`."""
        if not math.isfinite(value):
            return (self._end(quantity, float(self.problem.throughput.max()), down=True, within=False), math.inf)
        return self._end(quantity, value, down=True), self._end(quantity, value, down=False)

    def holds(self, quantity: str, value: float) -> bool:
        """Whether a curve with this value does not fit significantly worse."""
        return self.tau(quantity, value) <= t_quantile(0.975, self.freedom)

    def tau(self, quantity: str, value: float) -> float:
        """How much worse the best curve with this value fits: sqrt((S(v) - S) / s²), to be compared with Student's
        t."""
        rise = self.fixed(quantity, value).squares - self.best.squares
        return math.sqrt(max(0.0, rise)) / self.error if self.error > 0 else (0.0 if rise <= 0 else math.inf)

    def fixed(self, quantity: str, value: float) -> Solution:
        """Finds the best curve among those with this value."""
        problem, curve = self.problem, self.best.curve
        scale, alpha, beta = problem.most**2, (LEAST_ALPHA, 1.0), (0.0, math.inf)
        fixed_beta = problem.amdahl
        if quantity == "alpha":
            if fixed_beta:
                only = problem.best_gamma(value, 0.0)
                return Solution(only, problem.squares(only))
            return problem.search([curve.beta * scale], [beta], lambda v: problem.best_gamma(value, v[0] / scale))
        if quantity == "beta":
            return problem.search([curve.alpha], [alpha], lambda v: problem.best_gamma(v[0], value))
        if quantity == "gamma":
            if fixed_beta:
                return problem.search([curve.alpha], [alpha], lambda v: Usl(v[0], 0.0, value))
            return problem.search(
                [curve.alpha, curve.beta * scale], [alpha, beta], lambda v: Usl(v[0], v[1] / scale, value)
            )
        if quantity == "peak_inverse":
            return problem.search([curve.alpha], [alpha], lambda v: problem.best_gamma(v[0], (1 - v[0]) * value**2))
        if quantity == "peak" and fixed_beta:
            return problem.search([curve.alpha], [(1e-9, 1.0)], lambda v: Usl(v[0], 0.0, value * v[0]))
        if quantity == "peak":
            inverse = math.sqrt(curve.beta / (1 - curve.alpha)) * problem.most
            return problem.search(
                [curve.alpha, inverse],
                [alpha, (0.0, problem.most)],
                lambda v: _through_peak(v[0], v[1] / problem.most, value),
            )
        raise KeyError(quantity)

    def _end(self, quantity: str, value: float, *, down: bool, within: bool = True) -> float:
        """Returns where the curve becomes significantly worse: walks from `value` in growing steps, then finds the
        root."""
        from scipy.optimize import brentq

        limit = t_quantile(0.975, self.freedom)
        bound = _BOUNDS[quantity][0 if down else 1]

        def over(at: float) -> float:
            return self.tau(quantity, at) - limit

        if not within and over(value) < 0:
            return self._end(quantity, value, down=True)
        inside, step = value, max(abs(value) * 0.05, self._least_step(quantity))
        if not within:
            # There is no best value to start from, and the highest measured throughput is already too low, so walk up
            # to the bound.
            return self._walk_up(over, value)
        while True:
            outside = max(bound, inside - step) if down else min(bound, inside + step)
            if over(outside) > 0:
                return float(brentq(over, outside, inside, xtol=abs(value) * 1e-5 + 1e-14, rtol=1e-6))
            if outside == bound or abs(outside - value) > FAR * max(abs(value), self._least_step(quantity)):
                return bound
            inside, step = outside, step * 2

    @staticmethod
    def _walk_up(over: Callable[[float], float], value: float) -> float:
        from scipy.optimize import brentq

        low, high = value, value * 2
        while over(high) > 0 and high < value * FAR:
            low, high = high, high * 2
        return float(brentq(over, low, high)) if over(high) <= 0 else math.inf

    def _least_step(self, quantity: str) -> float:
        return {"alpha": 1e-3, "beta": 1e-2 / self.problem.most**2, "peak_inverse": 0.02 / self.problem.most}.get(
            quantity, 0.0
        )


_BOUNDS = {
    "alpha": (LEAST_ALPHA, 1.0),
    "beta": (0.0, math.inf),
    "gamma": (0.0, math.inf),
    "peak_inverse": (0.0, 1.0),
    "peak": (0.0, math.inf),
}


def _through_peak(alpha: float, inverse: float, peak: float) -> Usl:
    """The curve with highest throughput `peak` at 1/`inverse` clients: γ = X*/N* · (1 + α(N*-1) + βN*(N*-1)), expressed
    in 1/N*, which is 0 if the peak is the asymptote."""
    gamma = peak * (inverse + alpha * (1 - inverse) + (1 - alpha) * inverse * (1 - inverse))
    return Usl(alpha, (1 - alpha) * inverse**2, gamma)
