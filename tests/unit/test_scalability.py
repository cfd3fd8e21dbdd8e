"""The scalability law: published figures, known curves and the misfit of curves that it cannot follow."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ironbench.stats.scalability import Fit, Usl, fitted

CLIENTS = (1, 2, 4, 8, 16, 32, 64)


def noisy(curve: Usl, clients: tuple[int, ...], repeats: int, spread: float, seed: int) -> list[tuple[float, float]]:
    dice = np.random.default_rng(seed)
    return [(n, curve.at(n) * (1 + spread * dice.standard_normal())) for n in clients for _ in range(repeats)]


def fit_of(points: list[tuple[float, float]]) -> Fit:
    found = fitted(points)
    assert found is not None
    return found


def test_the_figures_of_a_published_curve_are_met_to_the_printed_digits() -> None:
    """SPEC SDM91 on a Sun server, from Gunther's book; figures as in the R package `usl` (Möding)."""
    curve = Usl(0.0277285, 0.00010437, 89.9952)
    assert f"{curve.peak_clients:.2f}" == "96.52"
    assert f"{curve.peak_throughput:.1f}" == "1883.9"
    assert f"{curve.asymptote:.1f}" == "3245.6"
    assert f"{curve.knee:.2f}" == "36.06"
    assert f"{curve.at(curve.knee):.1f}" == "1542.4"


def test_a_curve_that_is_still_rising_has_no_known_peak() -> None:
    fit = fit_of([(float(n), Usl(0.1, 0.0, 20.0).at(n)) for n in (1, 4, 8, 16, 32, 64)])
    assert fit.curve.beta == 0
    assert fit.curve.peak_clients == math.inf
    assert fit.peak_is_beyond and not fit.falls


@pytest.mark.parametrize("true", [Usl(0.05, 0.001, 500.0), Usl(0.3, 0.0001, 20.0), Usl(0.0, 0.002, 3e4)])
def test_a_curve_without_noise_is_found_exactly(true: Usl) -> None:
    fit = fit_of([(n, true.at(n)) for n in CLIENTS])
    assert fit.curve.alpha == pytest.approx(true.alpha, abs=1e-6)
    assert fit.curve.beta == pytest.approx(true.beta, rel=1e-4)
    assert fit.curve.gamma == pytest.approx(true.gamma, rel=1e-6)
    assert not fit.misfit


@pytest.mark.parametrize("true", [Usl(0.8, 0.3, 500.0), Usl(1.0, 0.3, 500.0)])
def test_a_curve_that_falls_from_one_client_on_has_its_peak_there(true: Usl) -> None:
    fit = fit_of(noisy(true, CLIENTS, 3, 0.01, 10))
    assert fit.falls and fit.curve.peak_clients == 1.0
    assert fit.curve.peak_throughput == pytest.approx(fit.curve.gamma)


def test_perfect_scaling_has_neither_knee_nor_asymptote() -> None:
    curve = Usl(0.0, 0.0, 100.0)
    assert (curve.knee, curve.asymptote, curve.peak_clients) == (math.inf, math.inf, math.inf)


def test_more_than_proportional_growth_has_negative_contention() -> None:
    assert fit_of(noisy(Usl(-0.02, 0.0005, 100.0), CLIENTS, 6, 0.02, 5)).curve.alpha < 0
    assert fit_of(noisy(Usl(0.02, 0.0005, 100.0), CLIENTS, 6, 0.02, 5)).curve.alpha > 0


def test_fewer_than_four_numbers_of_clients_give_no_curve() -> None:
    assert fitted([(n, 10.0 * n) for n in (1, 2, 3) for _ in range(10)]) is None
    assert fitted([]) is None


def test_trials_without_throughput_are_left_out() -> None:
    good = noisy(Usl(0.05, 0.001, 500.0), CLIENTS, 1, 0.02, 7)
    assert fit_of([*good, (128, 0.0), (256, math.nan)]).last == 64


def test_a_curve_that_the_law_cannot_follow_is_called_a_misfit() -> None:
    def cliff(n: int) -> float:
        return 100.0 * n if n <= 16 else 400.0

    dice = np.random.default_rng(8)
    points = [(float(n), cliff(n) * (1 + 0.01 * dice.standard_normal())) for n in CLIENTS for _ in range(4)]
    assert fit_of(points).misfit
    assert not fit_of(noisy(Usl(0.05, 0.001, 500.0), CLIENTS, 4, 0.01, 8)).misfit
