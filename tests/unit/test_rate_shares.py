"""A rate can be a percentage of the baseline's peak."""

from __future__ import annotations

import pytest

from ironbench.errors import InputError
from ironbench.model.system import Cell, Load
from ironbench.plan import budget, design, labfile, rates, resolve

FILE = """
question = "Faster at the same load?"
design = "full"
[workload]
name = "select-only"
[vary]
memory = ["64MB", "256MB"]
rate = ["50%", "70 % of peak", 500]
"""


def test_a_rate_is_a_number_or_a_share_of_the_peak() -> None:
    cells = design.cells(labfile.read(FILE, "x.toml"))
    loads = [resolve.load(cell.sections.load, 1) for cell in cells]
    assert [(load.rate, load.rate_share) for load in loads] == [(None, 0.5), (None, 0.7), (500, None)] * 2
    assert all(rates.open_loop(load) for load in loads)


@pytest.mark.parametrize("told", ["fast", "70", "0%", "100%", "50% of it"])
def test_what_is_no_share_is_refused(told: str) -> None:
    with pytest.raises(InputError) as caught:
        rates.read("load.rate", told)
    assert caught.value.hint


def test_a_share_excludes_think_time_as_a_rate_does() -> None:
    cells = design.cells(labfile.read(FILE + '[load]\nthink_time = "1s"\n', "x.toml"))
    with pytest.raises(InputError):
        resolve.load(cells[0].sections.load, 1)


def test_systems_are_compared_at_each_rate_and_not_one_rate_with_another() -> None:
    declared = labfile.read(FILE, "x.toml")
    pairs = design.comparisons(declared, design.cells(declared))
    assert pairs == tuple(
        (f"memory=256MB rate={rate}", f"memory=64MB rate={rate}") for rate in ("50%", "70 % of peak", "500")
    )


def test_the_rate_follows_from_the_peak_and_stays_open_until_it_is_known() -> None:
    cell = Cell("rate=70%", Load(4, rate_share=0.7))
    assert rates.at_peak(cell, None) == cell
    assert rates.at_peak(cell, 1000.0).load.rate == 700
    assert rates.closed(rates.at_peak(cell, 1000.0)).load == Load(4)


def test_the_estimate_counts_the_trials_of_the_peak() -> None:
    cells = budget.LabTimes(own_s=(None, None), around_s=(8.0, 8.0), once_s=10.0, peak_trials=3)
    assert cells.lab_s(10.0, 6) == 10 + 3 * 18 + 6 * 36
