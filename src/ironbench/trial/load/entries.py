"""Loads the data of a workload into a directory server, as entries below an entry that has ironbench's mark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from ironbench import engines, units
from ironbench.engines.administration import BEGUN, ENTRY_MARK
from ironbench.errors import EntryRefusedError, FailureError, InputError, IronbenchError, written
from ironbench.model.session import DirectorySession, Session
from ironbench.printer import Printer
from ironbench.trial.load.loaded import Loaded
from ironbench.words import counted, grouped
from ironbench.workloads import Dataset


@dataclass(slots=True)
class _Passed:
    """Progress of a load."""

    bytes: int = 0


def fill(session: Session, dataset: Dataset, printer: Printer, own_server: bool) -> Loaded:
    """Reuses the entries if they are complete and have the same key, and loads them otherwise. Raises InputError if
    others created the entries."""
    assert isinstance(session, DirectorySession) and dataset.entries is not None
    mark = _mark(session, dataset)
    if mark == dataset.key:
        printer.say(f"data: {dataset.key}, reused")
        return Loaded(rows=dataset.rows, data_bytes=dataset.bytes, reused=True, key=dataset.key)
    if mark is not None and not own_server and not mark.startswith(BEGUN):
        cause = f"contains {mark}, not {dataset.key}" if mark else "exists, but was not loaded by ironbench"
        hint = f"use another base DN in {written('system.dsn')}"
        if mark:
            hint = f"remove the data with `ironbench cleanup --dsn`, or {hint}"
        raise InputError(f"entry {_top(dataset)}{session.base}", cause, hint)
    if mark is not None and not own_server:
        drop(session, dataset)
    if not own_server:
        _require_absent(session, dataset)
    passed = _Passed()
    begin = time.perf_counter()
    with printer.bar(f"load {dataset.key}") as show:

        def with_progress(pieces: Iterable[bytes]) -> Iterator[bytes]:
            for piece in pieces:
                passed.bytes += len(piece)
                yield piece
                show(min(0.99, passed.bytes / max(1, dataset.bytes)), units.stored(passed.bytes))

        try:
            changes = with_progress(dataset.changes(session.base)) if dataset.changes else ()
            session.fill(with_progress(dataset.entries(session.base)), changes)
        except IronbenchError as error:
            raise _explained(session, dataset, error, own_server) from error
    elapsed_s = time.perf_counter() - begin
    _set_mark(session, dataset, dataset.key)
    now = datetime.now(UTC).strftime("%H:%M:%S")
    rate = grouped(dataset.rows / elapsed_s)
    printer.say(
        f"data: {dataset.key}, {counted(dataset.rows, 'entry', 'entries')} at {rate} entries/s, "
        f"{units.span(elapsed_s)} in total, {now} UTC"
    )
    return Loaded(dataset.rows, passed.bytes, elapsed_s, {"rows": elapsed_s}, dataset.bytes, 1, key=dataset.key)


def _require_absent(session: Session, dataset: Dataset) -> None:
    """Raises InputError if an entry of the user's file already exists, or if the file changes entries that it does not
    add. Such a load could not be undone."""
    assert isinstance(session, DirectorySession)
    if dataset.stranger and (found := dataset.stranger(session.base)):
        where, dn = found
        hint = "remove the change from the file; in a running directory, ironbench changes only entries that it added"
        raise InputError(where, f"changes entry {dn}, which the file does not add", hint)
    for dn in dataset.roots(session.base) if dataset.roots else ():
        try:
            there = session.query(f"search {_escaped(dn)}?1.1?base")
        except FailureError as error:
            if getattr(error, "number", 0) != _NO_SUCH_OBJECT:
                raise
            there = []
        if there:
            where = dataset.line_of(dn, "add") if dataset.line_of else ""
            raise InputError(
                where or dn,
                f"entry {dn} already exists in this directory",
                "remove the entry from the directory or from the file",
            )


def _explained(session: Session, dataset: Dataset, error: IronbenchError, own_server: bool) -> IronbenchError:
    """Adds the line in the user's file to an error. On an existing directory server, first removes the entries that
    were added."""
    hint = error.hint
    if not own_server:
        try:
            drop(session, dataset)
            hint = "the added entries were removed again; correct the entry in the file"
        except IronbenchError:
            hint = "some added entries are left in the directory: `ironbench cleanup --dsn` removes them"
    if not isinstance(error, EntryRefusedError):
        return type(error)(error.subject, error.cause, hint)
    line = dataset.line_of(error.dn, error.change) if dataset.line_of and error.dn else ""
    return FailureError(line or error.subject, error.cause, hint)


def drop(session: Session, dataset: Dataset) -> None:
    """Removes the entries that ironbench loaded. Raises FailureError."""
    mark = _mark(session, dataset)
    if mark is None:
        return
    if not mark:
        raise FailureError(f"entry {_top(dataset)}", "was not loaded by ironbench, so it is kept")
    [(dn, *_)] = session.query(f"search {_top(dataset)}?1.1?base")
    engines.get(session.engine).administration.remove_entries(session, str(dn))


def _top(dataset: Dataset) -> str:
    """Returns the RDN of the topmost entry. The session appends its base DN."""
    return f"{dataset.name},"


def _mark(session: Session, dataset: Dataset) -> str | None:
    """Returns the key of the data in ironbench's mark. Returns "" if the entry has no mark, because others created it.
    Returns None if the entry does not exist."""
    try:
        rows = session.query(f"search {_top(dataset)}?description?base")
    except FailureError as error:
        if getattr(error, "number", 0) == _NO_SUCH_OBJECT:
            return None
        raise
    marks = [line for line in (rows[0][1] or "").splitlines() if line.startswith(ENTRY_MARK)] if rows else []
    return marks[0].removeprefix(ENTRY_MARK) if marks else ""


_NO_SUCH_OBJECT = 32


def _set_mark(session: Session, dataset: Dataset, key: str) -> None:
    session.query(f"modify {_top(dataset)}?replace description={_escaped(ENTRY_MARK + key)}")


def _escaped(text: str) -> str:
    """Escapes a text for use in an LDAP operation, in which `?` separates the parts."""
    return text.replace("%", "%25").replace("?", "%3F").replace("[", "%5B")
