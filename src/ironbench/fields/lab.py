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
            "Configurations whose ratio is within 1/(1+margin) to 1+margin are called equivalent.",
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
            "The comparisons that get a verdict, e.g. `log=memory over log=disk`. Other configurations are measured "
            "and shown without one.",
            usual="the comparisons of the design",
            run=False,
        ),
    ] = field(default_factory=list)
    method: Annotated[
        Literal["trials", "slices", "auto"],
        row(
            "`trials`: the configurations of a block are measured one after another, each in one piece. `slices`: "
            "their systems run side by side and are driven alternately for about a second each, with the others "
            "paused. Where that is not possible, `trials` is used and `lab plan` shows why. `auto`: `slices` where "
            "possible. See `docs/understand/slices.md`.",
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
            "Maximum wait before a trial for other load on the machine to end.",
            Range(0.0, DAY_S, "s", example="30s"),
            run=False,
        ),
    ] = "30s"
    rates: Annotated[
        Literal["auto", "none"] | list[str],
        row(
            "Percentages of the baseline's peak at which configurations are also measured, so that response times can "
            "be compared at the same load; `auto`: 50%, 70% and 90% if the lab varies the system; `none`: "
            "no such trials.",
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
            "Interim analyses of the findings: their number, or the blocks before each one, e.g. [6, 4].",
            Range(1, 10_000, whole=True, example="2"),
            run=False,
        ),
    ] = None


class ExpectSection(FieldSection):
    """The author's expectations, which a run can confirm or refute."""

    claims: Annotated[
        list[str],
        row(
            "Expected results: `log=memory over log=disk: 1.00 to 1.10` or `order: memory > ssd > disk`. Another "
            "metric is written in parentheses before the colon.",
            run=False,
        ),
    ] = field(default_factory=list)


class PairSection(FieldSection):
    """A command, and one that undoes it."""

    prepare: Annotated[
        str,
        Meta(
            description="Command to run (`sh -c`) in the lab file's directory; `ask: …` prompts a person and waits for "
            "Enter."
        ),
    ] = ""
    cleanup: Annotated[str, Meta(description="Command that undoes `prepare`, however the lab ends.")] = ""


class LabCommandsSection(CommandsSection):
    """Your own commands, for what ironbench cannot vary itself. Commands of a factor's value are added to these."""

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
            description="Factor = list of a field's values, a range `128MB..2GB` (its two ends), or a table of named "
            "values that override any fields."
        ),
    ] = field(default_factory=dict)
    cell: Annotated[
        list[dict[str, Any]],
        Meta(description="For design `explicit`: factor = value, or a name with fields; the first is the baseline."),
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
