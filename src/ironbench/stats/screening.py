"""Screens many factors of two levels in few runs: the design, and effects with an error that the runs show themselves.

Design: an orthogonal matrix of Hadamard, by doubling (Sylvester) or by quadratic residues (Paley, Journal of
Mathematics and Physics 12, 1933), which give the designs of Plackett and Burman (Biometrika 33, 1946). Each run is
followed by its mirror image, with every factor at its other level (fold-over: Box and Wilson, Journal of the Royal
Statistical Society B 13, 1951). Interactions of two factors are the same in both runs, so that the difference of a
pair is free of them: resolution IV, with as many pairs as factors at least, the fewest that there are (Webb,
Technometrics 10, 1968).

Effects: least squares on the log differences of the pairs. What a machine drifts from pair to pair is in no difference.
The error is that of the same pair in other blocks, never that of effects taken for zero; t at its degrees of freedom.
The mean of a pair holds no main effect: where means differ between pairs by more than blocks do, factors interact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ironbench.stats.intervals import t_quantile, t_two_sided

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EffectEstimate:
    """The effect of one factor as the logarithm of a ratio: its second level over its first."""

    effect: float
    error: float
    """Standard error."""
    freedom: int
    """Degrees of freedom of that error."""
    spread: float
    """Standard deviation of the difference of a pair, by what it is in several blocks."""

    @property
    def p(self) -> float:
        """Two-sided, of no effect."""
        if not self.error:
            return 1.0 if not self.effect else 0.0
        return t_two_sided(self.effect / self.error, self.freedom)

    def interval(self, level: float) -> tuple[float, float]:
        """Of the ratio; it misses the true one in a share `level` of screens."""
        half = t_quantile(1 - level / 2, self.freedom) * self.error
        return math.exp(self.effect - half), math.exp(self.effect + half)


def design(factors: int, pairs: int) -> Matrix:
    """A row for each pair, a column for each factor: -1 is the first level in the run and the second in its mirror
    image. The first run has every factor at its first level. `pairs`: a power of 2, or 1 more than a prime number
    that leaves 3 when divided by 4."""
    return -_hadamard(pairs)[:, :factors]


def _hadamard(order: int) -> Matrix:
    """Orthogonal columns of 1 and -1; the first row is all 1."""
    if order & (order - 1) == 0:
        from scipy import linalg

        square: Matrix = linalg.hadamard(order).astype(np.float64)
        return square
    prime = order - 1
    squares = {number * number % prime for number in range(1, prime)}
    steps = np.subtract.outer(np.arange(prime), np.arange(prime)) % prime
    residues = np.where(np.isin(steps, list(squares)), 1.0, -1.0)
    matrix = np.ones((order, order))
    matrix[1:, 0] = -1.0
    matrix[1:, 1:] = residues
    np.fill_diagonal(matrix, 1.0)
    return matrix


def estimates(signs: Matrix, differences: Sequence[tuple[int, float]]) -> tuple[EffectEstimate, ...]:
    """One for each column of `signs`; empty where the pairs measured determine no effects, or no error.

    `differences`: number of the pair, and log of the run's value over its mirror image's, once for each block.
    """
    if not differences:
        return ()
    places = np.array([pair for pair, _ in differences], dtype=np.int64)
    values = np.array([value for _, value in differences])
    freedom = len(values) - len(set(places.tolist()))
    if freedom < 1:
        return ()
    rows = signs[places]
    if np.linalg.matrix_rank(rows) < signs.shape[1]:
        return ()
    fitted, *_ = np.linalg.lstsq(rows, values, rcond=None)
    spread = math.sqrt(_within(places, values) / freedom)
    scale = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    return tuple(
        EffectEstimate(float(e), spread * float(s), freedom, spread) for e, s in zip(fitted, scale, strict=True)
    )


def _within(places: NDArray[np.int64], values: Matrix) -> float:
    """Sum of squares of what the blocks of one pair differ by."""
    groups = (values[places == pair] for pair in np.unique(places))
    return float(sum(((group - group.mean()) ** 2).sum() for group in groups))


@dataclass(frozen=True, slots=True)
class Interplay:
    """Whether factors interact."""

    p: float
    """Of no interaction at all: F of the pairs' means against what blocks make of them."""
    strongest: tuple[tuple[int, int], ...]
    """The pairs of factors that may be the strongest interaction: the design cannot tell these from each other."""
    ratios: tuple[float, ...]
    """For each of these pairs, if it alone causes the interaction: the result with both factors at their last level,
    relative to the product of both changes alone; below 1: together they give less."""


def interplay(signs: Matrix, means: Matrix) -> Interplay | None:
    """`means`: mean log value of each pair, a row for each complete block. None: too few blocks, or two factors."""
    from scipy import special

    blocks, number = means.shape
    if blocks < 2 or number < 4:
        return None
    left = means - means.mean(axis=1, keepdims=True)
    of_pairs = left.mean(axis=0)
    between = blocks * float((of_pairs**2).sum()) / (number - 1)
    freedom = (number - 1) * (blocks - 1)
    within = float(((left - of_pairs) ** 2).sum()) / freedom
    p = float(special.fdtrc(number - 1, freedom, between / within)) if within > 0 else 1.0
    both = [(a, b) for a in range(signs.shape[1]) for b in range(a)]
    effects = {pair: 2 * float(of_pairs @ (signs[:, pair[0]] * signs[:, pair[1]])) / number for pair in both}
    most = max(map(abs, effects.values()))
    alike = tuple((b, a) for (a, b), size in effects.items() if abs(size) > most * (1 - 1e-9))
    strongest = tuple(sorted(alike))
    # In y = m + a·x + b·z + c·x·z with x, z = ±1, both changes together minus each alone is 4c; `effects` are 2c.
    return Interplay(p, strongest, tuple(math.exp(2 * effects[b, a]) for a, b in strongest))
