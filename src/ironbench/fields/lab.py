"""The lab file, and those of its sections that differ from the options of `ironbench run`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from ironbench.fields.row import row, table
from ironbench.fields.sections import CommandsSection, FieldSection, Sections, Tags, Time
from ironbench.ranges import DAY_S, MOST_WHOLE, YEAR_S, Range


class MeasureSection(FieldSection):
    """How trials are repeated and judged."""

    repeats: Annotated[
        int | None,
        row(
            "Number of blocks. Each block measures every configuration once, in random order.",
            Range(1, 10_000, whole=True, example="6"),
            usual="6 in a lab, 1 in a run",
        ),
    ] = None
    order: Annotated[
        Literal["random", "fixed"],
        row("Order of the configurations within a block: `random`, or `fixed` for the order of the file.", run=False),
    ] = "random"
    seed: Annotated[
        int | None,
        row(
            "Seed for the random order of trials and for random values. The same seed gives the same order and values.",
            Range(0, MOST_WHOLE, whole=True, example="1"),
            usual="derived from the text of the lab file; in a run, a new random seed",
        ),
    ] = None
    crash: Annotated[
        Literal["", "lose", "subset", "torn"],
        row(
            "Simulate a power cut of the emulated devices after each trial. The power cut loses all "
            "writes that were not flushed (`lose`), some of these writes (`subset`), or parts of a "
            "write (`torn`). The checks run after the power cut.",
            metavar="HOW",
        ),
    ] = ""
    profile: Annotated[
        str,
        row(
            "Sample the stacks of the engine and of the client during the measured time: `cpu` (while they use a CPU), "
            "`wait` (while they wait) or `all`. `cpu:499` takes 499 samples per second on each CPU instead of 99; the "
            "maximum is 999. See docs/understand/profiles.md.",
            metavar="cpu|wait|all[:HZ]",
        ),
    ] = ""
    margin: Annotated[
        float,
        row(
            "Largest difference that does not matter. Two configurations are equivalent if the whole confidence "
            "interval of the ratio of their results is between 1/(1+margin) and 1+margin.",
            Range(0.0, 1.0, above=True, example="0.05", note="a fraction; 0.05 is 5%"),
            run=False,
        ),
    ] = 0.05
    metric: Annotated[str, row("The metric that is compared for the verdict.", run=False)] = "throughput"
    answer: Annotated[
        str,
        row("The factor that the report's first sentence is about.", usual="the first factor in [vary]", run=False),
    ] = ""
    compare: Annotated[
        list[str],
        row(
            "The comparisons that get a verdict, e.g. `log=memory over log=disk`. Other configurations are "
            "measured and shown without a verdict.",
            usual="the comparisons of the design",
            run=False,
        ),
    ] = field(default_factory=list)
    method: Annotated[
        Literal["trials", "slices", "auto"],
        row(
            "`trials`: the configurations of a block are measured one after another, each without interruption. "
            "`slices`: all systems of a block run side by side, and the load switches from one system to the next "
            "about once per second, while the other systems are paused. If the lab cannot use `slices`, it uses "
            "`trials`, and `lab plan` shows the reason. `auto`: `slices` if possible. See "
            "`docs/understand/slices.md`.",
            run=False,
        ),
    ] = "trials"
    slice: Annotated[
        Time,
        row(
            "Length of a slice, for method `slices`.",
            Range(0.2, 60.0, "s", example="1s"),
            usual="the shortest of 0.5, 1, 2 and 5 s for which resuming a system costs less than 1% of the slice; a "
            "pilot trial in the first block determines this length",
            run=False,
        ),
    ] = ""
    restore: Annotated[
        Literal["auto", "trial", "block"],
        row(
            "When ironbench restores the data to their initial state: before each `trial`, before each `block`, or "
            "`auto` (ironbench decides).",
            run=False,
        ),
    ] = "auto"
    quiet: Annotated[
        Time,
        row(
            "Maximum time that ironbench waits before a trial while other programs keep the machine busy.",
            Range(0.0, DAY_S, "s", example="30s"),
            run=False,
        ),
    ] = "30s"
    rates: Annotated[
        Literal["auto", "none"] | list[str],
        row(
            "Percentages of the baseline's peak throughput. The configurations are also measured at these rates, so "
            "that response times can be compared at the same load. `auto`: 50%, 70% and 90% if the lab varies the "
            "system; `none`: no trials at these rates.",
            run=False,
        ),
    ] = "auto"
    budget: Annotated[
        Time,
        row(
            "Time budget for the whole run or lab, e.g. 15m. ironbench chooses the number of blocks and the length of "
            "trials to fit the budget.",
            Range(0.0, YEAR_S, "s", above=True, example="15m"),
        ),
    ] = ""
    stages: Annotated[
        int | list[int] | None,
        row(
            "Number of analyses, or a list with the number of blocks in each stage. An analysis follows each stage: "
            "for [6, 4], after the first 6 blocks and after 4 more.",
            Range(1, 10_000, whole=True, example="2"),
            run=False,
        ),
    ] = None


class ExpectSection(FieldSection):
    """The results that the author of the lab file expects. The lab confirms or refutes these expectations."""

    claims: Annotated[
        list[str],
        row(
            "Expected results, such as `log=memory over log=disk: 1.00 to 1.10` or `order: memory > ssd > disk`. "
            "To use another metric, write its name in parentheses before the colon.",
            run=False,
        ),
    ] = field(default_factory=list)


class PairSection(FieldSection):
    """A command, and a second command that undoes the first."""

    prepare: Annotated[
        str,
        Meta(
            description="Command to run with `sh -c` in the lab file's directory. `ask: …` prompts a person and waits "
            "for Enter."
        ),
    ] = ""
    cleanup: Annotated[
        str, Meta(description="Command that undoes `prepare`. The command always runs, however the lab ends.")
    ] = ""


class LabCommandsSection(CommandsSection):
    """Your own commands, for changes that ironbench cannot make itself. If a factor's value also has commands, they run
    in addition to the commands of this section."""

    lab: Annotated[
        PairSection, Meta(description="Commands that run once for the whole lab: `lab.prepare`, `lab.cleanup`.")
    ] = field(default_factory=PairSection)
    block: Annotated[PairSection, Meta(description="Commands that run once per block.")] = field(
        default_factory=PairSection
    )


class LabFile(Sections):
    """A declared experiment."""

    question: Annotated[str, Meta(description="The question that the lab should answer, as a sentence. Required.")] = ""
    design: Annotated[
        Literal["one-at-a-time", "full", "explicit", "screen"],
        Meta(
            description="Which combinations of factor values to measure. The baseline has the first value of each "
            "factor. `one-at-a-time`: the baseline, and every other value of each factor with the first values of the "
            "other factors. `full`: all combinations. `explicit`: the combinations in `cell`. `screen`: a screening "
            "design, as in `ironbench tune`."
        ),
    ] = "one-at-a-time"
    vary: Annotated[
        dict[str, list[Any] | str | dict[str, Any]],
        Meta(
            description="Factors and their values. A factor is a list of values for a field, a range such as "
            "`128MB..2GB` (ironbench measures both ends of the range), or a table of named values, each of which "
            "can override any fields."
        ),
    ] = field(default_factory=dict)
    cell: Annotated[
        list[dict[str, Any]],
        Meta(
            description="For design `explicit`: the configurations. Each configuration is a table with factor = value, "
            "or with a name and fields. The first configuration is the baseline."
        ),
    ] = field(default_factory=list)
    commands: LabCommandsSection = field(default_factory=LabCommandsSection)
    tag: Tags = field(default_factory=dict)
    measure: MeasureSection = field(default_factory=MeasureSection)
    expect: ExpectSection = field(default_factory=ExpectSection)


def range_of(path: str) -> Range:
    """Returns the range of a lab file's field, such as `load.rate`."""
    section, _, name = path.partition(".")
    struct = table(LabFile)[section].section
    known = table(struct)[name].row.range if struct else None
    assert known, f"{path} has no range"
    return known
