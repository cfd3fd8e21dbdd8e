"""What the slices of a block say of it: their error, and how alike neighbours are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.stats.slices import autocorrelation, figures


def test_the_autocorrelation_of_an_autoregressive_series_is_found() -> None:
    dice = np.random.default_rng(1)
    for r in (0.0, 0.3, 0.8):
        series = [0.0]
        for shock in dice.normal(size=20_000):
            series.append(r * series[-1] + shock)
        assert autocorrelation(series) == pytest.approx(r, abs=0.03)


def test_the_stated_error_of_a_block_is_what_blocks_show() -> None:
    dice = np.random.default_rng(2)
    for r in (0.0, 0.5):
        means, stated = [], []
        for _ in range(400):
            shocks, series = dice.normal(scale=0.05, size=400), [0.0]
            for shock in shocks:
                series.append(r * series[-1] + float(shock))
            rates = [math.exp(7 + one) for one in series[100:]]
            means.append(np.mean(np.log(rates)))
            stated.append(figures(rates)["slice_error"])
        assert np.mean(stated) == pytest.approx(np.std(means), rel=0.12)


@given(st.lists(st.floats(1.0, 1e6), min_size=3, max_size=50), st.floats(1e-3, 1e3))
def test_what_slices_say_does_not_depend_on_the_unit(rates: list[float], factor: float) -> None:
    once, scaled = figures(rates), figures([rate * factor for rate in rates])
    for name in ("slice_spread", "slice_error"):
        assert scaled[name] == pytest.approx(once[name], rel=1e-3, abs=1e-6)


def test_few_slices_or_one_without_work_say_their_number_alone() -> None:
    assert figures([1.0, 2.0]) == {"slices": 2.0}
    assert figures([1.0, 0.0, 2.0]) == {"slices": 3.0}
