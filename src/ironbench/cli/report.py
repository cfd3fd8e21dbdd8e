"""`ironbench report`: the records, written down for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    selection: Annotated[
        list[str] | None,
        typer.Argument(help="Records, series or labels, or directories of labs; nothing selects all records."),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Where to write; without it, text on stdout.")
    ] = "",
    format: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="html, png, svg, md, csv, json or text.  [default: by the name of FILE, else text]"
        ),
    ] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
) -> int:
    from ironbench.cli.output import target, write
    from ironbench.cli.selection import rendered
    from ironbench.errors import InputError
    from ironbench.printer import Printer
    from ironbench.report import formats
    from ironbench.words import counted

    printer = Printer()
    chosen = _format(output, format)
    if not format and chosen not in formats.names():
        ends = ", ".join(f".{name}" for name in formats.names() if name != "text")
        raise InputError(
            f"-o {output}", "its name does not say which format", f"end it in {ends} or .txt, or add --format"
        )
    formats.get(chosen)
    if not output and chosen in ("png", "svg", "html"):
        raise InputError(f"--format {chosen}", "needs a file to go to", f"add -o report.{chosen}")
    place = target(output) if output else None
    data, trials = rendered(selection or [], results, chosen)
    if place is None:
        printer.data(data.decode())
        return 0
    write(place, data)
    printer.say(f"report of {counted(trials, 'trial')}:")
    printer.data(str(place))
    return 0


def _format(output: str, format: str) -> str:
    if format:
        return format
    suffix = Path(output).suffix.lower().removeprefix(".")
    return {"": "text", "htm": "html", "txt": "text", "markdown": "md"}.get(suffix, suffix)
