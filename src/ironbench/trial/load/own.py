"""The user's own data: examines the files, and loads them into an empty database."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ironbench import engines, units
from ironbench.engines.data_import import RestoreResult, Show, progress_shown, show_read
from ironbench.engines.library import LibraryEngine
from ironbench.errors import EngineDiedError, FailureError, InputError, written
from ironbench.host.child_connection import CANCELLED
from ironbench.model.own_data import OwnData
from ironbench.model.session import Session
from ironbench.model.system import System
from ironbench.printer import Printer
from ironbench.trial.load import rows, tables
from ironbench.trial.load.loaded import Loaded
from ironbench.words import counted, listed
from ironbench.workloads import Workload

_CHUNK_BYTES = 1 << 22
_LARGE_BYTES = 1 << 28
"""Size in bytes from which files take a second or more to read and examine."""
SETUP_BYTES = 1_000_000
"""Assumed size of data that only setup files create; the real size is unknown."""


def identified(data: OwnData, system: System, workload: Workload) -> OwnData:
    """Returns the data with digests of the files and the kind of dump. Starts no server. Raises InputError for files
    that cannot be used."""
    engine = engines.get(system.engine)
    data_import = engine.data_import
    if data.imported and not workload.foreign:
        cause = f"the workload `{workload.name}` loads its own data"
        hint = "run your scripts on your data: ironbench run script FILE"
        raise InputError(_first_field(data), cause, hint)
    if data.dump and not data_import.dumps:
        takers = listed([name for name in engines.names() if engines.get(name).data_import.dumps])
        cause = f"the engine `{engine.name}` cannot load dumps"
        raise InputError(written("data.dump"), cause, f"engines that can: {takers}")
    if data.setup and not data_import.setup:
        raise InputError(
            written("data.setup"), f"the engine `{engine.name}` cannot run SQL files", f"remove {written('data.setup')}"
        )
    if data.template and system.dsn is not None and data_import.databases and not data_import.templates:
        cause = (
            f"the engine `{engine.name}` has no statement that copies a database, and ironbench does not read your "
            "databases"
        )
        raise InputError(written("data.template"), cause, f"dump the database, and use {written('data.dump')}")
    if data.template and (system.dsn is None or not data_import.templates):
        cause = (
            f"a template is a database on a running server, but {written('system.dsn')} is missing, or its engine "
            "cannot copy databases"
        )
        raise InputError(
            written("data.template"),
            cause,
            f"connect to a server that can copy databases, or use a dump: {written('data.dump')}",
        )
    if data.imported and system.dsn is not None and not data_import.databases:
        cause = f"the engine `{engine.name}` cannot create databases on a running server"
        hint = f"remove {written('system.dsn')}: ironbench then starts its own server"
        raise InputError(_first_field(data), cause, hint)
    with _progress(data):
        digests = _digests(data)
        for file in data.setup:
            data_import.examined_setup(Path(file), Path(data.dump) if data.dump else None)
        if not data.dump:
            return replace(data, digests=digests, data_bytes=SETUP_BYTES if data.setup and not data.template else 0)
        found = data_import.examined(system, Path(data.dump))
    size = sum(os.stat(file).st_size for file in _files(Path(data.dump)))  # noqa: PTH116
    return replace(data, digests=digests, kind=found.kind, tools=found.tools, bytes=size, data_bytes=found.data_bytes)


@contextmanager
def _progress(data: OwnData) -> Iterator[None]:
    """Shows progress on stderr while large files are read."""
    size = 0
    with suppress(OSError):  # an error is reported when the file is read
        size = sum(path.stat().st_size for file in data.files for path in _files(Path(file)))
    printer = Printer() if size >= _LARGE_BYTES else Printer.silent()
    with printer.bar(f"examine {listed([Path(file).name for file in data.files])}") as show, progress_shown(show):
        yield


def _first_field(data: OwnData) -> str:
    name = next(name for name in ("dump", "template", "setup") if getattr(data, name))
    return written(f"data.{name}")


def refuse_changed(data: OwnData) -> None:
    """Raises InputError if a file is missing or was changed after the trials were planned."""
    for file, now, then in zip(data.files, _digests(data), data.digests, strict=True):
        if now != then:
            raise InputError(
                file, "was changed since these trials were planned", "restore the file, or start a new run or lab"
            )


def fill(session: Session, data: OwnData, printer: Printer) -> Loaded:
    """Fills an empty database. If it raises InputError or FailureError, the result is not what was requested, and the
    database must not be used."""
    refuse_changed(data)
    data_import = engines.get(session.engine).data_import
    began, restored = time.perf_counter(), RestoreResult()
    version = str(session.facts().get("version", "")).partition(" ")[0]
    with printer.bar(f"load {data.words}: {expected(data, [f'{session.engine} {version}'])}") as show:
        if data.dump:
            restored = data_import.restored(session, Path(data.dump), rows.most_connections(session.engine), show)
        left_out = Counter(restored.left_out) + set_up(session, data, show)
        show(0.95, "statistics")
        data_import.finish_load(session)
        size = tables.size(session, ())
    elapsed_s = time.perf_counter() - began
    words = f"{data.words} ({restored.without})" if restored.without else data.words
    printer.say(f"data: {words}, {units.stored(size)} with indexes, {units.span(elapsed_s)} in total")
    if not restored.has_end_mark:
        printer.say(f"data: {data.words} has no end marker: check that the dump is complete")
    if left_out:
        printer.say("data: skipped: " + ", ".join(f"{kind} ({count})" for kind, count in left_out.items()))
    if restored.objects:
        there = listed([counted(count, _singular(kind), kind) for kind, count in restored.objects.items()])
        printer.say(f"data: {there}, as listed in the dump")
    return Loaded(elapsed_s=elapsed_s, data_bytes=size, key=data.key, objects=restored.objects, left_out=left_out)


def _singular(kind: str) -> str:
    return kind.removesuffix("es") if kind.endswith("xes") else kind.removesuffix("s")


def set_up(session: Session, data: OwnData, show: Show) -> Counter[str]:
    """Runs the setup files. Returns how many statements of each kind were skipped."""
    left_out: Counter[str] = Counter()
    dump = Path(data.dump) if data.dump else None
    for file in data.setup:
        show(0.9, Path(file).name)
        left_out.update(engines.get(session.engine).data_import.set_up(session, Path(file), show, dump))
    return left_out


def expected(data: OwnData, servers: Sequence[str] = (), kept_bytes: int | None = None) -> str:
    """Returns a description of the load, such as `custom dump of version 15.8, 210 MB; about 1.2 GB when loaded into
    postgres 18.4, about 30 s`.

    `servers`: engines with their versions, as far as known. `kept_bytes`: the size of existing data from an earlier
    load.
    """
    if not data.dump:
        what = [f"a copy of database {data.template}"] if data.template else []
        return " and ".join([*what, *([counted(len(data.setup), "file") + " with SQL"] if data.setup else [])])
    from ironbench.trial.load.estimate import LOAD_BYTES_PER_S

    dump = f"{data.kind}, {units.stored(data.bytes)}"
    loaded = f"when loaded into {listed(servers)}" if servers else "when loaded"
    if kept_bytes is not None:
        return f"{dump}; {units.stored(kept_bytes)} {loaded}, reused from an earlier load"
    span = units.span(max(1.0, data.data_bytes / LOAD_BYTES_PER_S))
    return f"{dump}; about {units.stored(data.data_bytes)} {loaded}, about {span}"


def require_check(session: Session, data: OwnData | None) -> None:
    """Raises InputError if the server rejects the user's check query as invalid. The result of the query is ignored
    here; it is checked after each trial."""
    if data is None or not data.check:
        return
    engine = engines.get(session.engine)
    try:
        session.query(data.check)
    except FailureError as error:
        # SQLSTATE class 42 means a syntax error or an access rule violation (PostgreSQL 18 documentation, appendix A).
        # Errors of libraries have no such classes. If a library rejects the query now, it would reject the query after
        # every trial.
        ended = isinstance(error, EngineDiedError) or error.sqlstate == CANCELLED
        library = isinstance(engine, LibraryEngine) and not ended
        if error.sqlstate[:2] == "42" or library:
            usual = "write a query that returns true or false, for example select count(*) > 0 from orders"
            hint = engine.data_import.hint(session, error) or usual
            raise InputError(written("data.check"), error.cause, hint) from None


def _digests(data: OwnData) -> tuple[str, ...]:
    """Returns digests of all files. Raises InputError if a file is missing or not readable."""
    fields = [*(["data.dump"] if data.dump else []), *("data.setup" for _ in data.setup)]
    return tuple(_of_path(written(field), Path(file)) for field, file in zip(fields, data.files, strict=True))


def _of_path(subject: str, path: Path) -> str:
    digest = hashlib.sha256()
    try:
        found = sorted(_files(path))
        for file in found:
            info = file.stat()
            if not stat.S_ISREG(info.st_mode):
                raise InputError(
                    f"{subject} {path}", "is not a regular file", "use a file that can be read more than once"
                )
            name = file.name if path.is_dir() else ""
            digest.update(f"{name} {_of_file(str(file), info.st_size, info.st_mtime_ns, info.st_ino)}\n".encode())
    except FileNotFoundError:
        raise InputError(f"{subject} {path}", "no such file", "give the path of an existing file") from None
    except OSError as error:
        cause = f"cannot be read: {error.strerror or error}"
        raise InputError(f"{subject} {path}", cause, "change its permissions") from None
    if not found:
        raise InputError(f"{subject} {path}", "is an empty directory", "give the path of a dump")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=10_000)
def _of_file(path: str, size: int, mtime_ns: int, inode: int) -> str:
    """Returns the digest of a file's content. Reads the content again only if size, time or inode have changed."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            show_read(os.path.basename(path), file.tell(), size)  # noqa: PTH119
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    yield from (entry for entry in path.iterdir() if entry.is_file())
