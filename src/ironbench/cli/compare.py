"""`ironbench compare`: A against B, metric by metric."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.printer import Printer


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="The baseline: a record, series, label, cell or level of the lab in --results, or DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What to compare with A.")],
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Show every fact that differs, not only the important ones.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    different_work: Annotated[
        bool, typer.Option("--different-work", help="Compare although options, data or versions differ.")
    ] = False,
) -> int:
    from ironbench.views.compare import held_against
    from ironbench.views.selection import both

    held = held_against(*both(a, b, results), different_work)
    if json:
        from ironbench.report.comparison import document

        Printer().data(document(held.found, held.pairs))
        return 0
    from ironbench.report.comparison import text
    from ironbench.report.walk import section

    explained = section(held.explained(), chart=False) if held.usable else None
    Printer().data(text(held.found, everything, held.pairs, explained))
    return 0
