"""`ironbench record`: exports records to one file and imports them on another machine. Each subcommand is a
function."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ironbench.cli.options import RESULTS, group
from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.bundle import Reader
from ironbench.records.export import export as write
from ironbench.records.importer import import_bundle
from ironbench.records.labs import LabDirectory
from ironbench.records.labs import results as usual_results
from ironbench.records.selection import directories, select
from ironbench.report.text_layout import clean
from ironbench.words import counted, grouped

app = group("record")


@app.command("export")
def export(
    selection: Annotated[
        list[str] | None, typer.Argument(help="Record ids, series or labels, or a lab directory.  [default: all]")
    ] = None,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File to write, e.g. lab.ibr.")] = "",
    results: RESULTS = "ironbench-results",
) -> int:
    """Write records and their evidence to one file. The file describes machine and engine, but contains no
    passwords."""
    selection = selection or []
    if not out:
        raise InputError("-o", "is missing", "add the file to write, e.g. -o lab.ibr")
    labs = directories(selection, Store(Path(results)))
    if labs and len(selection) > 1:
        raise InputError(labs[0], "is a lab directory, which must be exported separately", "remove the other arguments")
    named = Path(labs[0]) if labs else Path(results)
    lab = LabDirectory(named)
    whole = bool(labs) or not selection
    store = Store(named)
    records = store.all() if whole else select(selection, results)
    count = write(store, records, Path(out), lab if whole and lab.begun() else None)
    Printer().say(f"{counted(count, 'record')} in {out}, {grouped(Path(out).stat().st_size)} bytes")
    return 0


@app.command("import")
def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="A file from `ironbench record export`; with --from, the output of another program. With --from "
            "hammerdb, several files of the same run become one record.",
        ),
    ],
    results: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Directory for the records.  [default: ironbench-results; for a lab, its labs/ subdirectory]",
        ),
    ] = "",
    program: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PROGRAM",
            help="The program that wrote FILE: hammerdb, go-tpc, sysbench or pgbench. The results become foreign "
            "records, which reports show beside trials, without rank and without verdict.",
            autocompletion=lambda: ["hammerdb", "go-tpc", "sysbench", "pgbench"],
        ),
    ] = "",
    label: Annotated[str, typer.Option(metavar="NAME", help="With --from: name of the result in tables.")] = "",
) -> int:
    """Import records of another machine, or of another program. Imports all records of the file, or none."""
    usual = usual_results()
    if program:
        return _foreign(program, [Path(file) for file in files], label, Path(results) if results else usual)
    if len(files) > 1:
        raise InputError(files[1], "is a second file", "import each file separately, or add --from PROGRAM")
    (file,) = files
    if label:
        raise InputError(
            "--label", "applies only to results of other programs", "add --from PROGRAM, or remove --label"
        )
    try:
        opened = Reader(Path(file))
    except InputError as error:
        from ironbench.records import foreign

        if wrote := foreign.recognised(Path(file)):
            raise InputError(error.subject, error.cause, f"the file is output of {wrote}: add --from {wrote}") from None
        raise
    with opened as reader:
        lab = reader.manifest.lab
        directory = Path(results) if results else usual / "labs" / lab if lab else usual
        arrived = import_bundle(reader, directory)
        directory = arrived.directory
    printer = Printer()
    labels = sorted({clean(record.system.label) for record in arrived.new})
    known = f", {arrived.known} already present" if arrived.known else ""
    printer.say(f"{counted(len(arrived.new), 'new record')}{known}, in {directory}")
    if labels:
        printer.say(f"labels: {', '.join(labels)}")
    if lab:
        printer.say(f"to view the lab: `ironbench report {directory} -o report.html`")
    return 0


def _foreign(program: str, paths: list[Path], label: str, directory: Path) -> int:
    from ironbench.records import foreign

    Store(directory).validate()
    records, known = foreign.take_in(program, paths, label, directory)
    printer, place = Printer(), "" if directory == usual_results() else f" --results {directory}"
    for record in records:
        printer.data(record.id)
        if label and len(records) > 1:
            load = f", {counted(record.clients, 'client')}" if record.clients else ""
            printer.say(f"label: {record.name}{load}")
    present = f", {known} already present" if known else ""
    printer.say(f"{counted(len(records) - known, 'new foreign record')}{present}, in {directory}")
    name = shlex.quote(records[0].name) if len(foreign.named(records[0].name, directory)) == 1 else records[0].id
    printer.say(f"to view: `ironbench show {name}{place}`")
    printer.say(f"to show it beside trials, without a verdict: `ironbench compare {name} NAME{place}`")
    return 0
