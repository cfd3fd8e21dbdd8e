"""Variation of the slices in a block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ironbench.stats.slices import figures


@given(st.lists(st.floats(1.0, 1e6), min_size=3, max_size=50), st.floats(1e-3, 1e3))
def test_what_slices_say_does_not_depend_on_the_unit(rates: list[float], factor: float) -> None:
    once, scaled = figures(rates), figures([rate * factor for rate in rates])
    assert scaled["slice_spread"] == pytest.approx(once["slice_spread"], rel=1e-3, abs=1e-6)


def test_few_slices_or_one_without_work_say_their_number_alone() -> None:
    assert figures([1.0, 2.0]) == {"slices": 2.0}
    assert figures([1.0, 0.0, 2.0]) == {"slices": 3.0}
