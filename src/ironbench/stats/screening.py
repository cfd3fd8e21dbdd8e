"""Screening designs measure many factors with two levels in few runs. The error is estimated from these runs.

Design: an orthogonal Hadamard matrix, constructed by doubling (Sylvester) or from quadratic residues (Paley, Journal of
Mathematics and Physics 12, 1933), as in the designs of Plackett and Burman (Biometrika 33, 1946). Each run is followed
by its mirror image, in which every factor has its other level (fold-over: Box and Wilson, Journal of the Royal
Statistical Society B 13, 1951). Two-factor interactions are equal in both runs and cancel in the difference of a pair,
so the design has resolution IV. The design needs at least as many pairs as factors, which is the minimum for this
resolution (Webb, Technometrics 10, 1968).

Effects: least squares on the log differences of the pairs. Drift of the machine between pairs does not affect these
differences. The error is estimated from repeats of the same pair in other blocks. No effects are assumed to be zero to
estimate it. Student's t uses the degrees of freedom of this error. The mean of a pair contains no main effect. If these
means differ more between pairs than between blocks, factors interact.
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
    """Effect of one factor: the logarithm of a ratio, in which the result at the factor's second level is divided by
    the result at its first level."""

    effect: float
    error: float
    """Standard error."""
    freedom: int
    """Degrees of freedom of the standard error."""
    spread: float
    """Standard deviation of a pair's log difference from block to block."""

    @property
    def p(self) -> float:
        """Two-sided p value of the hypothesis that there is no effect."""
        if not self.error:
            return 1.0 if not self.effect else 0.0
        return t_two_sided(self.effect / self.error, self.freedom)

    def interval(self, level: float) -> tuple[float, float]:
        """Returns the confidence interval of the ratio. In a fraction `level` of screens, it does not contain the true
        ratio."""
        half = t_quantile(1 - level / 2, self.freedom) * self.error
        return math.exp(self.effect - half), math.exp(self.effect + half)


def design(factors: int, pairs: int) -> Matrix:
    """Returns a matrix with a row for each pair and a column for each factor. -1 means that the factor has its first
    level in the run, and its second level in the mirror image.

    The first run has every factor at its first level. `pairs` must be a power of 2, or 1 more than a prime p with p mod
    4 = 3.
    """
    return -_hadamard(pairs)[:, :factors]


def _hadamard(order: int) -> Matrix:
    """Returns a matrix with orthogonal columns of 1 and -1, whose first row is all 1."""
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
    """Returns an estimate for each column of `signs`. Returns () if the measured pairs are not sufficient to estimate
    the effects and the error. `differences` contains one entry for each measured pair in each block: the index of the
    pair, and the log ratio of the run's value to the value of its mirror image.
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
    """Subtracts the mean of each pair over the blocks from the pair's values. Returns the sum of the squared
    differences."""
    groups = (values[places == pair] for pair in np.unique(places))
    return float(sum(((group - group.mean()) ** 2).sum() for group in groups))


@dataclass(frozen=True, slots=True)
class InteractionTest:
    """Result of the test whether factors interact."""

    p: float
    """P value of the hypothesis that there is no interaction. The P value is from an F test, which compares the
    variation of pair means between pairs with the variation between blocks."""
    strongest: tuple[tuple[int, int], ...]
    """Pairs of factors that may have the strongest interaction. The design cannot distinguish between these pairs."""
    ratios: tuple[float, ...]
    """For each of these pairs, a ratio that is computed as if only this pair caused the interaction. The ratio is the
    joint effect of both factors at their last level, divided by the product of their separate effects. A value below 1
    means that the joint effect is smaller than the product of the separate effects."""


def interplay(signs: Matrix, means: Matrix) -> InteractionTest | None:
    """Tests whether factors interact. `means` has one row for each complete block, with the mean log value of each
    pair.

    Returns None if there are too few blocks or pairs.
    """
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
    # In y = m + a·x + b·z + c·x·z (x, z = ±1), the effect of both changes minus the effect of each change is 4c;
    # `effects` contains 2c.
    return InteractionTest(p, strongest, tuple(math.exp(2 * effects[b, a]) for a, b in strongest))
