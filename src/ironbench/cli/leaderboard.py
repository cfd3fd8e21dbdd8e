"""`ironbench leaderboard`: ranks published results by score, per core, per socket or per unit of money."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.options import FORMAT, JSON, OUTPUT, PRICES


def _per() -> list[str]:
    from ironbench.study.leaderboard import PER

    return list(PER)


def _sorts() -> list[str]:
    from ironbench.study.leaderboard import SORTS

    return list(SORTS)


def leaderboard(
    name: Annotated[
        str, typer.Argument(help="A list of published results (tpce, tpch), or a workload.  [default: all lists]")
    ] = "",
    per: Annotated[
        str, typer.Option(metavar="WHAT", help="Rank by score per `core`, `socket` or `currency`.", autocompletion=_per)
    ] = "",
    sort: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Column to sort by: `score`, `core`, `socket`, `currency`, `system` or `cores`.",
            autocompletion=_sorts,
        ),
    ] = "",
    licence: Annotated[
        str,
        typer.Option(
            metavar="PRICE",
            help="With --per currency: name of the licence in the price sheet.",
        ),
    ] = "",
    prices: PRICES = None,
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Directory of your own records.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: JSON = False,
    output: OUTPUT = "",
    format: FORMAT = "",
) -> int:
    from ironbench.cli.output import destination, write_page
    from ironbench.report.leaderboard import page, rankings

    chosen, path = destination(output, format, json)
    foreign.print_left_out(results)
    return write_page(page(rankings(name, per, sort, licence, prices or (), results)), chosen, path)
