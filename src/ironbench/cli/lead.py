"""`ironbench lead`: compares two systems at each number of clients, and their peaks."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.mistakes import number
from ironbench.cli.options import FORMAT, JSON, OUTPUT, RESULTS
from ironbench.cli.output import destination, write_page
from ironbench.errors import InputError
from ironbench.fields.lab import range_of
from ironbench.records.selection import both


def lead(
    a: Annotated[
        str,
        typer.Argument(
            help="The reference: a record, series, label, configuration or factor value of the lab in "
            "--results. To select from another directory of results, write DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="The system to compare with A.")],
    margin: Annotated[
        float,
        typer.Option(
            parser=number("--margin", range_of("measure.margin")),
            metavar="SHARE",
            help="Results that differ by at most this fraction count as equal, e.g. 0.05 for 5%.",
        ),
    ] = 0.05,
    output: OUTPUT = "",
    results: RESULTS = "ironbench-results",
    json: JSON = False,
    format: FORMAT = "",
) -> int:
    from ironbench.report.compare_page import usable
    from ironbench.report.lead import page
    from ironbench.study.archive import Archives
    from ironbench.study.lead import leads

    chosen, path = destination(output, format, json)
    sides = both(a, b, results)
    first, second = (usable(one.word, one.records) for one in sides)
    if {one.id for one in first} & {one.id for one in second}:
        raise InputError(b, f"selects the same records as {a}", "select two different systems")
    found = leads(a, first, b, second, Archives([one.store for one in sides]), margin)
    return write_page(page(found), chosen, path)
