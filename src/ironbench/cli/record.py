"""`ironbench record`: records in one file, carried to another machine. One function per verb."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="record",
    help="Carry records to another machine in one file, and take them in there.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("export")
def export(
    selection: Annotated[
        list[str] | None, typer.Argument(help="Records by id, series or label, or a lab's directory.  [default: all]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The file to write, e.g. lab.ibr.")] = "",
    results: Annotated[
        str, typer.Option(metavar="DIR", help="Where records are.", envvar="IRONBENCH_RESULTS")
    ] = "ironbench-results",
) -> int:
    """Write records with their evidence, machine and engine facts into one file, without passwords."""
    from ironbench.cli.carrying import exported

    return exported(selection or (), out, results)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(help="A file of `ironbench record export`.")],
    results: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where records go.  [default: ironbench-results; a lab below labs/ there]"),
    ] = "",
) -> int:
    """Take in the records of another machine: all of them, or nothing is written."""
    from ironbench.cli.carrying import imported

    return imported(file, results)
