"""A validated experiment: what is fixed, what is varied, how it is repeated, and what is expected."""

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
    """Something that is varied, with its values in the order of declaration; the first value is the baseline's."""

    name: Name
    levels: Annotated[tuple[Name, ...], Meta(min_length=1)]
    fields: tuple[tuple[Name, ...], ...] = ()
    """For each value, the fields of the lab file that it sets, such as `layout.log`. Empty in labs of earlier versions.
    """

    @property
    def all_fields(self) -> tuple[str, ...]:
        """The fields that any of its values sets."""
        return tuple(dict.fromkeys(field for fields in self.fields for field in fields))

    @property
    def field(self) -> str:
        """The field that the factor is named after: `layout.log` if a factor `log` sets it. Empty if the name is the
        author's own word."""
        return next((one for one in self.all_fields if self.name in (one, one.rpartition(".")[2])), "")

    def fields_of(self, level: str) -> tuple[str, ...]:
        """Returns the fields that a value sets."""
        return dict(zip(self.levels, self.fields, strict=False)).get(level, ())


RATE_FACTOR = "rate"
"""Name of the factor in which fixed-rate configurations differ from those that they repeat."""
BASELINE = "baseline"
"""Name of the baseline of a screen."""


def named(levels: Mapping[str, str], joint: str = " ") -> str:
    """Returns the name of a configuration that is made of factor values: `log=memory clients=8`."""
    return joint.join(f"{factor}={level}" for factor, level in levels.items())


@dataclass(frozen=True, slots=True)
class Configuration:
    """The name of a configuration, or of what several configurations have in common, and what it is made of."""

    name: str
    """Name in records, commands and JSON documents: `log=memory clients=8`."""
    values: tuple[tuple[Factor, str], ...] = ()
    """Factors with their values, if the name is made of these. Empty for a name that is only known as text, such as one
    from the lab file."""
    emulated: bool = False
    """Whether storage was emulated, which every mention must say."""

    @property
    def marked(self) -> str:
        """The name, with a mark if storage was emulated."""
        return f"{self.name} (emulated)" if self.emulated else self.name


NOTHING_ELSE = Configuration("")
"""The common part of two configurations, if a lab varies nothing else."""

VALUE, RATE = "value", "rate"
"""Kinds of claims about one configuration."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of what the author of a lab expects: the text, and what it means."""

    text: str
    kind: str
    """`ratio`: `cells[0]` divided by `cells[1]` is between `low` and `high`; `order`: each configuration is better than
    the next; `value`: the metric of `cells[0]` is between `low` and `high`; `rate`: the rate `low` is sustained. A
    requirement of a run names no configuration and applies to each of them."""
    metric: Name
    cells: tuple[str, ...]
    """Names of configurations."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks that are measured before the next interim analysis."""

    number: StageNumber
    """1-based."""
    blocks: Annotated[int, Meta(ge=1, le=10_000_000)]
    """Number of blocks in this stage."""
    added: bool = False
    """Declared after findings had been seen ("repeat N more"). This stage and the stages after it form a separate
    round, and the verdict of a round uses only its own blocks."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a lab is measured and judged."""

    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    seed: Natural
    margin: Annotated[float, Meta(gt=0, le=100)] = 0.05
    """Two configurations are called equivalent if their ratio is between 1/(1+margin) and 1+margin."""
    metric: Name = "throughput"
    """The metric that the lab's answer is about; other metrics are reported without a verdict."""
    answer: str = ""
    """The factor that the answer is about; empty: the first one."""
    restore: Annotated[str, one_of("auto", "trial", "block")] = "auto"
    """When data are restored to their initial state: before each `trial`, before each `block`, or `auto`."""
    quiet_s: Amount = 30.0
    """Maximum time to wait before a trial until no other program uses the machine."""
    budget_s: Amount | None = None
    budget_for_rates_s: Amount | None = None
    """Smallest budget with enough blocks of fixed-rate configurations for a verdict; None if `budget_s` is sufficient
    or not set."""
    order: Annotated[str, one_of("random", "fixed")] = "random"
    """Order of the configurations in each block: `random`, or `fixed` in the order of their declaration."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """What happens to unflushed writes at a power cut after each trial: `lose`, `subset`, `torn`; empty: no power cut.
    """
    slice_s: Positive | None = None
    """Length of the slices for interleaved measurement of systems; None: each trial runs without interruption."""
    slice_piloted: bool = False
    """`slice_s` is only an assumption of the plan; a pilot in the first block chooses the length."""
    observed: bool = False
    """With slices: one trial of each configuration follows the blocks, with observers and per-statement times."""
    why_trials: str = ""
    """Why the lab measures by whole trials, although slices were requested."""
    duet: bool = False
    """A method of an earlier version: two systems ran at the same time, each on half of the cores, or interleaved if a
    pilot showed that to be more precise. Such labs can be reported but not resumed."""
    dropped: tuple[BlockNumber, ...] = ()
    """Blocks of the first round's last stages that were planned but skipped because a round was added. The interim
    analyses after them still count when alpha is divided, because they were declared together."""

    @property
    def blocks(self) -> int:
        """Number of blocks in all stages."""
        return sum(stage.blocks for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Lab:
    """The complete plan of a lab, made before anything runs."""

    name: Label
    series: Label
    question: str
    factors: tuple[Factor, ...]
    design: Annotated[str, one_of("one-at-a-time", "full", "explicit", "screen")]
    """`one-at-a-time`, `full`, `explicit` or `screen`."""
    setups: Annotated[tuple[Setup, ...], Meta(min_length=1)]
    baseline: Name
    """Name of the configuration that others are compared with."""
    comparisons: tuple[tuple[str, str], ...]
    """Pairs of configuration names (compared, its baseline) that get a finding, in the order of the report."""
    method: Method
    claims: tuple[Claim, ...]
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    """Trials of all stages, in the order they will run, without configurations that cannot be measured here."""
    source: str
    """The lab file's text."""
    estimate_s: Amount = 0.0
    estimate_bytes: Natural = 0
    rated: tuple[Setup, ...] = ()
    """Fixed-rate configurations: the same configurations at percentages of the baseline's peak, so that response times
    are compared under equal load."""
    commands: Commands = NO_COMMANDS
    """The user's commands before the first trial and after the last one."""
    block_commands: Commands = NO_COMMANDS
    """The user's commands before and after each block."""
    folder: str = ""
    """Working directory of the commands: the directory of the lab file."""
    rated_comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of fixed-rate configurations at the same rate; they carry no verdict unless a claim names them."""
    file: str = ""
    """Absolute path of the lab file if the confirmation of a screen needs it again; otherwise empty."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""

    @property
    def every_command(self) -> tuple[Commands, ...]:
        """The distinct commands of lab, blocks and configurations, in this order."""
        every = (self.commands, self.block_commands, *(one for setup in self.setups for one in setup.system.commands))
        return tuple(dict.fromkeys(one for one in every if one))

    @property
    def possible(self) -> list[Setup]:
        """Setups of the configurations that are measured, without the skipped ones."""
        return [setup for setup in self.setups if not setup.skipped]

    @property
    def all_setups(self) -> tuple[Setup, ...]:
        """Setups of every configuration that has planned trials, the fixed-rate ones last."""
        return (*self.setups, *self.rated)

    def setup(self, cell: str) -> Setup:
        """Returns the setup of a configuration by name; raises KeyError."""
        match = next((setup for setup in self.all_setups if setup.cell.name == cell), None)
        if match is None:
            raise KeyError(cell)
        return match

    @property
    def all_factors(self) -> tuple[Factor, ...]:
        """The declared factors, and the rate of fixed-rate configurations."""
        rates = dict.fromkeys(setup.cell.levels[RATE_FACTOR] for setup in self.rated)
        return (
            (*self.factors, Factor(RATE_FACTOR, tuple(rates), (("load.rate",),) * len(rates)))
            if rates
            else self.factors
        )

    def configuration(self, cell: str) -> Configuration:
        """Returns a configuration by name. The name of no configuration of this lab is returned as text."""
        levels = next((setup.cell.levels for setup in self.all_setups if setup.cell.name == cell), {})
        if cell == named(levels):
            return self.made_of(levels)
        base = self.setup(self.baseline).cell.levels
        changed = {factor: level for factor, level in levels.items() if base.get(factor) != level}
        # The confirmation of a screen names only what differs from the baseline.
        return Configuration(cell, self.made_of(changed).values if cell == named(changed, CHANGES) else ())

    def made_of(self, levels: Mapping[str, str]) -> Configuration:
        """Returns the name that is made of these factor values, which may be only some of a configuration's."""
        known = {factor.name: factor for factor in self.all_factors}
        return Configuration(named(levels), tuple((known[name], level) for name, level in levels.items()))


SCREEN = "screen"
"""The design that first screens all factors in few runs, then compares the important factors in new blocks."""


CHANGES = " + "
"""Joins the values that make the name of a configuration of the confirmation."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The round that follows a screen: it compares configurations in new blocks."""

    setups: tuple[Setup, ...]
    """Setups of the configurations that the screen has not measured; the baseline is not among them."""
    comparisons: tuple[tuple[str, str], ...]
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    """The first stage is `added`."""
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    estimate_s: Amount = 0.0


def confirmed(lab: Lab, found: Confirmation | None) -> Lab:
    """Returns the lab of a screen with its confirmation round added."""
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
