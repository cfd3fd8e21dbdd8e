"""The sections of a lab file: the shared ones, and those that only a declared experiment has."""

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
            "Number of blocks; each block measures every configuration once, in random order.",
            Range(1, 10_000, whole=True, example="6"),
            usual="6 in a lab, 1 in a run",
        ),
    ] = None
    order: Annotated[
        Literal["random", "fixed"],
        row("Order of the configurations within a block; `fixed` is the order of the file.", run=False),
    ] = "random"
    seed: Annotated[
        int | None,
        row(
            "Seed for random order and random values; the same seed reproduces them.",
            Range(0, MOST_WHOLE, whole=True, example="1"),
            usual="derived from the text of the lab file; a run draws a new one",
        ),
    ] = None
    crash: Annotated[
        Literal["", "lose", "subset", "torn"],
        row(
            "Cut the power of emulated devices after each trial. Writes that were not flushed are lost: all (`lose`), "
            "some (`subset`), or in part (`torn`). Then the checks run.",
            metavar="HOW",
        ),
    ] = ""
    margin: Annotated[
        float,
        row(
            "Two configurations are called equivalent if their ratio is between 1/(1+margin) and 1+margin.",
            Range(0.0, 1.0, above=True, example="0.05", note="a fraction; 0.05 is 5%"),
            run=False,
        ),
    ] = 0.05
    metric: Annotated[str, row("The metric that the verdict is based on.", run=False)] = "throughput"
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
            "`slices`: all systems of a block run side by side, and each in turn is driven for about a second "
            "while the others are paused. If `slices` is not possible, `trials` is used, and `lab plan` shows the "
            "reason. `auto`: `slices` where possible. See `docs/understand/slices.md`.",
            run=False,
        ),
    ] = "trials"
    slice: Annotated[
        Time,
        row(
            "Length of a slice, for method `slices`.",
            Range(0.2, 60.0, "s", example="1s"),
            usual="a pilot in the first block chooses the shortest of 0.5, 1, 2 and 5 s with a start-up below 1%",
            run=False,
        ),
    ] = ""
    restore: Annotated[
        Literal["auto", "trial", "block"], row("When to restore the data to their initial state.", run=False)
    ] = "auto"
    quiet: Annotated[
        Time,
        row(
            "Maximum time to wait before a trial until other programs no longer load the machine.",
            Range(0.0, DAY_S, "s", example="30s"),
            run=False,
        ),
    ] = "30s"
    rates: Annotated[
        Literal["auto", "none"] | list[str],
        row(
            "Percentages of the baseline's peak. Configurations are also measured at these rates, so that response "
            "times can be compared at the same load. `auto`: 50%, 70% and 90% if the lab varies the system; "
            "`none`: no such trials.",
            run=False,
        ),
    ] = "auto"
    budget: Annotated[
        Time,
        row(
            "Time budget for the whole run or lab, e.g. 15m; determines the number of blocks and the length of trials.",
            Range(0.0, YEAR_S, "s", above=True, example="15m"),
        ),
    ] = ""
    stages: Annotated[
        int | list[int] | None,
        row(
            "Interim analyses: their number, or a list with the number of blocks before each one, e.g. [6, 4].",
            Range(1, 10_000, whole=True, example="2"),
            run=False,
        ),
    ] = None


class ExpectSection(FieldSection):
    """The author's expectations, which a run can confirm or refute."""

    claims: Annotated[
        list[str],
        row(
            "Expected results, such as `log=memory over log=disk: 1.00 to 1.10` or `order: memory > ssd > disk`. "
            "To use another metric, write its name in parentheses before the colon.",
            run=False,
        ),
    ] = field(default_factory=list)


class PairSection(FieldSection):
    """A command, and a command that undoes it."""

    prepare: Annotated[
        str,
        Meta(
            description="Command to run with `sh -c` in the lab file's directory. `ask: …` prompts a person and waits "
            "for Enter."
        ),
    ] = ""
    cleanup: Annotated[str, Meta(description="Command that undoes `prepare`, run however the lab ends.")] = ""


class LabCommandsSection(CommandsSection):
    """Your own commands, for changes that ironbench cannot make itself. Commands of a factor's value run in addition to
    them."""

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
            description="Combinations of values to measure; the first value of each factor is the baseline. `screen` "
            "is the design of `ironbench tune`."
        ),
    ] = "one-at-a-time"
    vary: Annotated[
        dict[str, list[Any] | str | dict[str, Any]],
        Meta(
            description="Factors and their values. A factor is a list of values for a field, a range such as "
            "`128MB..2GB` (whose two ends are measured), or a table of named values, each of which "
            "can override any fields."
        ),
    ] = field(default_factory=dict)
    cell: Annotated[
        list[dict[str, Any]],
        Meta(
            description="For design `explicit`: the configurations, as tables with factor = value, or with a name "
            "and fields. The first one is the baseline."
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
