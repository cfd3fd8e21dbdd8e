"""`ironbench show`: shows all facts about a record, workload, engine, device, metric or observer."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ironbench.catalogue import base_name
from ironbench.cli import foreign
from ironbench.cli import list as listing
from ironbench.cli.options import JSON, RESULTS
from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import begun_in
from ironbench.study.differences import machine_facts
from ironbench.workloads.capture import is_capture


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a record (including records of labs and foreign records), series, label, workload, engine, "
            "device, metric or observer, or a capture file."
        ),
    ],
    results: RESULTS = "ironbench-results",
    everything: Annotated[
        bool, typer.Option("--all", help="Also show engine settings that have their default value.")
    ] = False,
    json: JSON = False,
) -> int:
    return show_named(name, results, json, everything)


_SUGGESTED = 3
"""Number of similar names that are suggested."""


def show_named(name: str, results: str, json: bool, everything: bool) -> int:
    """Shows what the name refers to: a capture file; a workload, engine, device, metric or observer; or records with
    this id, series or label."""
    if is_capture(name):
        from ironbench.cli.output import write_page
        from ironbench.report.capture import page as capture_page

        return write_page(capture_page(name), "json" if json else "text", None)
    printer = Printer()
    store = Store(Path(results))
    known = _names_to_show()
    row = known.get(name) or known.get(base_name(name))
    if row is None and foreign.any_named([name], results):
        from ironbench.records.foreign import named
        from ironbench.report.foreign import page
        from ironbench.report.formats import text

        others = named(name, Path(results))
        if json:
            printer.data(listing.encoded([msgspec.to_builtins(one) for one in others]))
        for one in () if json else others:
            printer.data(text.page(page(one), printer.width()))
        return 0
    if row is not None:
        kind, thing = row
        printer.data(listing.encoded(thing) if json else _text(thing))
        if any(record.system.label == name for record in store.all()):
            printer.say(
                f"this is the {kind} {name}; some records also have this label; to show these records, use their "
                "id or series"
            )
        return 0
    store, records = _records(name, store, known)
    if json:
        printer.data(listing.encoded([msgspec.to_builtins(record) for record in records]))
    else:
        printer.data(_page(records, store, printer, everything))
    return 0


def _page(found: Sequence[Record], store: Store, printer: Printer, everything: bool) -> str:
    from ironbench.report import trial_text

    if len(found) > 1:
        return trial_text.several(found, printer.width())
    one = found[0]
    return trial_text.one(one, machine_facts(one, store), store.engine(one.engine), everything)


def _names_to_show() -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns everything with a name that can be shown, except records. The key is the name; the value is its kind
    (such as `workload`) and its facts."""
    kinds = {
        "workload": listing.workloads,
        "engine": listing.engines,
        "device": listing.devices,
        "metric": listing.metrics,
        "observer": listing.observers,
    }
    return {row["name"]: (kind, row) for kind, rows in kinds.items() for row in rows()}


def _records(name: str, store: Store, known: dict[str, tuple[str, dict[str, Any]]]) -> tuple[Store, list[Record]]:
    """Finds records in the results directory or in one of its labs. Returns the records and the store in which they
    are. Raises InputError if no record has the name."""
    try:
        return store, store.select([name])
    except InputError as error:
        for lab in begun_in(store.directory):
            of_lab = store.of_lab(lab)
            if found := of_lab.records([row.id for row in of_lab.listed() if name in (row.id, row.series)]):
                return of_lab, found
        if Path(name).is_file():
            raise InputError(name, "is a file, but not a capture", "see `ironbench show --help`") from error
        if name.endswith(".capture"):
            raise InputError(name, "no such file", "correct the path, or make the capture first") from error
        kinds = {word: kind for word, (kind, _) in known.items()}
        for record in store.all():
            kinds |= {record.id: "record", record.series: "series", record.system.label: "label"}
        close = difflib.get_close_matches(name, list(kinds), n=_SUGGESTED, cutoff=0.6)
        if not close:
            hint = "`ironbench list` shows all kinds, and `ironbench list records` shows all records"
        else:
            hint = f"did you mean {' or '.join(f'{kinds[word]} {word}' for word in close)}?"
        raise InputError(name, "unknown name", hint) from error


def _text(thing: dict[str, Any], indent: str = "") -> str:
    lines = []
    for key, item in thing.items():
        if isinstance(item, dict) and item:
            lines.append(f"{indent}{key}:\n{_text(item, indent + '  ')}")
        elif item not in (None, "", {}, []):
            lines.append(f"{indent}{key}: {', '.join(map(str, item)) if isinstance(item, list) else item}")
    return "\n".join(lines)
