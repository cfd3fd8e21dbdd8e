"""`ironbench lab`: declared experiments. One function per verb; heavy imports wait until one runs."""

from __future__ import annotations

from typing import Annotated

import typer

from ironbench.cli.mistakes import whole

app = typer.Typer(
    name="lab",
    help="Run a declared experiment: what varies, how often, in which order, and what follows from it.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FILE = Annotated[str, typer.Argument(help="A lab file (TOML).")]
BUDGET = Annotated[
    str, typer.Option(metavar="TIME", help="Time for the whole lab, e.g. 15m: chooses repeats and trial lengths.")
]
JSON = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
CHANGED = Annotated[
    bool, typer.Option("--changed", help="Go on although the lab file, a program or the machine has changed.")
]


TRACE = Annotated[
    str,
    typer.Option(metavar="DIR", help="Where Parquet traces of emulated devices go, one of every trial and device."),
]


@app.command("plan")
def plan(file: FILE, budget: BUDGET = "", json: JSON = False) -> int:
    """Show what a lab will do: cells, order, time, space, and how small a difference it can resolve. Starts nothing."""
    from ironbench.cli import planning

    return planning.planned(file, budget, json)


@app.command("run")
def run(
    file: FILE,
    budget: BUDGET = "",
    results: Annotated[
        str,
        typer.Option(
            metavar="DIR", help="Directory for this lab alone.  [default: ironbench-results/labs/NAME-SERIES]"
        ),
    ] = "",
    trace: TRACE = "",
    json: JSON = False,
) -> int:
    """Run a lab from its beginning: every planned trial, in blocks of random order, then the verdict."""
    from ironbench.cli import conducting

    return conducting.run(file, budget, results, json, trace)


@app.command("resume")
def resume(
    lab: Annotated[str, typer.Argument(help="A lab's directory, or its file: then the newest directory of it.")],
    changed: CHANGED = False,
    failed: Annotated[bool, typer.Option("--failed", help="Try trials again that were given up as failed.")] = False,
    more: Annotated[
        int | None,
        typer.Option(
            parser=whole("--more", "blocks"),
            metavar="N",
            help="Measure N blocks more, 6 at least, as a round of their own.",
        ),
    ] = None,
    trace: TRACE = "",
    json: JSON = False,
) -> int:
    """Go on with a lab that was interrupted: exactly what is missing, in the planned order."""
    from ironbench.cli import conducting

    return conducting.resume(lab, changed, failed, more, json, trace)


@app.command("noise")
def noise(
    file: FILE,
    blocks: Annotated[
        int, typer.Option(parser=whole("--blocks"), metavar="N", help="How often each side is measured.")
    ] = 10,
    json: JSON = False,
) -> int:
    """Run a lab's baseline against itself: what differs then is the noise of this machine, kept for later findings."""
    from ironbench.cli import conducting

    return conducting.noise(file, blocks, json)
