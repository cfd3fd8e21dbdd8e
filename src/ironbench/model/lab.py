"""A validated experiment: what is fixed, what is varied, how measurements are repeated, and what the author expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from ironbench.model.commands import NO_COMMANDS, Commands
from ironbench.model.constraints import Amount, BlockNumber, Label, Name, Natural, Positive, StageNumber, one_of
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.system import Setup, Trial


@dataclass(frozen=True, slots=True)
class Factor:
    """A property of the system that is varied, with its values in the order of declaration. The first value is the
    baseline's."""

    name: Name
    levels: Annotated[tuple[Name, ...], Meta(min_length=1)]
    fields: tuple[tuple[Name, ...], ...] = ()
    """For each value of the factor, the lab-file fields that the value sets, such as `layout.log`. Empty in labs of
    earlier versions."""
    words: tuple[Label, ...] = ()
    """Names of the factor's values, such as `stored procedures`. The workload defines these names. Empty unless the
    factor varies a single workload option whose values have names."""

    @property
    def all_fields(self) -> tuple[str, ...]:
        """The fields of the lab file that any of the factor's values sets."""
        return tuple(dict.fromkeys(field for fields in self.fields for field in fields))

    @property
    def field(self) -> str:
        """The lab-file field after which the factor is named. For example, a factor `log` that sets `layout.log` is
        named after this field. Empty if the author chose another name."""
        return next((one for one in self.all_fields if self.name in (one, one.rpartition(".")[2])), "")

    def fields_of(self, level: str) -> tuple[str, ...]:
        """Returns the fields that a value sets."""
        return dict(zip(self.levels, self.fields, strict=False)).get(level, ())

    def words_of(self, level: str) -> str:
        """Returns the workload's name for a value of the factor. Returns an empty text if the value has no such
        name."""
        return dict(zip(self.levels, self.words, strict=False)).get(level, "")


RATE_FACTOR = "rate"
"""Name of the factor for the rate. A fixed-rate configuration differs only in this factor from the configuration that
it repeats."""
BASELINE = "baseline"
"""Name of the baseline of a screen."""


def named(levels: Mapping[str, str], joint: str = " ") -> str:
    """Returns the name of a configuration that consists of factor values, such as `log=memory clients=8`."""
    return joint.join(f"{factor}={level}" for factor, level in levels.items())


@dataclass(frozen=True, slots=True)
class Configuration:
    """The name of a configuration, with the factor values that form the name. The name may also contain only the values
    that several configurations have in common."""

    name: str
    """Name in records, commands and JSON documents, such as `log=memory clients=8`."""
    values: tuple[tuple[Factor, str], ...] = ()
    """The factors and values that form the name. Empty if only the text of the name is known, for example if the lab
    file declares the name."""
    emulated: bool = False
    """Whether storage was emulated. Every page that shows the name must state this."""

    @property
    def marked(self) -> str:
        """The name, with a mark if the storage was emulated."""
        return f"{self.name} (emulated)" if self.emulated else self.name


NOTHING_ELSE = Configuration("")
"""Used for two configurations without a common factor value. These configurations differ in every factor that the lab
varies."""

VALUE, RATE = "value", "rate"
"""Kinds of claims about one configuration."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of what the author of a lab expects: its text and its parsed meaning."""

    text: str
    kind: str
    """Kind of the claim. `ratio`: `cells[0]` divided by `cells[1]` is between `low` and `high`. `order`: each
    configuration is better than the next one. `value`: the metric of `cells[0]` is between `low` and `high`. `rate`:
    the system sustains the rate `low`. A requirement of a run names no configuration and applies to all configurations
    of the run."""
    metric: Name
    cells: tuple[str, ...]
    """Names of the configurations that the claim is about."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Blocks that are measured before the next interim analysis."""

    number: StageNumber
    """1-based number of the stage."""
    blocks: Annotated[int, Meta(ge=1, le=10_000_000)]
    """Number of blocks in this stage."""
    added: bool = False
    """Whether the user added the stage after seeing findings. Such a stage starts a new round, and the verdicts of a
    round are based only on the blocks of that round."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a lab is measured and judged."""

    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    seed: Natural
    margin: Annotated[float, Meta(gt=0, le=100)] = 0.05
    """Equivalence margin: two configurations are equivalent if their ratio is between 1/(1+margin) and 1+margin."""
    metric: Name = "throughput"
    """The metric that the lab's verdicts are about. Other metrics are reported without a verdict."""
    answer: str = ""
    """Name of the factor that answers the lab's question. Empty for the first factor."""
    restore: Annotated[str, one_of("auto", "trial", "block")] = "auto"
    """When data are restored to their initial state: before each `trial`, before each `block`, or `auto`."""
    quiet_s: Amount = 30.0
    """Maximum time to wait before a trial until no other program uses the machine."""
    budget_s: Amount | None = None
    budget_for_rates_s: Amount | None = None
    """Smallest budget that gives fixed-rate configurations enough blocks for a verdict. The value is None if `budget_s`
    is large enough or not set."""
    order: Annotated[str, one_of("random", "fixed")] = "random"
    """Order of the configurations in each block: `random`, or `fixed` in the order of their declaration."""
    crash: Annotated[str, one_of("", "lose", "subset", "torn")] = ""
    """What happens to unflushed writes at the power cut after each trial: `lose`, `subset` or `torn`. Empty if there is
    no power cut.
    """
    profile: ProfileRequest | None = None
    """The stacks to sample during trials, or None if no stacks are sampled."""
    slice_s: Positive | None = None
    """Length of slices in seconds, or None if each trial runs without interruption."""
    slice_piloted: bool = False
    """Whether a pilot in the first block will choose the slice length. Until then, `slice_s` is only an assumption of
    the plan."""
    observed: bool = False
    """For a lab with slices. Whether the lab measures one more trial of each configuration after the blocks, with
    observers and per-statement times."""
    why_trials: str = ""
    """Why the lab measures whole trials although the author requested slices."""
    duet: bool = False
    """Whether the lab uses the method `duet` of an earlier version. Two systems ran at the same time, each on half of
    the cores. If a pilot showed that interleaving was more precise, they were interleaved instead. Such labs can be
    reported but not resumed."""
    dropped: tuple[BlockNumber, ...] = ()
    """For each skipped stage at the end of the first round, its number of blocks. These stages were skipped because the
    user added a round. The interim analyses of skipped stages still count when alpha is divided, because all analyses
    of a round are declared together."""

    @property
    def blocks(self) -> int:
        """Number of blocks in all stages together."""
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
    """Name of the configuration with which other configurations are compared."""
    comparisons: tuple[tuple[str, str], ...]
    """Pairs of configurations that get a finding, in the order of the report. The second configuration of a pair is the
    baseline of the first."""
    method: Method
    claims: tuple[Claim, ...]
    trials: Annotated[tuple[Trial, ...], Meta(min_length=1)]
    """Trials of all stages in the order in which they run, without configurations that cannot be measured on this
    machine."""
    source: str
    """Text of the lab file."""
    estimate_s: Amount = 0.0
    estimate_bytes: Natural = 0
    rated: tuple[Setup, ...] = ()
    """Fixed-rate configurations: the lab's configurations at percentages of the baseline's peak, so that response times
    are compared under equal load."""
    commands: Commands = NO_COMMANDS
    """The user's commands before the first trial and after the last one."""
    block_commands: Commands = NO_COMMANDS
    """The user's commands before and after each block."""
    folder: str = ""
    """Working directory of the commands: the directory of the lab file."""
    rated_comparisons: tuple[tuple[str, str], ...] = ()
    """Pairs of fixed-rate configurations at the same rate. The pairs have no verdict unless a claim names them."""
    file: str = ""
    """Absolute path of the lab file, if the lab is a screen, whose confirmation needs the file again. Otherwise
    empty."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """See `Record.tags`."""

    @property
    def every_command(self) -> tuple[Commands, ...]:
        """The distinct commands of lab, blocks and configurations, in this order."""
        every = (self.commands, self.block_commands, *(one for setup in self.setups for one in setup.system.commands))
        return tuple(dict.fromkeys(one for one in every if one))

    @property
    def measurable(self) -> list[Setup]:
        """Setups of the configurations that are measured; skipped configurations are excluded."""
        return [setup for setup in self.setups if not setup.skipped]

    @property
    def all_setups(self) -> tuple[Setup, ...]:
        """Setups of every configuration that has planned trials, with fixed-rate configurations last."""
        return (*self.setups, *self.rated)

    def setup(self, cell: str) -> Setup:
        """Returns the setup of a configuration by its name. Raises KeyError."""
        match = next((setup for setup in self.all_setups if setup.cell.name == cell), None)
        if match is None:
            raise KeyError(cell)
        return match

    @property
    def all_factors(self) -> tuple[Factor, ...]:
        """The declared factors, and the rate as a factor if the lab has fixed-rate configurations."""
        rates = dict.fromkeys(setup.cell.levels[RATE_FACTOR] for setup in self.rated)
        return (
            (*self.factors, Factor(RATE_FACTOR, tuple(rates), (("load.rate",),) * len(rates)))
            if rates
            else self.factors
        )

    def configuration(self, cell: str) -> Configuration:
        """Returns a configuration by its name. For a name that is not in this lab, returns a `Configuration` with this
        name and without values."""
        levels = next((setup.cell.levels for setup in self.all_setups if setup.cell.name == cell), {})
        if cell == named(levels):
            return self.made_of(levels)
        base = self.setup(self.baseline).cell.levels
        changed = {factor: level for factor, level in levels.items() if base.get(factor) != level}
        # Names in the confirmation of a screen consist only of the factor values that differ from the baseline.
        return Configuration(cell, self.made_of(changed).values if cell == named(changed, CHANGES) else ())

    def made_of(self, levels: Mapping[str, str]) -> Configuration:
        """Returns the `Configuration` whose name consists of these factor values. The values need not cover all factors
        of the lab."""
        known = {factor.name: factor for factor in self.all_factors}
        return Configuration(named(levels), tuple((known[name], level) for name, level in levels.items()))


SCREEN = "screen"
"""Name of the design that screens all factors in few runs and then compares the factors that matter in new blocks."""


CHANGES = " + "
"""Separator of the values in the names of a confirmation's configurations."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The round that follows a screen: it compares configurations in new blocks."""

    setups: tuple[Setup, ...]
    """Setups of the configurations that the screen has not measured. The baseline is not among them."""
    comparisons: tuple[tuple[str, str], ...]
    stages: Annotated[tuple[Stage, ...], Meta(min_length=1)]
    """Stages of the confirmation. In the first stage, `added` is true."""
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
