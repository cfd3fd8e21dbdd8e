"""Loads data, from empty tables to statistics, and measures the time of each phase."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ironbench import engines, units
from ironbench.engines.administration import checkpoint
from ironbench.errors import FailureError, IronbenchError
from ironbench.host import copies, job
from ironbench.host.stall import Stall
from ironbench.model.session import RemoteSession, Session, WorkConnection
from ironbench.model.workers import MOST_CONNECTIONS
from ironbench.printer import Printer
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.marker import Marker
from ironbench.trial.load.pieces import LoadedPieces
from ironbench.trial.load.tables import fixed_rows, size, violations
from ironbench.words import counted, grouped
from ironbench.workloads import Dataset

POLL_S = 0.1
SILENCE_S = 120.0
"""Seconds without network traffic after which a load is given up, unless the server answers a new connection. The total
time of a load is not limited."""
WAITING_S = 3600.0
"""Seconds without a new row after which a load is given up even if the server answers new connections."""
_BROKEN = ("08", "57P")
"""SQLSTATE classes of errors after which the connection is lost: connection exceptions, and errors of a server that
shuts down (PostgreSQL, appendix A)."""
_ATTEMPTS = 3
"""Maximum number of attempts at a load by workers. After a worker was lost, the others continue."""

Show = Callable[[float, str], None]


class Copiers(Protocol):
    """Workers that copy the rows of large data in pieces."""

    @property
    def count(self) -> int: ...

    @property
    def here(self) -> int:
        """Number of workers on this machine."""
        ...

    def begin(self, target: dict[str, Any]) -> None:
        """Starts the workers. Raises InputError if a worker cannot reach the server. Raises FailureError if the workers
        cannot be started."""
        ...

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        """Copies rows. Returns a dict with `rows`, `bytes`, `connections` and `lost`. If copying could not be
        completed, `lost` contains the reason. Otherwise, it is ""."""
        ...


def connections(session: Session) -> int:
    """Returns the number of connections for a load. There is one connection for each core, because the server does most
    of the work. There are at least two, so that the server does not wait for rows."""
    return most_connections(session.engine)


def most_connections(engine: str) -> int:
    return engines.get(engine).traits.writers or max(2, min(MOST_CONNECTIONS, len(os.sched_getaffinity(0))))


def drop(session: Session, tables: Sequence[str]) -> None:
    for table in tables:
        session.query(f"drop table {table}")


def resumable(session: Session, dataset: Dataset) -> bool:
    """Returns whether an interrupted load of the same data can be continued."""
    return dataset.large and LoadedPieces(session, dataset.name).known()


def loaded(
    session: Session,
    dataset: Dataset,
    connections: int,
    marker: Marker,
    printer: Printer,
    resume: bool = False,
    copiers: Copiers | None = None,
) -> Loaded:
    """Creates the tables and fills them. The tables count as complete only if everything succeeded. Raises
    FailureError.

    `resume`: whether to keep complete pieces of an interrupted load. `copiers`: the workers that copy the rows of large
    data.
    """
    phases: dict[str, float] = {}
    pieces = LoadedPieces(session, dataset.name) if dataset.large else None
    if pieces and copiers:
        copiers.begin(session.target())
    begin = time.perf_counter()
    with printer.bar(f"load {dataset.key}") as show:
        with _Timed(phases, "schema"):
            if not resume:
                _create_empty_tables(session, dataset, marker, pieces)
        with _Timed(phases, "rows"):
            try:
                copied = _copied(session, dataset, connections, show, pieces, copiers)
            except FailureError as error:
                raise complained(session, error) from error
            resume |= copied.get("resumed", False)
            for directory in set(session.directories().values()) if session.within() else ():
                copies.sync(Path(directory))
                # The pages of the new files are evicted from the page cache. Pages that this process wrote would not
                # count towards the server's memory limit.
                copies.evict(Path(directory))
        with _Timed(phases, "keys"):
            show(0.9, "keys")
            _in_parallel(session, pieces.missing("keys", dataset.keys) if pieces else dataset.keys, connections)
        with _Timed(phases, "references"):
            for statement in pieces.missing("references", dataset.references) if pieces else dataset.references:
                session.query(engines.get(session.engine).administration.marked(statement))
        with _Timed(phases, "analyze"):
            show(0.97, "statistics")
            _settle(session, dataset, connections)
        if dataset.conditions:
            with _Timed(phases, "conditions"):
                show(0.99, "consistency conditions")
                _require_conditions(session, dataset, pieces)
        elapsed_s = time.perf_counter() - begin
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        rows = _counted(session, dataset) if resume else copied["rows"]
        marker.note_fixed(now, fixed_rows(session, dataset))
        marker.complete(now, rows, copied["bytes"], elapsed_s)
        if pieces:
            pieces.end()
    done = Loaded(
        rows,
        copied["bytes"],
        elapsed_s,
        phases,
        size(session, dataset.tables),
        copied["connections"],
        key=dataset.key,
        resumed=resume,
    )
    if resume:
        completed = f"an interrupted load completed in {units.span(elapsed_s)}"
        printer.say(f"data: {dataset.key}, {counted(rows, 'row')}, {completed}")
        return done
    copying = phases["rows"]
    of = f" of {counted(copiers.count, 'worker')}" if copiers and pieces else ""
    by = counted(done.connections, "connection") + of
    printer.say(
        f"data: {dataset.key}, {counted(done.rows, 'row')} by {by} "
        f"at {grouped(done.rows / copying)} rows/s ({units.stored(done.bytes / copying)}/s), "
        f"{units.stored(done.data_bytes)} with indexes, {units.span(elapsed_s)} in total"
    )
    return done


def complained(session: Session, error: FailureError) -> FailureError:
    """Returns the error. If connections broke, adds the server's own messages, because a full disk may be reported only
    there."""
    if not error.sqlstate.startswith(_BROKEN) or not (words := session.last_words()):
        return error
    told = FailureError(error.subject, f"{error.cause}; server messages: {words}", error.hint)
    told.sqlstate, told.number = error.sqlstate, error.number
    return told


def _create_empty_tables(session: Session, dataset: Dataset, marker: Marker, pieces: LoadedPieces | None) -> None:
    """Creates empty tables. The record of pieces is created last, because its existence means that all tables exist."""
    if pieces:
        pieces.end()
    marker.begin(dataset.key)
    for statement in dataset.schema:
        session.query(statement)
    # On an existing server, the mark distinguishes these tables from others.
    engines.get(session.engine).administration.mark(session, dataset.tables)
    if pieces:
        pieces.begin()


def _require_conditions(session: Session, dataset: Dataset, pieces: LoadedPieces | None) -> None:
    """Raises FailureError if the loaded rows violate a condition. The next load then starts with empty tables."""
    if violated := violations(session, dataset, fresh=True):
        if pieces:
            pieces.end()
        raise FailureError(
            "load", f"the loaded rows violate {violated}", "run the same command again to load all rows again"
        )


def _counted(session: Session, dataset: Dataset) -> int:
    """Returns the number of rows in all tables."""
    counts = " + ".join(f"(select count(*) from {table})" for table in dataset.tables)
    return int(session.query(f"select {counts}")[0][0] or 0)


class _Timed:
    """Adds the duration of a block in s to `phases`."""

    def __init__(self, phases: dict[str, float], name: str) -> None:
        self._phases, self._name = phases, name

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._phases[self._name] = time.perf_counter() - self._begin


def _copied(
    session: Session,
    dataset: Dataset,
    connections: int,
    show: Show,
    pieces: LoadedPieces | None,
    copiers: Copiers | None,
) -> dict[str, Any]:
    """Copies rows in a separate thread, so that this thread can show progress and handle Ctrl-C. Large data are copied
    in a child process, or by workers."""
    plan: dict[str, Any] = {"generator": dataset.generator, "connections": connections, "silence_s": SILENCE_S}
    if pieces:
        plan |= {"done": pieces.rows(), "note": pieces.note}
    # `target` is called last. A library engine then closes its database file, so that the loader can open the file.
    plan["engine"] = session.target()
    begin = time.perf_counter()
    stall = Stall(session.require_answer, SILENCE_S, WAITING_S) if isinstance(session, RemoteSession) else None
    copied = 0

    def show_rows(rows: int, size: int) -> None:
        nonlocal copied
        copied = rows
        spent = max(time.perf_counter() - begin, 1e-9)
        note = f"{counted(rows, 'row')}, {units.stored(size / spent)}/s"
        show(min(0.9, 0.9 * rows / max(dataset.rows, 1)), note)

    def is_stalled() -> bool:
        return stall is not None and stall.is_over(copied)

    if pieces and copiers:
        return _by_workers(copiers, plan, pieces, show_rows)
    try:
        if pieces or "loader" in plan["engine"]:
            return copied_in_child(msgspec.json.encode(plan), show_rows, is_stalled)
        return _copied_here(msgspec.json.encode(plan), show_rows, is_stalled)
    except FailureError:
        if stall is not None and stall.error is not None:
            raise stall.error from None  # the stall caused the error
        raise


def _copied_here(plan: bytes, show: Callable[[int, int], None], stopping: Callable[[], bool]) -> dict[str, Any]:
    """Copies rows as `copied_in_child` does, in a thread of this process."""
    from ironbench import _core

    progress = _core.LoadProgress()
    with ThreadPoolExecutor(1) as one:
        future = one.submit(_core.load_rows, plan, progress)
        try:
            while not wait([future], POLL_S).done:
                show(progress.rows, progress.bytes)
                if stopping():
                    progress.stop()
        except BaseException:
            progress.stop()
            raise
        return msgspec.json.decode(future.result(), type=dict[str, Any])


def _by_workers(
    copiers: Copiers, plan: dict[str, Any], pieces: LoadedPieces, show: Callable[[int, int], None]
) -> dict[str, Any]:
    """Copies rows by workers. After a worker was lost, continues with the pieces that are not recorded. Raises
    FailureError if workers are lost repeatedly."""
    for attempt in range(_ATTEMPTS):
        found = copiers.copied(plan | {"done": pieces.rows()}, show)
        if not found["lost"]:
            return found | {"resumed": attempt > 0}
    raise FailureError("load", f"{found['lost']}", "run the same command again to load the missing pieces")


def copied_in_child(
    plan: bytes, show: Callable[[int, int], None], stopping: Callable[[], bool] = lambda: False
) -> dict[str, Any]:
    """Copies rows as `_core.load_rows` does, in a child process, which frees 300 MB of text when it ends. Raises
    FailureError, also if the child died.

    `show` is called with the rows and bytes so far, several times a second, in another thread. `stopping`: whether to
    end the load.
    """
    call = job.CoreCall("load", plan, "load", FailureError)
    result = job.run(call, show=lambda state: show(*state), stopping=stopping)
    return msgspec.json.decode(result, type=dict[str, Any])


def _in_parallel(session: Session, statements: Sequence[str], connections: int) -> None:
    """Runs independent statements, in parallel over separate connections if the engine supports this."""
    if not engines.get(session.engine).can("parallel statements") or len(statements) < 2:
        for statement in statements:
            session.query(statement)
        return
    own = [session.line() for _ in range(min(connections, len(statements)))]
    try:
        _shared_out(own, statements)
    finally:
        for connection in own:
            connection.close()


def _shared_out(connections: Sequence[WorkConnection], statements: Sequence[str]) -> None:
    """Lets each connection take the next statement until none is left or one has failed. Raises the error of the failed
    statement."""
    waiting = iter(statements)
    lock, failures = threading.Lock(), list[IronbenchError]()

    def work(connection: WorkConnection) -> None:
        while True:
            with lock:
                statement = None if failures else next(waiting, None)
            if statement is None:
                return
            try:
                connection.query(statement)
            except IronbenchError as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(connection,)) for connection in connections]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt:
        waiting = iter(())
        for connection in connections:
            connection.cancel()
        for thread in threads:
            thread.join()
        raise
    if failures:
        raise failures[0]


def _settle(session: Session, dataset: Dataset, connections: int) -> None:
    """Updates the planner's statistics, and flushes writes for which the first trial would otherwise have to wait."""
    dialect = engines.get(session.engine).traits.dialect
    _in_parallel(session, dialect.after_load(dataset.tables), connections)
    # This may not be permitted. The metrics of checkpoints then show the writes.
    checkpoint(session, dialect)
