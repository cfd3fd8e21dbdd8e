"""`ironbench cost`: bills, and the cheapest system that was shown to meet a target."""

from __future__ import annotations

from typing import Annotated

import typer


def cost(
    selection: Annotated[
        list[str] | None, typer.Argument(help="Records by id, series or label.  [default: all]")
    ] = None,
    target: Annotated[
        str, typer.Option(metavar="TARGET", help='What must be met, e.g. "p99 < 10ms at 5000 tps".')
    ] = "",
    systems: Annotated[
        str, typer.Option(metavar="FILE", help="What would be bought for each system (TOML): see docs/guide/cost.md.")
    ] = "",
    prices: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A price sheet beside the shipped one; again for more.")
    ] = None,
    currency: Annotated[
        str, typer.Option(metavar="CUR", help="Of the bills, e.g. EUR; a price sheet must state the rate.")
    ] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """Say what systems cost, what they do for it, and which is the cheapest that meets a target."""
    from ironbench.cli.costing import asked
    from ironbench.printer import Printer
    from ironbench.report import cost as report

    found = asked(selection or (), target, systems, prices or (), currency, results)
    printer = Printer()
    printer.data(report.document(found) if json else report.text(found, printer.width()))
    return 0
