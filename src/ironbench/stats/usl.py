"""The Universal Scalability Law, and Amdahl's law as its case without coherency cost: pure formulas.

Gunther, "Guerrilla Capacity Planning", Springer 2007, chapter 6: N clients give the throughput
X(N) = γN / (1 + α(N-1) + βN(N-1)). γ is the throughput of one client alone. α is contention: the share of work that
waits for something held by one at a time (Amdahl, AFIPS Spring Joint Computer Conference 1967: β = 0). β is coherency:
what clients pay to agree with each other, which makes throughput fall again. Möding's R package `usl` uses the same
terms, and its published example is our test vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Usl:
    """One curve. Clients are pure numbers, throughput is in 1/s."""

    alpha: float
    """Contention; below 0 the system is superlinear: twice the clients give more than twice the throughput."""
    beta: float
    """Coherency, at least 0."""
    gamma: float
    """Throughput of one client, 1/s."""

    def throughput(self, clients: Vector) -> Vector:
        """X(N) in 1/s."""
        curve: Vector = self.gamma * clients / denominator(clients, self.alpha, self.beta)
        return curve

    def at(self, clients: float) -> float:
        return float(self.throughput(np.array([clients]))[0])

    def efficiency(self, clients: float) -> float:
        """Throughput per client, as a share of that of one client alone."""
        return self.at(clients) / (self.gamma * clients)

    @property
    def peak_clients(self) -> float:
        """N with the highest throughput, sqrt((1-α)/β); infinite where throughput never falls."""
        return math.sqrt((1 - self.alpha) / self.beta) if self.beta > 0 else math.inf

    @property
    def peak_throughput(self) -> float:
        """X at `peak_clients`; without coherency cost that is the asymptote."""
        return self.at(self.peak_clients) if self.beta > 0 else self.asymptote

    @property
    def asymptote(self) -> float:
        """γ/α: Amdahl's limit for endlessly many clients that pay no coherency; infinite without contention."""
        return self.gamma / self.alpha if self.alpha > 0 else math.inf

    @property
    def knee(self) -> float:
        """N = 1/α, where the line of perfect scaling γN meets the asymptote: more clients mostly wait."""
        return 1 / self.alpha if self.alpha > 0 else math.inf


def denominator(clients: Vector, alpha: float, beta: float) -> Vector:
    """1 + α(N-1) + βN(N-1), kept positive where a fit tries a strongly negative α."""
    kept: Vector = np.maximum(1 + (clients - 1) * (alpha + beta * clients), 1e-9)
    return kept
