"""`ironbench explain`: shows the causes of the difference between A and B."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.options import BASELINE, FORMAT, OUTPUT, RESULTS


def explain(
    a: BASELINE,
    b: Annotated[str, typer.Argument(help="The record, series, label, … to compare with A; same syntax as A.")],
    output: OUTPUT = "",
    format: FORMAT = "",
    results: RESULTS = "ironbench-results",
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show all differences in machine, versions and settings, not only the relevant ones."
        ),
    ] = False,
    different_work: Annotated[
        bool,
        typer.Option(
            "--different-work", help="Explain even if the workload's options, data or version differ between A and B."
        ),
    ] = False,
) -> int:
    from ironbench.cli.output import destination, write_page
    from ironbench.records.selection import both
    from ironbench.report.compare_page import compare_named
    from ironbench.report.explain_page import page as page_of

    chosen, path = destination(output, format)
    return write_page(page_of(compare_named(*both(a, b, results), different_work), everything), chosen, path)
