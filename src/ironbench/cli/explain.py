"""`ironbench explain`: where the difference of A and B comes from."""

from __future__ import annotations

from typing import Annotated

import typer


def explain(
    a: Annotated[
        str,
        typer.Argument(
            help="The baseline: a record, series, label, cell or level of the lab in --results, or DIR/NAME."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What is held against it.")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to write; without it, text on stdout.")
    ] = "",
    format: Annotated[
        str, typer.Option(help="html, png, svg, md, csv, json or text.  [default: by the name of FILE, else text]")
    ] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Name every fact that differs, not only those that tell.")
    ] = False,
    different_work: Annotated[
        bool, typer.Option("--different-work", help="Explain although options, data or versions differ.")
    ] = False,
) -> int:
    from ironbench.cli.output import destination, written
    from ironbench.views.compare import held_against
    from ironbench.views.explain import page_of
    from ironbench.views.selection import both

    chosen, place = destination(output, format)
    return written(page_of(held_against(*both(a, b, results), different_work), everything), chosen, place)
