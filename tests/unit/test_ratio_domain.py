"""The axis of ratios that charts share."""

from __future__ import annotations

import math

import pytest

from ironbench.report.charts import base


@pytest.mark.parametrize(("low", "high"), [(-0.05, 0.05), (-700.0, 700.0), (0.0, 1e6), (-1e6, 0.0)])
def test_an_axis_of_ratios_ends_at_numbers_however_far_ratios_lie_apart(low: float, high: float) -> None:
    first, last = base.ratio_domain(low, high)
    assert 0 < first < last < math.inf
