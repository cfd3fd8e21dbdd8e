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
        bool,
        typer.Option(
            "--plan",
            help="Dry run: show trials, time, and the minimum detectable effect, without starting anything.",
        ),
    ] = False,
    budget: lab.BUDGET = "",
    results: lab.RESULTS = "",
    trace: lab.TRACE = "",
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="With --plan: also run the database programs that the lab file names (`bin`), to check the engine's "
            "settings.",
        ),
    ] = False,
    json: JSON = False,
) -> int:
    """Screen the factors of a lab file in few trials, then compare the factors that matter with the baseline in new
    blocks.

    Each trial uses the first or the last value of every factor in [vary]; the first values are the baseline.
    `ironbench lab resume` continues an interrupted screening.
    """
    from ironbench.model.lab import SCREEN

    if plan:
        return lab.planned(Path(file), budget, json, SCREEN, trust)
    return lab.measured(Path(file), budget, results, trace, json, SCREEN)
