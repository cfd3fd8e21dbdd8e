"""Quantiles and tails, held to published tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.analyse.distributions import (
    chi2_cdf,
    chi2_quantile,
    noncentral_t_cdf,
    normal_cdf,
    normal_quantile,
    t_cdf,
    t_quantile,
    t_two_sided,
)


@pytest.mark.parametrize(
    ("share", "z"),
    # Abramowitz & Stegun, table 26.5 and 26.6; Wichura (AS 241) gives more digits.
    [(0.975, 1.959963984540), (0.95, 1.644853626951), (0.995, 2.575829303549), (0.9, 1.281551565545)],
)
def test_normal_quantiles_are_those_of_the_tables(share: float, z: float) -> None:
    assert normal_quantile(share) == pytest.approx(z, abs=1e-9)
    assert normal_cdf(z) == pytest.approx(share, abs=1e-9)


@pytest.mark.parametrize(
    ("freedom", "share", "t"),
    [
        # The digits of NIST/SEMATECH e-Handbook, 1.3.6.7.2, carried on by scipy.stats; one degree is Cauchy's, exactly.
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
    assert t_quantile(share, freedom) == pytest.approx(t, abs=1e-6)
    assert t_cdf(t, freedom) == pytest.approx(share, abs=1e-9)
    assert t_two_sided(t, freedom) == pytest.approx(2 * (1 - share), abs=1e-9)


@pytest.mark.parametrize(
    ("freedom", "share", "x"),
    # Abramowitz & Stegun, table 26.8.
    [(1, 0.95, 3.84146), (5, 0.05, 1.145476), (5, 0.95, 11.0705), (10, 0.1, 4.86518), (20, 0.99, 37.5662)],
)
def test_chi_squared_quantiles_are_those_of_the_tables(freedom: int, share: float, x: float) -> None:
    assert chi2_quantile(share, freedom) == pytest.approx(x, rel=2e-6)
    assert chi2_cdf(chi2_quantile(share, freedom), freedom) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize(
    ("t", "freedom", "shift", "chance"),
    [
        (0.0, 7, 1.5, 0.0668072013),  # The normal tail of the shift.
        (2.015048373333, 5, 0.0, 0.95),  # Student's t.
        (3.0, 10, 1.0, 0.9470508616928),  # scipy.stats.nct, as the next two.
        (-1.0, 4, 0.5, 0.0861495690366),
        (6.0, 5, 4.0, 0.7870195997316),
    ],
)
def test_noncentral_t_agrees_with_independent_code(t: float, freedom: int, shift: float, chance: float) -> None:
    assert noncentral_t_cdf(t, freedom, shift) == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize(
    ("n", "share", "factor"),
    # One-sided tolerance factors at 95 % confidence: Natrella, Experimental Statistics (NBS Handbook 91), table A-7.
    [(10, 0.90, 2.355), (5, 0.95, 4.203), (20, 0.95, 2.396), (10, 0.99, 3.981)],
)
def test_noncentral_t_gives_the_published_tolerance_factors(n: int, share: float, factor: float) -> None:
    shift = normal_quantile(share) * n**0.5
    assert noncentral_t_cdf((factor - 0.001) * n**0.5, n - 1, shift) < 0.95
    assert noncentral_t_cdf((factor + 0.001) * n**0.5, n - 1, shift) > 0.95


@given(st.floats(1e-9, 1 - 1e-9), st.integers(1, 500))
def test_a_quantile_undoes_its_cdf(share: float, freedom: int) -> None:
    assert t_cdf(t_quantile(share, freedom), freedom) == pytest.approx(share, rel=1e-9, abs=1e-12)
    assert t_quantile(1 - share, freedom) == pytest.approx(-t_quantile(share, freedom), rel=1e-5, abs=1e-9)


def test_many_degrees_of_freedom_are_normal() -> None:
    assert t_quantile(0.975, 10**7) == pytest.approx(normal_quantile(0.975), abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 2.0])
def test_a_quantile_of_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        t_quantile(share, 5)
