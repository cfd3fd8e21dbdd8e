"""Normal, t, chi-squared and noncentral t distributions, to about 1e-10, without scipy (whose import costs 1.5 s).

Sources: incomplete beta and gamma functions by continued fraction and series (Abramowitz & Stegun, Handbook of
Mathematical Functions, 26.5.8, 6.5.29 and 6.5.31, evaluated by Lentz's method); noncentral t by Lenth, Algorithm AS
243, Applied Statistics 38 (1989) 185-189; normal quantile by Wichura, Algorithm AS 241 (the standard library's).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_EPS = 1e-15
_NORMAL = NormalDist()


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of a standard normal Z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def normal_quantile(p: float) -> float:
    """z with P(Z ≤ z) = p; ValueError outside 0 < p < 1."""
    _share(p)
    return _NORMAL.inv_cdf(p)


def t_cdf(t: float, freedom: float) -> float:
    """P(T ≤ t) of Student's t (Abramowitz & Stegun 26.7.1 with 26.5.27)."""
    _positive(freedom)
    if math.isinf(t):
        return 0.0 if t < 0 else 1.0
    tail = 0.5 * incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return tail if t < 0 else 1 - tail


def t_two_sided(t: float, freedom: float) -> float:
    """P(|T| ≥ |t|): the p value of a two-sided t test, accurate for tiny values too."""
    _positive(freedom)
    return 0.0 if math.isinf(t) else incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def t_above(t: float, freedom: float) -> float:
    """P(T ≥ t): the p value of a one-sided t test."""
    return t_cdf(-t, freedom)


@lru_cache(maxsize=4096)
def t_quantile(p: float, freedom: float) -> float:
    """t with P(T ≤ t) = p; ValueError outside 0 < p < 1."""
    _share(p)
    _positive(freedom)
    if p == 0.5:
        return 0.0
    # Solved in the lower tail, where the CDF keeps its digits.
    lower = min(p, 1 - p)
    low = -1.0
    while t_cdf(low, freedom) > lower:
        low *= 2
    found = _bisect(lambda t: t_cdf(t, freedom), lower, low, 0.0)
    return found if p < 0.5 else -found


def chi2_cdf(x: float, freedom: float) -> float:
    """P(X ≤ x) of chi-squared (Abramowitz & Stegun 26.4.19)."""
    _positive(freedom)
    return incomplete_gamma(freedom / 2, x / 2) if x > 0 else 0.0


@lru_cache(maxsize=1024)
def chi2_quantile(p: float, freedom: float) -> float:
    """x with P(X ≤ x) = p; ValueError outside 0 < p < 1."""
    _share(p)
    high = freedom + 1.0
    while chi2_cdf(high, freedom) < p:
        high *= 2
    return _bisect(lambda x: chi2_cdf(x, freedom), p, 0.0, high)


def noncentral_t_cdf(t: float, freedom: float, shift: float) -> float:
    """P(T ≤ t) where T = (Z + shift) / sqrt(chi2/freedom) (Lenth, AS 243; `shift` up to about 37 in absolute value)."""
    _positive(freedom)
    if t < 0:
        return 1 - noncentral_t_cdf(-t, freedom, -shift)
    if abs(shift) > 37:  # exp(-shift²/2) underflows; the normal approximation of Abramowitz & Stegun 26.7.10 does.
        return normal_cdf((t * (1 - 1 / (4 * freedom)) - shift) / math.sqrt(1 + t * t / (2 * freedom)))
    x = t * t / (t * t + freedom)
    total = normal_cdf(-shift)
    if x <= 0:
        return total
    half = shift * shift / 2
    p = 0.5 * math.exp(-half)
    q = math.sqrt(2 / math.pi) * p * shift
    rest = 0.5 - p
    a, b = 0.5, freedom / 2
    beta_odd = incomplete_beta(a, b, x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    step_odd = 2 * math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta)
    remaining = math.exp(b * math.log1p(-x))
    beta_even = 1 - remaining
    step_even = b * x * remaining
    added = p * beta_odd + q * beta_even
    # The k-th terms move from P to E of AS 243 by the recurrences of its section 2.
    for k in range(1, 2000):
        a += 1
        beta_odd -= step_odd
        beta_even -= step_even
        step_odd *= x * (a + b - 1) / a
        step_even *= x * (a + b - 0.5) / (a + 0.5)
        p *= half / k
        q *= half / (k + 0.5)
        rest -= p
        added += p * beta_odd + q * beta_even
        if k > half and abs(2 * rest * (beta_odd - step_odd)) < 1e-13:
            break
    return min(1.0, max(0.0, total + added))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised I_x(a, b) for 0 ≤ x ≤ 1."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def incomplete_gamma(a: float, x: float) -> float:
    """Regularised lower P(a, x) for x ≥ 0."""
    if x <= 0:
        return 0.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        k = a
        while term > total * _EPS:
            k += 1
            term *= x / k
            total += term
        return front * total
    b = x + 1 - a
    c = 1 / _TINY
    d = 1 / b
    result = d
    for k in range(1, 10_000):
        step = -k * (k - a)
        b += 2
        d = 1 / _nonzero(step * d + b)
        c = _nonzero(b + step / c)
        result *= d * c
        if abs(d * c - 1) < _EPS:
            break
    return 1 - front * result


def _beta_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    result = d
    for k in range(1, 10_000):
        for step in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            d = 1 / _nonzero(1 + step * d)
            c = _nonzero(1 + step / c)
            result *= d * c
        if abs(d * c - 1) < _EPS:
            break
    return result


def _bisect(rising: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where `rising` reaches `target`, to the last bits of a double."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if rising(middle) < target:
            low = middle
        else:
            high = middle


def _nonzero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _share(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError("a quantile needs a share between 0 and 1")


def _positive(freedom: float) -> None:
    if not freedom > 0:
        raise ValueError("degrees of freedom must be above 0")
