"""Manual changes are requested once per block, in random order, and again in each block."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from labfactory import lab as made

from ironbench.errors import InputError
from ironbench.fields.sections import CommandsSection
from ironbench.model.commands import Commands
from ironbench.model.lab import Lab, Stage
from ironbench.model.system import Cell, Load, Setup
from ironbench.plan import blocks, commands, design, labfile

DRIVER = Commands("ask: install it", "ask: take it out", of="driver=new")
CELLS = [Cell(f"driver={driver} clients={count}", Load(count)) for driver in ("old", "new") for count in (1, 2, 4)]
PLOTS = {cell.name: "new" if "new" in cell.name else "" for cell in CELLS}


def order(seed: int, plots: Mapping[str, str] = PLOTS) -> list[list[str]]:
    found = blocks.trials(CELLS, [Stage(1, 8)], seed, "random", plots=plots)
    return [[trial.cell.name for trial in found if trial.block == block] for block in range(8)]


def test_cells_of_one_plot_come_together_and_every_cell_comes_once() -> None:
    for names in order(1):
        assert sorted(names) == sorted(PLOTS)
        assert len({PLOTS[name] for name in names[:3]}) == 1


def test_which_plot_comes_first_and_the_order_within_it_are_random() -> None:
    firsts = Counter(PLOTS[names[0]] for seed in range(50) for names in order(seed))
    assert 150 < firsts["new"] < 250  # 200 of 400 expected, standard deviation 10
    assert len({tuple(names) for names in order(1)}) > 4


def test_nothing_by_hand_leaves_the_order_as_it_was() -> None:
    assert order(3, {}) == order(3, dict.fromkeys(PLOTS, ""))


def test_a_plot_never_spans_two_blocks() -> None:
    lab = asking(4)
    made_anew = [trial for trial in lab.trials if "new" in trial.cell.name]
    stacks = [commands.scopes(lab, lab.setup(trial.cell.name), trial) for trial in made_anew]
    for stack, other in itertools.pairwise(stacks):
        same_block = stack[1] == other[1]
        assert commands.shared(stack, other) == (3 if same_block else 1)


def test_a_person_is_asked_twice_a_block_to_change_and_to_undo() -> None:
    assert commands.asks(asking(6)) == 12


def asking(count: int) -> Lab:
    base = made({"driver": ("old", "new")})
    setups = tuple(
        Setup(
            cell,
            replace(base.setups[0].system, commands=(DRIVER,) if "new" in cell.name else ()),
            base.setups[0].choice,
        )
        for cell in CELLS
    )
    trials = blocks.trials(CELLS, [Stage(1, count)], 5, "random", plots=commands.plots(setups))
    return replace(base, setups=setups, rated=(), trials=trials)


START = 'question = "Does it matter?"\ndesign = "full"\n[workload]\nname = "igen-oltp"\n'


def test_commands_of_several_factors_add_up_in_the_order_of_the_factors() -> None:
    text = """
[commands]
command_limit = "9s"
[vary.governor]
slow = {}
fast = { prepare = "governor fast" }
[vary.readahead]
little = {}
much = { prepare = "readahead much", command_limit = "7s", memory = "1GB" }
"""
    cells = design.cells(labfile.read(START + text, "x.toml"))
    added = {cell.name: [(of, one.prepare, one.command_limit) for of, one in cell.added] for cell in cells}
    assert added["governor=fast readahead=much"] == [
        ("governor=fast", "governor fast", "9s"),
        ("readahead=much", "readahead much", "7s"),
    ]
    assert added["governor=slow readahead=little"] == []


@pytest.mark.parametrize(
    ("pair", "cause"),
    [
        ({"prepare": "ask:"}, "has no text after `ask:`"),
        ({"prepare": "x" * 1001}, "more than 1000 characters"),
        ({"command_limit": "0s"}, "out of range"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused(pair: dict[str, str], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        commands.read(CommandsSection(**pair), "trial")
