"""`ironbench tune`: screens many settings, then compares the important ones in new blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ironbench.cli import lab
from ironbench.cli.options import JSON
from ironbench.errors import in_a_file


@in_a_file()
def tune(
    file: lab.FILE,
    plan: Annotated[
        bool, typer.Option("--plan", help="Dry run: show runs, time, and the minimum detectable effect; start nothing.")
    ] = False,
    budget: lab.BUDGET = "",
    results: lab.RESULTS = "",
    trace: lab.TRACE = "",
    trust: Annotated[
        bool,
        typer.Option(
            "--trust", help="With --plan: also run programs that the lab file names, to check their settings."
        ),
    ] = False,
    json: JSON = False,
) -> int:
    """Screen the factors of a lab file in few runs, then compare those that matter with the baseline in new blocks.

    Each run uses the first or the last value of every factor in [vary]; the first values are the baseline. Continue an
    interrupted screen with `ironbench lab resume`.
    """
    from ironbench.model.lab import SCREEN

    if plan:
        return lab.planned(Path(file), budget, json, SCREEN, trust)
    return lab.measured(Path(file), budget, results, trace, json, SCREEN)
