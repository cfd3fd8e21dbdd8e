"""What `record export` and `record import` do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ironbench.cli.selected import directories
from ironbench.errors import InputError
from ironbench.printer import Printer
from ironbench.record import Store
from ironbench.record.arrival import take_in
from ironbench.record.export import export
from ironbench.record.labs import LabDirectory
from ironbench.record.parcel import Reader
from ironbench.report.plain import clean
from ironbench.words import counted


def exported(selection: Sequence[str], out: str, results: str) -> int:
    """InputError: no file named, nothing selected, or a lab among records."""
    if not out:
        raise InputError("-o", "is missing", "name the file to write, e.g. -o lab.ibr")
    labs = directories(selection, Store(Path(results)))
    if labs and len(selection) > 1:
        raise InputError(labs[0], "is a lab's directory, and there is more", "export each lab by itself")
    named = Path(labs[0]) if labs else Path(results)
    lab = LabDirectory(named)
    whole = bool(labs) or not selection
    store = Store(named)
    records = store.all() if whole else store.select(selection)
    count = export(store, records, Path(out), lab if whole and lab.begun() else None)
    Printer().say(f"{counted(count, 'record')} in {out}, {Path(out).stat().st_size:,} bytes")
    return 0


def imported(file: str, results: str) -> int:
    """Says what came, and where it is."""
    usual = Path(os.environ.get("IRONBENCH_RESULTS", "ironbench-results"))
    with Reader(Path(file)) as reader:
        lab = reader.manifest.lab
        directory = Path(results) if results else usual / "labs" / lab if lab else usual
        found = take_in(reader, directory)
        directory = found.directory
    printer = Printer()
    labels = sorted({clean(record.system.label) for record in found.new})
    known = f", {found.known} here already" if found.known else ""
    printer.say(f"{counted(len(found.new), 'new record')}{known}, in {directory}")
    if labels:
        printer.say(f"labels: {', '.join(labels)}")
    if lab:
        printer.say(f"a lab: see it with `ironbench report {directory} -o report.html`")
    return 0
