"""`ironbench report`: a report of records."""

from __future__ import annotations

from typing import Annotated

import typer

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
    from ironbench.report.studies import rendered  # imports numpy, which a refusal need not wait for

    data, trials = rendered(selection or [], results, chosen)
    return delivered(data, place, f"report of {counted(trials, 'trial')}:")
