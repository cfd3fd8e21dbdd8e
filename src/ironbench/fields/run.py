"""The options of `ironbench run` as a document, and the section of options that lab files do not have."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from ironbench.fields.lab import MeasureSection
from ironbench.fields.row import row
from ironbench.fields.sections import DeviceSection, FieldSection, Sections, Tags
from ironbench.ranges import Range


class RunSection(FieldSection):
    """How the command itself works."""

    observe: Annotated[
        bool, row("Sample system and server statistics during trials.", option=("--observe/--no-observe",))
    ] = True
    progress: Annotated[
        int | None,
        row(
            "Print transactions per second, response time and failures on stderr every N seconds.",
            Range(1, 86400, whole=True, example="5"),
            option=("--progress", "-P"),
        ),
    ] = None
    log_transactions: Annotated[
        str,
        row(
            "Write a line for each measured transaction to this new file, in the format of `pgbench -l`. If there "
            "are several trials, each trial writes to a separate file, FILE.ID.",
            metavar="FILE",
        ),
    ] = ""
    sampling_rate: Annotated[
        float,
        row(
            "Fraction of the transactions that `--log-transactions` writes, from 0 to 1.",
            Range(0.0, 1.0, above=True, example="0.1"),
        ),
    ] = 1.0
    trace: Annotated[
        str, row("Write every I/O of emulated devices to Parquet files in this directory.", metavar="DIR")
    ] = ""
    require: Annotated[
        list[str],
        row(
            'Requirement for each configuration, e.g. "p99 < 10ms" or "rate = 200/s"; may be repeated. The '
            "exit code is 4 if the whole confidence interval violates the requirement, and 3 if the result is "
            "inconclusive.",
            metavar="LIMIT",
        ),
    ] = field(default_factory=list)
    results: Annotated[str, row("Directory for records.", metavar="DIR", variable="IRONBENCH_RESULTS")] = (
        "ironbench-results"
    )
    plan: Annotated[
        bool, row("Dry run: show what the run would do and how long it would take, without starting anything.")
    ] = False
    resume: Annotated[bool, row("Continue the newest run with the same system, workload and load.")] = False
    json: Annotated[bool, row("Print one JSON document on stdout.")] = False


class RunFile(Sections):
    """The options of `ironbench run` as a document."""

    measure: MeasureSection = field(default_factory=MeasureSection)
    every_device: DeviceSection = field(default_factory=DeviceSection)
    """Defaults for each emulated device that the layout names."""
    tag: Tags = field(default_factory=dict)
    run: RunSection = field(default_factory=RunSection)
    sweep: list[int] = field(default_factory=list)
    """Numbers of clients to measure. If empty, only `load.clients` is measured."""
