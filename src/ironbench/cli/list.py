"""`ironbench list`: what there is."""

from __future__ import annotations

from typing import Annotated

import typer

KINDS = ("workloads", "engines", "metrics", "observers", "records")


def list_(
    kind: Annotated[str, typer.Argument(help="workloads, engines, metrics, observers or records.")],
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
    json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> int:
    """List workloads, engines, metrics, observers or records."""
    from ironbench.cli import listing

    return listing.listed(kind, results, json)
