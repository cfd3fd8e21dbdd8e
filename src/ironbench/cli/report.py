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
        str, typer.Option(help="html, png, svg, md, csv, json or text.  [default: by the name of FILE, else text]")
    ] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
) -> int:
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
    target = _target(output) if output else None
    data, trials = rendered(selection or [], results, chosen)
    if target is None:
        printer.data(data.decode())
        return 0
    _write(target, data)
    printer.say(f"report of {counted(trials, 'trial')}:")
    printer.data(str(target))
    return 0


def _format(output: str, format: str) -> str:
    if format:
        return format
    suffix = Path(output).suffix.lower().removeprefix(".")
    return {"": "text", "htm": "html", "txt": "text", "markdown": "md"}.get(suffix, suffix)


def _target(output: str) -> Path:
    """Refuses a place that cannot be written before the work is done."""
    import os

    from ironbench.errors import InputError

    path = Path(output)
    if path.is_dir():
        raise InputError(output, "is a directory", f"name a file, for example {path / 'report.html'}")
    if not path.parent.is_dir():
        raise InputError(output, f"the directory {path.parent} does not exist", "make it first, or name another place")
    if not os.access(path.parent, os.W_OK):
        raise InputError(output, f"the directory {path.parent} is not writable", "name another place")
    return path


def _write(path: Path, data: bytes) -> None:
    """Aside and renamed: whoever opens the file sees the old report or the new one, never half of one."""
    import os

    from ironbench.errors import FailureError

    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise FailureError(
            str(path), f"the report could not be written: {error.strerror}", "name another place"
        ) from error
