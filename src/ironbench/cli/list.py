"""`ironbench list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

KINDS = {
    "workloads": "work to drive a database with",
    "engines": "databases that can be started or reached",
    "devices": "modelled storage that can be emulated, and what is built around it",
    "metrics": "the numbers in a record: unit, direction, meaning",
    "observers": "what is sampled during a trial",
    "records": "the trials in --results",
}


def list_(
    kind: Annotated[str, typer.Argument(help=f"{', '.join(KINDS)}; without one, these are named.")] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """List workloads, engines, devices, metrics, observers or records."""
    from ironbench.cli import listing

    return listing.listed(kind, results, json)
