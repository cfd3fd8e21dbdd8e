"""In a full design, the joint effect of two changes is compared with their separate effects."""

from __future__ import annotations

from dataclasses import replace

import labfactory
import pytest
from factories import record

from ironbench.model.lab import Lab
from ironbench.model.record import Record, Status
from ironbench.study.factors import interactions

FACTORS = {"log": ("disk", "memory"), "memory": ("64MB", "256MB")}


def measured(lab: Lab, together: float) -> list[Record]:
    """Returns records in which WAL in memory gives 1.5 times the throughput, more memory 2 times, and both `together`
    times the product. Blocks drift."""
    found = []
    for trial in lab.trials:
        levels = trial.cell.levels
        a, b = levels["log"] == "memory", levels["memory"] == "256MB"
        value = 1000.0 * (1 + 0.1 * trial.block) * (1.5 if a else 1) * (2 if b else 1) * (together if a and b else 1)
        found.append(replace(record(throughput=value, block=trial.block, purpose="lab"), cell=trial.cell))
    return found


@pytest.mark.parametrize("together", [0.8, 1.0, 1.25])
def test_effects_that_multiply_have_an_interaction_of_one(together: float) -> None:
    lab = labfactory.lab(FACTORS, blocks=6)
    (found,) = interactions(lab, measured(lab, together))
    assert found.name == "log=memory × memory=256MB"
    assert (found.ratio, found.low, found.high) == pytest.approx((together, together, together))
    assert found.blocks == 6


def test_a_block_that_lacks_one_of_the_four_does_not_enter() -> None:
    lab = labfactory.lab(FACTORS, blocks=6)
    records = measured(lab, 1.0)
    records[0] = replace(records[0], status=Status.FAILED)
    assert interactions(lab, records)[0].blocks == 5


def test_a_block_whose_four_ran_on_two_machines_does_not_enter() -> None:
    lab = labfactory.lab(FACTORS, blocks=6)
    records = measured(lab, 1.0)
    records[0] = replace(records[0], machine="another")
    assert interactions(lab, records)[0].blocks == 5


def test_only_a_full_design_has_interactions() -> None:
    lab = labfactory.lab(FACTORS, blocks=6, full=False)
    assert interactions(lab, measured(lab, 1.0)) == ()
