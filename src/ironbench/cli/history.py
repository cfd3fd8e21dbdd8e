"""`ironbench history`: shows a metric of comparable trials over time, with its change points."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.known_names import names_of
from ironbench.cli.options import FORMAT, OUTPUT, RESULTS
from ironbench.errors import InputError


def history(
    selection: Annotated[
        list[str] | None,
        typer.Argument(help="Records, series, labels or lab directories.  [default: all records, including labs]"),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="METRIC",
            help="Metric to show (see `ironbench list metrics`).  [default: the workload's main metric]",
            autocompletion=names_of("metrics"),
        ),
    ] = "",
    by: Annotated[
        str, typer.Option(metavar="ORDER", help="How to order the points: date, commit, version, or tag:KEY for a tag.")
    ] = "date",
    output: OUTPUT = "",
    format: FORMAT = "",
    results: RESULTS = "ironbench-results",
) -> int:
    from ironbench import catalogue
    from ironbench.cli.output import destination, write_page
    from ironbench.records.selection import gathered
    from ironbench.report.history import page
    from ironbench.report.wording import sentences
    from ironbench.study.archive import Archives
    from ironbench.study.history import histories, require_order

    require_order(by)
    if metric:
        catalogue.metric(metric)
    chosen, path = destination(output, format)
    if not selection:
        foreign.print_left_out(results)
    records, stores = gathered(selection or (), results)
    found = histories(records, Archives(stores), metric, by)
    if not found.all:
        why = " ".join(sentences(found.left_out)) or "no usable trials"
        raise InputError(results, f"has no history to show: {why}", "tag trials with --tag, or use another --by")
    return write_page(page(found), chosen, path)
