"""Snapshots of loaded data: every trial of a lab starts from a copy."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ironbench import engines, workloads
from ironbench.engines.base import Engine
from ironbench.errors import InputError
from ironbench.host import copies, data_dirs, space
from ironbench.model.own_data import OwnData
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup, System
from ironbench.printer import Printer
from ironbench.trial.load import databases, own, prepare, rows
from ironbench.trial.load.loaded import Loaded
from ironbench.trial.load.source import DataSource
from ironbench.trial.load.space import SLACK
from ironbench.workloads import Dataset

_INITDB_PATIENCE_S = 30.0
NOTE = "snapshot.json"
"""Name of a file in the folder of a snapshot. The file is written last, so it exists only in complete snapshots."""


def source_ready(setup: Setup, secrets: Secrets, printer: Printer, copiers: rows.Copiers | None = None) -> DataSource:
    """Returns the data of a configuration, newly loaded or from an earlier run. Raises FailureError, or InputError if
    there is too little space."""
    engine = engines.get(setup.system.engine)
    dataset = workloads.get(setup.choice.workload).dataset(engine.name, setup.choice.options)
    data = setup.choice.data
    if data is not None and data.imported:
        if setup.system.dsn is not None:
            with _load_lock(data_dirs.snapshots() / data.key, printer):
                return databases.database_ready(setup, data, secrets, printer)
        contents = _Contents("own", data.key, data.words, data.data_bytes, data)
    elif dataset is not None:
        contents = _Contents(dataset.name, dataset.key, dataset.key, dataset.bytes, dataset)
    else:
        return DataSource("as-found")
    basis = engine.basis(setup.system)
    if not basis:
        assert dataset is not None
        return _on_their_server(setup, secrets, dataset, printer, copiers)
    folder = _folder(contents, basis)
    with _load_lock(folder, printer):
        note = _read_note(folder)
        if note is not None:
            printer.say(f"data: {contents.words}, snapshot of {note['made_at']} UTC")
        else:
            _require_unused(folder)
            _require_room(folder, contents, engine)
            note = _made(setup.system, folder, contents, printer, copiers)
        data_dirs.use(folder)
        return _snapshot(folder, note)


def known_bytes(system: System, data: OwnData) -> int | None:
    """Returns the loaded size of the user's own data. Returns None if there is no snapshot of it."""
    basis = "" if system.dsn is not None else engines.get(system.engine).basis(system)
    if not basis or not data.imported:
        return None
    note = _read_note(_folder(_Contents("own", data.key, data.words, 0, data), basis))
    return int(note["loaded"]["data_bytes"]) if note is not None else None


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of a snapshot."""

    name: str
    key: str
    words: str
    bytes: int
    source: Dataset | OwnData


def _folder(contents: _Contents, basis: str) -> Path:
    digest = hashlib.sha256(f"{basis}\n{contents.key}".encode()).hexdigest()[:16]
    return data_dirs.snapshots() / f"{contents.name}-{digest}"


def _on_their_server(
    setup: Setup, secrets: Secrets, dataset: Dataset, printer: Printer, copiers: rows.Copiers | None
) -> DataSource:
    """Loads data on an existing server. On such a server, this process may drop only those tables that it has loaded
    itself. Only these are later loaded again."""
    with engines.running(setup.system, secrets, setup.cell.load.clients) as session:
        connections = rows.connections(session)
        loaded = prepare.fill(session, dataset, connections, printer, own_server=False, copiers=copiers)
    kind = "as-found" if loaded.reused else "reload"
    return DataSource(kind, dataset.key, None, loaded.data_bytes, loaded, secrets)


def _snapshot(folder: Path, note: dict[str, Any]) -> DataSource:
    loaded = Loaded(**note["loaded"])
    return DataSource("snapshot", loaded.key, folder, note["bytes"], loaded)


def _read_note(folder: Path) -> dict[str, Any] | None:
    """Returns the note of a complete snapshot. Returns None if its files were changed or lost after it was
    completed."""
    try:
        note: dict[str, Any] = json.loads((folder / NOTE).read_text())
        return note if note["bytes"] == _file_bytes(folder) else None
    except (OSError, ValueError, KeyError):
        return None


def _file_bytes(folder: Path) -> int:
    """Returns the sum of file lengths. Blocks are not used, because their number may change without a write (delayed
    allocation)."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != NOTE)


def _require_unused(folder: Path) -> None:
    """Raises InputError for a snapshot whose files were changed while another ironbench process is using it."""
    data_dirs.release(folder)
    if folder.is_dir() and data_dirs.used(folder):
        cause = "the files of the snapshot were changed, and another ironbench process uses the snapshot"
        raise InputError(f"snapshot {folder}", cause, "wait until that process has ended")


def _require_room(folder: Path, contents: _Contents, engine: Engine) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # the snapshot is incomplete or was changed
    shutil.rmtree(folder.with_name(f"{folder.name}.new"), ignore_errors=True)
    _clear(folder.with_name(f"{folder.name}.load"))
    estimate = int(contents.bytes * SLACK) + engine.traits.costs.log_of(contents.bytes)
    space.require(folder.parent, estimate, f"the data ({contents.words})")


def _made(
    system: System, folder: Path, contents: _Contents, printer: Printer, copiers: rows.Copiers | None
) -> dict[str, Any]:
    engine = engines.get(system.engine)
    building = folder.with_name(f"{folder.name}.load")
    clients = rows.most_connections(system.engine)
    try:
        plain, secrets = engine.validated(engine.loading_system(system, building), clients)
        if isinstance(contents.source, OwnData) and contents.source.dump:
            engine.data_import.place_dump(plain, Path(contents.source.dump))
        with engines.running(plain, secrets, clients) as session:
            if isinstance(contents.source, OwnData):
                loaded = own.fill(session, contents.source, printer)
            else:
                connections = rows.connections(session)
                loaded = prepare.fill(session, contents.source, connections, printer, copiers=copiers)
        engine.snapshot(plain, folder, keep=False)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    # The data were loaded without syncing, so the rates of this load are meaningless. The data are therefore recorded
    # as existing data, which have no rates.
    loaded = Loaded(loaded.rows, loaded.bytes, loaded.elapsed_s, {}, loaded.data_bytes, 0, True, loaded.key)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    note = {"made_at": now, "bytes": _file_bytes(folder), "loaded": asdict(loaded)}
    aside = folder / f"{NOTE}.new"
    aside.write_text(json.dumps(note) + "\n")
    copies.put(aside, folder / NOTE)
    return note


def _clear(building: Path) -> None:
    """Removes the files of a killed load. Raises InputError if the load's server is still running."""
    gone = building.with_suffix(".gone")
    if not building.exists() and not gone.exists():
        return
    if data_dirs.ours(building):
        os.close(data_dirs.lock(building))
    # The initdb of a killed ironbench may still be running and create files. When the directory has been renamed,
    # initdb no longer finds its files and ends.
    deadline = time.monotonic() + _INITDB_PATIENCE_S
    while building.exists() or gone.exists():
        if not gone.exists():
            building.rename(gone)
        try:
            shutil.rmtree(gone)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def _load_lock(folder: Path, printer: Printer) -> Iterator[None]:
    """Allows only one ironbench process at a time to load the same data. Other processes wait, and then reuse the
    data."""
    fd = _locked(folder.with_suffix(".lock"), printer)
    try:
        yield
    finally:
        os.close(fd)


def _locked(path: Path, printer: Printer) -> int:
    """Returns a descriptor that holds the lock file. `cleanup` may have removed the file for which this process
    waited."""
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise InputError(
                f"directory {path.parent}", error.strerror or str(error), "set IRONBENCH_DATA to another directory"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            printer.say("data: another ironbench process is loading the same data; waiting for it")
            fcntl.flock(fd, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        os.close(fd)
