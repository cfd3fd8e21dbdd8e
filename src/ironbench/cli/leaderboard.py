"""`ironbench leaderboard`: published results ranked by score, per core, per socket or per unit of money."""

from __future__ import annotations

from typing import Annotated

import typer


def leaderboard(
    name: Annotated[
        str, typer.Argument(help="A list of published results (tpce, tpch), or a workload; without one, every list.")
    ] = "",
    per: Annotated[str, typer.Option(metavar="WHAT", help="Rank by score per `core`, `socket` or `currency`.")] = "",
    sort: Annotated[
        str, typer.Option(metavar="COLUMN", help="Another order: score, core, socket, currency, system or cores.")
    ] = "",
    licence: Annotated[
        str, typer.Option(metavar="PRICE", help="Of a price sheet: what --per currency counts for each system.")
    ] = "",
    prices: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="A price sheet beside the shipped one; again for more.")
    ] = None,
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where own records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """Rank published results, and own ones by themselves: never together."""
    from ironbench.cli.ranking import asked
    from ironbench.printer import Printer
    from ironbench.report import leaderboard as report

    found = asked(name, per, sort, licence, prices or (), results)
    printer = Printer()
    printer.data(report.document(found) if json else report.text(found, printer.width()))
    return 0
