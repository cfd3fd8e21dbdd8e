"""`ironbench compare`: A against B, metric by metric."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.options import BASELINE, JSON, RESULTS
from ironbench.printer import Printer


def compare(
    a: BASELINE,
    b: Annotated[str, typer.Argument(help="What to compare with A.")],
    results: RESULTS = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Show every fact that differs, not only the important ones.")
    ] = False,
    json: JSON = False,
    different_work: Annotated[
        bool, typer.Option("--different-work", help="Compare although options, data or versions differ.")
    ] = False,
) -> int:
    from ironbench.records.selection import both
    from ironbench.report.compared import held_against

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
