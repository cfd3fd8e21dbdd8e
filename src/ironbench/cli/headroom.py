"""`ironbench headroom`: the highest rate within a response time limit, and how far today's load can grow."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.mistakes import number
from ironbench.cli.options import FORMAT, JSON, OUTPUT, RESULTS
from ironbench.cli.output import destination, write_page
from ironbench.cli.verdict import REFUTED, SUSPECT
from ironbench.fields.lab import range_of
from ironbench.plan import requirements
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.records.selection import gathered
from ironbench.study.archive import Archives


def headroom(
    selection: Annotated[
        list[str] | None,
        typer.Argument(help="Lab directories, configurations, records, series or labels.  [default: all]"),
    ] = None,
    limit: Annotated[
        str, typer.Option(metavar="LIMIT", help='Upper bound of a response time, e.g. "p99 < 20ms".')
    ] = "p99 < 20ms",
    today: Annotated[
        float | None,
        typer.Option(
            parser=number("--today", range_of("load.rate")),
            metavar="RATE",
            help="Today's peak load in transactions per second; the result shows by how much it can grow.",
        ),
    ] = None,
    results: RESULTS = "ironbench-results",
    json: JSON = False,
    output: OUTPUT = "",
    format: FORMAT = "",
) -> int:
    from ironbench.report.headroom import page, reasons
    from ironbench.study.headroom import headroom as measured

    chosen, path = destination(output, format, json)
    claim = requirements.bound(limit, "--limit")
    if not selection:
        foreign.print_left_out(results)
    records, stores = gathered(selection or (), results)
    labs = [one for store in stores if (one := LabDirectory(store.directory)).begun()]
    order = [setup.cell.name for one in labs for setup in one.lab().all_setups]
    found = measured(records, claim, today, Archives(stores), order)
    write_page(page(found), chosen, path)
    if found.decided and not found.exceeded:
        return 0
    code = REFUTED if found.exceeded else SUSPECT
    Printer().say(f"exit code {code}: {' '.join(reasons(found))}")
    return code
