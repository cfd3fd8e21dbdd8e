"""`ironbench show`: one thing, whole."""

from __future__ import annotations

from typing import Annotated

import typer


def show(
    name: Annotated[str, typer.Argument(help="A record, series, label, workload, engine, metric or observer.")],
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Of a record, also the engine's settings that are at their default.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """Show a record, workload, engine, metric or observer."""
    from ironbench.cli import showing

    return showing.shown(name, results, json, everything)
