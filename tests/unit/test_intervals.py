"""Quantiles and tail probabilities, compared with published tables."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from ironbench.stats.intervals import half_width, t_above, t_quantile, t_two_sided
from ironbench.stats.power import likely_spread, noncentral_t_below, power, power_of_equivalence


@pytest.mark.parametrize(
    ("freedom", "share", "t"),
    [
        # Digits from NIST/SEMATECH e-Handbook, 1.3.6.7.2, extended; one degree of freedom is Cauchy's distribution,
        # exactly.
        (1, 0.975, 12.706204736175),
        (2, 0.975, 4.302652729696),
        (5, 0.975, 2.570581835636),
        (5, 0.95, 2.015048373333),
        (9, 0.975, 2.262157162741),
        (10, 0.995, 3.169272672616),
        (19, 0.975, 2.093024054408),
        (30, 0.975, 2.042272456301),
        (60, 0.975, 2.000297821058),
        (120, 0.95, 1.657650899169),
    ],
)
def test_t_quantiles_are_those_of_the_tables(freedom: int, share: float, t: float) -> None:
    assert t_quantile(share, freedom) == pytest.approx(t, abs=1e-9)
    assert t_above(t, freedom) == pytest.approx(1 - share, abs=1e-9)
    assert t_two_sided(t, freedom) == pytest.approx(2 * (1 - share), abs=1e-9)
    assert t_two_sided(-t, freedom) == t_two_sided(t, freedom)


def test_a_tiny_p_value_keeps_its_digits() -> None:
    # Student's t with one degree of freedom is Cauchy's distribution, whose tail is arctan(1/t)/π.
    assert t_above(1e12, 1) == pytest.approx(math.atan(1e-12) / math.pi, rel=1e-9)
    assert t_above(math.inf, 3) == 0.0


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 500))
def test_a_quantile_undoes_its_tail(share: float, freedom: int) -> None:
    assert t_above(-t_quantile(share, freedom), freedom) == pytest.approx(share, rel=1e-9, abs=1e-12)


SHARES = st.one_of(
    st.floats(-15, -0.3).map(lambda power: 10**power),
    st.floats(-12, -0.3).map(lambda power: 1 - 10**power),
    st.floats(0.01, 0.99),
)
FREEDOMS = st.one_of(
    st.floats(math.log10(0.5), 6).map(lambda power: 10**power), st.floats(0.5, 40), st.integers(1, 1000).map(float)
)


@given(SHARES, FREEDOMS)
@example(1e-15, 0.5)
@example(1 - 1e-12, 0.5)
@example(1e-15, 1e6)
@example(1e-15, 999.9)
@example(1e-15, 1000.0)
@example(0.25, 3.0)
@example(0.5 + 1e-9, 2.5)
def test_students_t_is_that_of_scipy(share: float, freedom: float) -> None:
    t = float(special.stdtrit(freedom, share))
    # Near the median scipy (1.17) is off by up to 1e-16, which is much of a small t.
    assert t_quantile(share, freedom) == pytest.approx(t, rel=1e-9, abs=1e-15)
    assert t_above(-t, freedom) == pytest.approx(float(special.stdtr(freedom, t)), rel=1e-9, abs=0)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_quantile_of_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        t_quantile(share, 5)


def test_a_quantile_without_freedom_is_refused() -> None:
    with pytest.raises(ValueError, match="freedom"):
        t_quantile(0.975, 0)


def test_the_half_width_is_that_of_the_textbook() -> None:
    # Mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.7764451.
    assert half_width([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2.7764451 * math.sqrt(2.5 / 5), abs=1e-7)


@pytest.mark.parametrize(
    ("blocks", "x"),
    # χ² with 10 % below it, n - 1 degrees of freedom: Abramowitz & Stegun, table 26.8.
    [(11, 4.86518), (6, 1.61031), (2, 0.0157908)],
)
def test_the_likely_spread_follows_from_the_tables_of_chi_squared(blocks: int, x: float) -> None:
    assert likely_spread(0.03, blocks) == pytest.approx(0.03 * math.sqrt((blocks - 1) / x), rel=2e-6)


@pytest.mark.parametrize(
    ("t", "freedom", "shift", "chance"),
    [
        (0.0, 7, 1.5, 0.0668072013),  # The normal distribution, shifted.
        (2.015048373333, 5, 0.0, 0.95),  # Student's t.
        # By AS 243 (Lenth, Applied Statistics 38, 1989), implemented independently.
        (3.0, 10, 1.0, 0.9470508616928),
        (-1.0, 4, 0.5, 0.0861495690366),
        (6.0, 5, 4.0, 0.7870195997316),
    ],
)
def test_noncentral_t_agrees_with_independent_code(t: float, freedom: int, shift: float, chance: float) -> None:
    assert noncentral_t_below(t, freedom, shift) == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "z", "factor"),
    # One-sided tolerance factors at 95 % confidence: Natrella, Experimental Statistics (NBS Handbook 91), table A-7.
    [(10, 1.281551565545, 2.355), (5, 1.644853626951, 4.203), (20, 1.644853626951, 2.396), (10, 2.326347874, 3.981)],
)
def test_noncentral_t_gives_the_published_tolerance_factors(n: int, z: float, factor: float) -> None:
    shift = z * n**0.5
    assert noncentral_t_below((factor - 0.001) * n**0.5, n - 1, shift) < 0.95
    assert noncentral_t_below((factor + 0.001) * n**0.5, n - 1, shift) > 0.95


@pytest.mark.parametrize("blocks", [2, 3, 6, 21, 501, 10_000])
@pytest.mark.parametrize("level", [0.05, 0.0005, 1e-6])
def test_power_grows_to_one_however_large_the_effect(blocks: int, level: float) -> None:
    """This includes probabilities too small to compute, and effects as large as a tiny standard deviation makes
    them."""
    effects = [10.0**exponent for exponent in range(-4, 13)]
    for of in (power, power_of_equivalence):
        found = [of(effect, blocks, level) for effect in effects]
        assert all(0 <= one <= 1 for one in found)
        assert all(later >= one - 1e-9 for one, later in pairwise(found))
        assert found[-1] == pytest.approx(1.0, abs=1e-6)


def test_beyond_large_shifts_noncentral_t_is_that_of_chi_squared_alone() -> None:
    # At a shift of 50,000 both methods can be computed.
    for freedom in (1, 5, 20):
        exact = noncentral_t_below(60_000.0, freedom, 50_000.0)
        assert noncentral_t_below(6e9, freedom, 5e9) == pytest.approx(exact, abs=1e-6)
