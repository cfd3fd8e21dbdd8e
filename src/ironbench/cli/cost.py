"""`ironbench cost`: shows cost breakdowns, and the cheapest system that meets a target."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.options import FORMAT, JSON, OUTPUT, PRICES, RESULTS
from ironbench.cli.verdict import REFUTED, SUSPECT
from ironbench.printer import Printer


def cost(
    selection: Annotated[list[str] | None, typer.Argument(help="Record ids, series or labels.  [default: all]")] = None,
    target: Annotated[
        str, typer.Option(metavar="TARGET", help='Target that a system must meet, e.g. "p99 < 10ms at 5000 tps".')
    ] = "",
    systems: Annotated[
        str,
        typer.Option(metavar="FILE", help="TOML file that lists the purchases for each system: see docs/how/cost.md."),
    ] = "",
    prices: PRICES = None,
    currency: Annotated[
        str,
        typer.Option(
            metavar="CUR", help="Currency of the costs, e.g. EUR; a price sheet must contain the exchange rate."
        ),
    ] = "",
    results: RESULTS = "ironbench-results",
    json: JSON = False,
    output: OUTPUT = "",
    format: FORMAT = "",
) -> int:
    from ironbench.cli.output import destination, write_page
    from ironbench.report.cost import compared, doubts, page

    chosen, path = destination(output, format, json)
    if not selection:
        foreign.print_left_out(results)
    result = compared(selection or (), target, systems, prices or (), currency, results)
    write_page(page(result), chosen, path)
    if result.target is None:
        return 0
    missed, reasons = doubts(result)
    if not missed and not reasons:
        return 0
    code = REFUTED if missed else SUSPECT
    Printer().say(f"exit code {code}: {'; '.join(reasons)}")
    return code
