"""`ironbench lead`: one system's lead over another, at each number of clients and peak against peak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ironbench.cli.mistakes import number
from ironbench.cli.options import JSON, RESULTS
from ironbench.cli.output import target, write
from ironbench.errors import InputError, nearest
from ironbench.fields.lab import range_of
from ironbench.printer import Printer
from ironbench.records.selection import both
from ironbench.report import lead as report
from ironbench.report.compared import usable
from ironbench.study import lead as analysis
from ironbench.study.archive import Archives
from ironbench.study.lead import Leads


def lead(
    a: Annotated[
        str,
        typer.Argument(
            help="Counts as 1: a record, series, label, cell or level of the lab in --results, or DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="The system to compare with it.")],
    margin: Annotated[
        float,
        typer.Option(
            parser=number("--margin", range_of("measure.margin")),
            metavar="SHARE",
            help="Ratios within it are called equal.",
        ),
    ] = 0.05,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="FILE.html, .png or .json.  [default: text]")
    ] = "",
    results: RESULTS = "ironbench-results",
    json: JSON = False,
) -> int:
    path = _target(output) if output else None
    if path is not None and json:
        raise InputError("--json", "given together with -o, whose name says the format", "name FILE.json")
    sides = both(a, b, results)
    first, second = (usable(one.word, one.records) for one in sides)
    if {one.id for one in first} & {one.id for one in second}:
        raise InputError(b, f"stands for the same records as {a}", "name two systems")
    leads = analysis.leads(a, first, b, second, Archives([one.store for one in sides]), margin)
    printer = Printer()
    if path is not None:
        write(path, _FORMATS[path.suffix.lower()](leads))
        printer.data(output)
    else:
        printer.data(report.document(leads) if json else report.text(leads))
    return 0


def _html(found: Leads) -> bytes:
    from ironbench.report import formats

    return formats.of_page("html")(report.page(found))


_FORMATS: dict[str, Callable[[Leads], bytes]] = {
    ".html": _html,
    ".png": report.png,
    ".json": lambda found: report.document(found).encode(),
}


def _target(output: str) -> Path:
    """InputError: no such format or directory."""
    suffix = Path(output).suffix
    if suffix.lower() not in _FORMATS:
        raise InputError(f"-o {output}", "ends in no format known here", nearest(suffix, list(_FORMATS)))
    return target(output)
