"""Fits of the scalability laws: published figures, known curves, and intervals with the stated coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ironbench.stats.scalability import Fit, fitted
from ironbench.stats.usl import Usl

# SPEC SDM91 on a Sun server, from Gunther's book; data and figures as in the R package `usl` (Möding).
SPECSDM91 = [(1, 64.9), (18, 995.9), (36, 1652.4), (72, 1853.2), (108, 1828.9), (144, 1775.0), (216, 1702.2)]
RAYTRACER = [
    (1, 20), (4, 78), (8, 130), (12, 170), (16, 190), (20, 200), (24, 210), (28, 230), (32, 260), (48, 280), (64, 310),
]  # fmt: skip
CLIENTS = (1, 2, 4, 8, 16, 32, 64)


def noisy(curve: Usl, clients: tuple[int, ...], repeats: int, spread: float, seed: int) -> list[tuple[float, float]]:
    dice = np.random.default_rng(seed)
    return [(n, curve.at(n) * (1 + spread * dice.standard_normal())) for n in clients for _ in range(repeats)]


def fit_of(points: list[tuple[float, float]], law: str = "usl", *, proportional: bool = True) -> Fit:
    found = fitted(points, law, proportional=proportional)
    assert found is not None
    return found


def test_the_published_fit_is_met_to_the_printed_digits() -> None:
    fit = fit_of([(float(n), x) for n, x in SPECSDM91], proportional=False)
    curve = fit.curve
    assert f"{curve.alpha:.7f}" == "0.0277285"
    assert f"{curve.beta:.8f}" == "0.00010437"
    assert f"{curve.gamma:.4f}" == "89.9952"
    assert f"{curve.peak_clients:.2f}" == "96.52"
    assert f"{curve.peak_throughput:.1f}" == "1883.9"
    assert f"{curve.asymptote:.1f}" == "3245.6"
    assert f"{curve.knee:.2f}" == "36.06"
    assert f"{curve.at(curve.knee):.1f}" == "1542.4"
    assert f"{fit.residual_error:.1f}" == "82.8"


def test_a_curve_that_is_still_rising_has_no_known_peak() -> None:
    fit = fit_of([(float(n), float(x)) for n, x in RAYTRACER], proportional=False)
    assert fit.curve.beta == 0
    assert fit.peak_clients.value == math.inf
    assert fit.peak_clients.low > fit.last
    assert fit.peak_is_beyond
    assert not fit.peak_is_certain
    assert fit.peak_throughput.low < fit.curve.asymptote < fit.peak_throughput.high


@pytest.mark.parametrize("true", [Usl(0.05, 0.001, 500.0), Usl(0.3, 0.0001, 20.0), Usl(0.0, 0.002, 3e4)])
def test_a_curve_without_noise_is_found_exactly(true: Usl) -> None:
    fit = fit_of([(n, true.at(n)) for n in CLIENTS])
    assert fit.curve.alpha == pytest.approx(true.alpha, abs=1e-6)
    assert fit.curve.beta == pytest.approx(true.beta, rel=1e-4)
    assert fit.curve.gamma == pytest.approx(true.gamma, rel=1e-6)


@pytest.mark.parametrize("true", [Usl(0.8, 0.3, 500.0), Usl(1.0, 0.3, 500.0)])
def test_a_curve_that_falls_from_one_client_on_has_its_peak_there(true: Usl) -> None:
    fit = fit_of(noisy(true, CLIENTS, 3, 0.01, 10))
    assert fit.falls and fit.peak_is_certain
    assert (fit.peak_clients.value, fit.peak_clients.low, fit.peak_clients.high) == (1.0, 1.0, 1.0)
    assert fit.peak_throughput == fit.gamma
    assert fit.curve.peak_throughput == pytest.approx(fit.gamma.value)
    assert fit.gamma.low < fit.gamma.value < fit.gamma.high


@pytest.mark.long
def test_perfect_scaling_has_neither_knee_nor_asymptote() -> None:
    curve = Usl(0.0, 0.0, 100.0)
    assert (curve.knee, curve.asymptote, curve.peak_clients) == (math.inf, math.inf, math.inf)
    fit = fit_of(noisy(curve, CLIENTS, 3, 0.02, 4))
    assert fit.knee.high == math.inf
    assert fit.peak_clients.high == math.inf
    assert fit.peak_throughput.low > 0.9 * curve.at(CLIENTS[-1])


def test_more_than_proportional_growth_is_called_superlinear() -> None:
    fit = fit_of(noisy(Usl(-0.02, 0.0005, 100.0), CLIENTS, 6, 0.02, 5))
    assert fit.superlinear
    assert fit.knee.low == math.inf
    assert not fit_of(noisy(Usl(0.02, 0.0005, 100.0), CLIENTS, 6, 0.02, 5)).superlinear


def test_amdahls_law_is_the_same_without_coherency() -> None:
    fit = fit_of(noisy(Usl(0.1, 0.0, 100.0), CLIENTS, 3, 0.02, 6), "amdahl")
    assert fit.curve.beta == 0
    assert fit.alpha.low < 0.1 < fit.alpha.high
    assert fit.peak_throughput.low < 1000 < fit.peak_throughput.high


def test_fewer_than_four_numbers_of_clients_give_no_curve() -> None:
    assert fitted([(n, 10.0 * n) for n in (1, 2, 3) for _ in range(10)]) is None
    assert fitted([]) is None


def test_trials_without_throughput_are_left_out() -> None:
    good = noisy(Usl(0.05, 0.001, 500.0), CLIENTS, 1, 0.02, 7)
    assert fit_of([*good, (128, 0.0), (256, math.nan)]).last == 64


def test_a_curve_that_the_law_cannot_follow_is_called_a_misfit_and_gets_wider_intervals() -> None:
    def cliff(n: int) -> float:
        return 100.0 * n if n <= 16 else 400.0

    dice = np.random.default_rng(8)
    points = [(float(n), cliff(n) * (1 + 0.01 * dice.standard_normal())) for n in CLIENTS for _ in range(4)]
    fit = fit_of(points)
    assert fit.misfit
    assert fit.error > fit.residual_error
    assert not fit_of(noisy(Usl(0.05, 0.001, 500.0), CLIENTS, 4, 0.01, 8)).misfit


def test_the_band_holds_the_curve_and_widens_beyond_what_was_measured() -> None:
    fit = fit_of(noisy(Usl(0.05, 0.001, 500.0), CLIENTS, 3, 0.03, 9))
    inside, outside = fit.band([16, 256])
    assert inside.low < inside.fitted < inside.high
    assert (outside.high - outside.low) / outside.fitted > 3 * (inside.high - inside.low) / inside.fitted


@pytest.mark.long
def test_intervals_hold_as_often_as_they_say() -> None:
    """200 sweeps of 7 numbers of clients, once each: 95% is 181 to 198 of them (binomial, ± 3 standard deviations)."""
    true = Usl(0.05, 0.001, 500.0)
    names = ("alpha", "beta", "gamma", "peak_clients", "peak_throughput")
    held = dict.fromkeys(names, 0)
    for seed in range(200):
        fit = fit_of(noisy(true, CLIENTS, 1, 0.04, seed))
        for name in names:
            estimate = getattr(fit, name)
            held[name] += estimate.low <= getattr(true, name) <= estimate.high
    assert all(count >= 181 for count in held.values()), held
