"""Each block contains every configuration once, in an order determined by the seed."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from ironbench.model.lab import Stage
from ironbench.model.system import Cell, Load
from ironbench.plan import blocks

CELLS = [Cell(f"clients={n}", Load(clients=n)) for n in (1, 2, 4, 8)]


@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(0, 5))
def test_every_block_holds_every_cell_once_and_blocks_go_on_counting(seed: int, first: int, second: int) -> None:
    stages = [Stage(1, first), *([Stage(2, second)] if second else [])]
    found = blocks.trials(CELLS, stages, seed, "random")
    assert [trial.block for trial in found] == sorted(trial.block for trial in found)
    for block, trials in groupby(found, lambda trial: trial.block):
        members = list(trials)
        assert sorted(one.cell.name for one in members) == sorted(cell.name for cell in CELLS)
        assert {one.stage for one in members} == {1 if block < first else 2}
    assert len(found) == len(CELLS) * (first + second)


def test_the_same_seed_gives_the_same_order_and_another_seed_another() -> None:
    def order(seed: int) -> list[str]:
        return [trial.cell.name for trial in blocks.trials(CELLS, [Stage(1, 8)], seed, "random")]

    assert order(1) == order(1) != order(2)


def test_a_block_added_later_does_not_change_those_before() -> None:
    few, many = (blocks.trials(CELLS, [Stage(1, count)], 7, "random") for count in (6, 9))
    assert many[: len(few)] == few


def test_a_fixed_order_is_that_of_the_file() -> None:
    found = blocks.trials(CELLS, [Stage(1, 3)], 1, "fixed")
    assert [trial.cell for trial in found] == CELLS * 3


@given(st.integers(1, 200), st.integers(1, 6))
def test_stages_contain_all_blocks_and_the_first_analysis_follows_block_six(count: int, analyses: int) -> None:
    found = blocks.stages(count, analyses)
    assert sum(stage.blocks for stage in found) == count
    assert [stage.number for stage in found] == list(range(1, len(found) + 1))
    assert len(found) <= analyses
    assert found[0].blocks >= min(count, blocks.FIRST)
    assert all(stage.blocks >= 1 for stage in found)
