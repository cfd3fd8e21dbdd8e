"""`ironbench compare`: compares system A with system B, metric by metric."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli import foreign
from ironbench.cli.options import BASELINE, FORMAT, JSON, OUTPUT, RESULTS


def compare(
    a: BASELINE,
    b: Annotated[str, typer.Argument(help="The record, series, label, … to compare with A; same syntax as A.")],
    results: RESULTS = "ironbench-results",
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show all differences in machine, versions and settings, not only the important ones."
        ),
    ] = False,
    json: JSON = False,
    different_work: Annotated[
        bool,
        typer.Option(
            "--different-work", help="Compare even if the workload's options, data or version differ between A and B."
        ),
    ] = False,
    output: OUTPUT = "",
    format: FORMAT = "",
) -> int:
    from ironbench.cli.output import destination, write_page
    from ironbench.records.selection import both
    from ironbench.report.breakdown import section
    from ironbench.report.compare_page import compare_named, page

    chosen, path = destination(output, format, json)
    if foreign.any_named((a, b), results):
        from ironbench.report.foreign import resolved, side_by_side

        return write_page(side_by_side(resolved(a, results), resolved(b, results)), chosen, path)
    compared = compare_named(*both(a, b, results), different_work)
    explained = section(compared.explained(), chart=False) if compared.usable else None
    return write_page(page(compared.found, everything, compared.pairs, explained), chosen, path)
