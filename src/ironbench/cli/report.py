"""`ironbench report`: writes a report of records."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.options import FORMAT, OUTPUT, RESULTS
from ironbench.words import counted


def report(
    selection: Annotated[
        list[str] | None,
        typer.Argument(help="Records, series, labels or lab directories.  [default: all records]"),
    ] = None,
    output: OUTPUT = "",
    format: FORMAT = "",
    results: RESULTS = "ironbench-results",
) -> int:
    from ironbench.cli.output import delivered, destination

    chosen, place = destination(output, format)
    if selection and foreign.any_named(selection, results):
        from ironbench.report import formats
        from ironbench.report.foreign import pages

        return delivered(formats.of_pages(chosen)(pages(selection, results)), place, "report of foreign records:")
    if not selection:
        foreign.print_left_out(results)
    from ironbench.report.studies import rendered  # imports numpy, which is not needed to report an input error

    data, trials = rendered(selection or [], results, chosen)
    return delivered(data, place, f"report of {counted(trials, 'trial')}:")
