"""A declared experiment, validated: what is held, what is varied, how it is repeated, what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from ironbench.model.commands import NO_COMMANDS, Commands
from ironbench.model.constraints import Amount, BlockNumber, Label, Name, Natural, Positive, StageNumber, one_of
from ironbench.model.system import Setup, Trial


@dataclass(frozen=True, slots=True)
class Factor:
    """Something that is varied, and its levels in the order they were declared; the first is the baseline's."""

    name: Name
    levels: Annotated[tuple[Name, ...], Meta(min_length=1)]


VALUE, RATE = "value", "rate"
"""Kinds of claims about one configuration."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the author of a lab expects, as it was written, and what that means."""

    text: str
    kind: str
    """`ratio`: `cells[0]` over `cells[1]` lies in `low` to `high`; `order`: each cell is better than the next; `value`:
    the metric of `cells[0]` lies in `low` to `high`; `rate`: the rate `low` is sustained. A requirement of a run names
    no cell and is about each configuration."""
    metric: Name
    cells: tuple[str, ...]
    """Names of cells."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks that are measured before the next look at the findings."""

    number: StageNumber
    """1-based."""
    blocks: Annotated[int, Meta(ge=1, le=10_000_000)]
    """In this stage alone."""
    added: bool = False
    """Declared after findings had been seen ("repeat N more"): it and the stages after it are a round of their own,
    judged on its own blocks alone."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a lab is measured and judged."""

    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    seed: Natural
    margin: Annotated[float, Meta(gt=0, le=100)] = 0.05
    """Two cells whose ratio lies within 1/(1+margin) to 1+margin are called equivalent."""
    metric: Name = "throughput"
    """The one that the lab's answer is about; others are reported without deciding anything."""
    restore: Annotated[str, one_of("auto", "trial", "block")] = "auto"
    """When data go back to their first state: before each `trial`, before each `block`, or `auto`."""
    quiet_s: Amount = 30.0
    """How long to wait at most for a machine without other load before a trial."""
    budget_s: Amount | None = None
    budget_for_rates_s: Amount | None = None
    """The least that holds as many blocks of rated cells as a verdict needs; None where `budget_s` does, or is None."""
    order: Annotated[str, one_of("random", "fixed")] = "random"
    """Of the cells in each block: `random`, or `fixed` as they are declared."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """What a power cut after each trial makes of unflushed writes: `lose`, `subset`, `torn`; empty: there is none."""
    slice_s: Positive | None = None
    """Length of the slices that systems side by side are measured in; None: each trial is one piece."""
    slice_piloted: bool = False
    """`slice_s` is what the plan reckons with; a pilot in the first block chooses."""
    observed: bool = False
    """By slices: one trial of each configuration follows the blocks, with observers and statement times."""
    why_trials: str = ""
    """Why it is, although slices were asked for."""
    duet: bool = False
    """Of an earlier version: two systems were driven at once, each on one half of the cores, or by turns where a pilot
    found those more precise. Such labs are reported and not resumed."""
    dropped: tuple[BlockNumber, ...] = ()
    """Blocks of the first round's last stages, planned and never begun because a round was added. The looks at it were
    declared with them, so they have their share of its level."""

    @property
    def blocks(self) -> int:
        """Of all stages."""
        return sum(stage.blocks for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Lab:
    """Everything that will be done, before anything is."""

    name: Label
    series: Label
    question: str
    factors: tuple[Factor, ...]
    design: Annotated[str, one_of("one-at-a-time", "full", "explicit", "screen")]
    """`one-at-a-time`, `full`, `explicit` or `screen`."""
    setups: Annotated[tuple[Setup, ...], Meta(min_length=1)]
    baseline: Name
    """Name of the cell that others are compared with."""
    comparisons: tuple[tuple[str, str], ...]
    """Pairs of cell names (compared, its baseline) that findings are made of, in the order they are reported."""
    method: Method
    claims: tuple[Claim, ...]
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    """Of all stages, in the order they will run; impossible cells left out."""
    source: str
    """The lab file's text."""
    estimate_s: Amount = 0.0
    estimate_bytes: Natural = 0
    rated: tuple[Setup, ...] = ()
    """Cells once more at shares of the baseline's peak: there response times are those of the same load."""
    commands: Commands = NO_COMMANDS
    """Of the user: before the first trial and after the last one;"""
    block_commands: Commands = NO_COMMANDS
    """the same of each block."""
    folder: str = ""
    """In which commands run: that of the lab file."""
    rated_comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of rated cells at one rate; they carry no verdict unless a claim names them."""
    file: str = ""
    """Absolute path of the lab file, where a screen's confirmation needs it again; empty otherwise."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""

    @property
    def every_command(self) -> tuple[Commands, ...]:
        """Those of lab, blocks and cells, each once, in this order."""
        every = (self.commands, self.block_commands, *(one for setup in self.setups for one in setup.system.commands))
        return tuple(dict.fromkeys(one for one in every if one))

    @property
    def possible(self) -> list[Setup]:
        """Of the cells that are measured: without those that are skipped."""
        return [setup for setup in self.setups if not setup.skipped]

    @property
    def all_setups(self) -> tuple[Setup, ...]:
        """Of every cell that trials are planned for, rated ones last."""
        return (*self.setups, *self.rated)

    def setup(self, cell: str) -> Setup:
        """The setup of a cell by its name; KeyError."""
        match = next((setup for setup in self.all_setups if setup.cell.name == cell), None)
        if match is None:
            raise KeyError(cell)
        return match


SCREEN = "screen"
"""The design whose first stage screens all factors in few runs; what matters is compared in fresh blocks then."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a screen makes of its findings: cells that are compared in fresh blocks, a round of their own."""

    setups: tuple[Setup, ...]
    """Of the cells that the screen has not measured; the baseline it has."""
    comparisons: tuple[tuple[str, str], ...]
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    """The first is `added`."""
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    estimate_s: Amount = 0.0


def confirmed(lab: Lab, found: Confirmation | None) -> Lab:
    """The lab of a screen with what it goes on with."""
    if found is None:
        return lab
    return replace(
        lab,
        setups=(*lab.setups, *found.setups),
        comparisons=found.comparisons,
        method=replace(lab.method, stages=(*lab.method.stages, *found.stages)),
        trials=(*lab.trials, *found.trials),
        estimate_s=lab.estimate_s + found.estimate_s,
    )
