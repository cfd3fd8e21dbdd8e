"""One folder per trial, written aside and renamed. Nothing edits a record.

```
<results>/trials/<id>/record.json  timeline.parquet  seconds.parquet  observed.parquet  latency.hlog  log/  …
<results>/machines/<key>.json      <results>/engines/<key>.json        content-addressed, shared by records
<results>/index.json               what a list needs of each record; can be deleted at any time
```
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import FailureError, InputError, UnwrittenError, nearest
from ironbench.model.observation import Counted, Series
from ironbench.model.record import SCHEMA, Record
from ironbench.printer import Printer
from ironbench.record import index
from ironbench.record.index import Listed

if TYPE_CHECKING:
    import numpy as np

    from ironbench._core import Histogram

_DECODER = msgspec.json.Decoder(Record)
COUNTED = "counted.json"
_TOLD = 3
"""Of more things than this that cannot be read, the rest is counted."""
Columns = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a trial left besides its record."""

    timeline: Mapping[str, bytes] = field(default_factory=dict)
    """Column → little-endian float64, one row per 100 ms bucket."""
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    """The same, one row per second."""
    observed: Sequence[Series] = ()
    counted: Sequence[Counted] = ()
    """What was only counted in buckets."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    log: bytes = b""
    """What the engine's child process wrote on its standard error."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What the workload kept beside, by name, e.g. `plans.txt`."""


class Store:
    """Records under one results directory. Opening it creates nothing; the first write does."""

    def __init__(self, directory: Path, printer: Printer | None = None) -> None:
        self.directory = directory
        self._printer = printer or Printer()
        self._trials = directory / "trials"

    def validate(self) -> None:
        """Refuses a results directory that cannot be written, before anything is started. Leaves nothing there."""
        there = next(path for path in (self._trials, *self._trials.absolute().parents) if path.exists())
        try:  # tried, for permissions alone do not tell: root may write anywhere but to a read-only file system
            tempfile.TemporaryDirectory(prefix=".ironbench-", dir=there).cleanup()
        except OSError as error:
            raise InputError(
                f"--results {self.directory}", f"cannot hold results: {error.strerror}", "name another directory"
            ) from None

    def keep(self, record: Record, evidence: Evidence) -> Record:
        """Writes a trial completely or not at all; safe against a kill or power cut at any instant."""
        final = self._trials / record.id
        if final.exists():
            if not _is_damaged(final / "record.json"):
                raise FailureError(record.id, "is in the store already", "records are never overwritten")
            _put_away(final)
        aside = self._trials / f".writing-{record.id}"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            self._write_evidence(aside, record, evidence)
            _write(aside / "record.json", msgspec.json.encode(record) + b"\n")
            _sync_directory(aside)
            aside.rename(final)
            _sync_directory(self._trials)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise _unwritten(final, error) from error
        return record

    def _write_evidence(self, folder: Path, record: Record, evidence: Evidence) -> None:
        from ironbench.record import columns

        if evidence.timeline:
            columns.write(folder / "timeline.parquet", evidence.timeline)
        if evidence.seconds:
            columns.write(folder / "seconds.parquet", evidence.seconds)
        if evidence.observed:
            columns.write_series(folder / "observed.parquet", evidence.observed)
        if evidence.counted:
            _write(folder / COUNTED, msgspec.json.encode(evidence.counted))
        if evidence.histograms:
            from datetime import datetime

            from ironbench._core import write_hlog

            start = datetime.fromisoformat(record.started_at).timestamp()
            _write(folder / "latency.hlog", write_hlog(evidence.histograms, start, record.elapsed_s).encode())
        if evidence.log:
            (folder / "log").mkdir()
            _write(folder / "log" / "child.log", evidence.log)
        for name, content in evidence.files.items():
            _write(folder / name, content)

    def keep_shared(self, kind: str, content: Any) -> str:
        """Stores a fingerprint (`machines`) or engine facts (`engines`) once; its content key."""
        data = msgspec.json.encode(content, order="sorted")
        key = hashlib.sha256(data).hexdigest()[:16]
        path = self.directory / kind / f"{key}.json"
        if not path.exists():
            write_whole(path, msgspec.json.format(data, indent=1))
        return key

    def shared(self, kind: str, key: str) -> dict[str, Any]:
        """What `keep_shared` stored; empty when it is gone."""
        path = self.directory / kind / f"{key}.json"
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if key and path.exists() else {}

    def machine(self, key: str) -> dict[str, Any]:
        return self.shared("machines", key)

    def engine(self, key: str) -> dict[str, Any]:
        return self.shared("engines", key)

    def all(self) -> list[Record]:
        """Every record, oldest first. Those that cannot be read are left out, and that is said."""
        with self._telling() as unread:
            found = [self._read(name, unread) for name in self._folders(unread)]
        return sorted((one for one in found if one), key=lambda record: (record.started_at, record.id))

    def listed(self) -> list[Listed]:
        """Every record in short, oldest first; from the index where it holds."""
        with self._telling() as unread:
            return index.rows(self.directory, self._folders(unread), lambda name: self._read(name, unread))

    def select(self, selection: Sequence[str]) -> list[Record]:
        """Records by id, series or label (all its series), in the order named; nothing selected means all of them."""
        if not selection:
            return self.all()
        sides = self.select_each(selection)
        return list({record.id: record for side in sides for record in side}.values())

    def select_each(self, words: Sequence[str]) -> list[list[Record]]:
        """The records of each word by themselves."""
        rows = self.listed()
        chosen = [[row.id for row in self._match(word, rows)] for word in words]
        with self._telling() as unread:
            return [[record for id in side if (record := self._read(id, unread))] for side in chosen]

    def matching(self, words: Sequence[str], wanted: Callable[[Listed], bool]) -> list[Record]:
        """Those of `select` that are wanted by their row in the index: no other record is opened."""
        return self.records([row.id for row in self.rows(words) if wanted(row)])

    def rows(self, words: Sequence[str]) -> list[Listed]:
        """What `select` would select, in short and in the same order."""
        rows = self.listed()
        if not words:
            return rows
        return list({row.id: row for word in words for row in self._match(word, rows)}.values())

    def records(self, ids: Iterable[str]) -> list[Record]:
        """Those by id, in the same order; what cannot be read is left out, and that is said."""
        with self._telling() as unread:
            return [record for id in ids if (record := self._read(id, unread))]

    def _match(self, word: str, rows: list[Listed]) -> list[Listed]:
        exact = [row for row in rows if word in (row.id, row.series)]
        found = exact or [row for row in rows if row.label == word]
        if found:
            return found
        known = sorted({row.label for row in rows} | {row.series for row in rows})
        hint = (
            nearest(word, known)
            if known
            else f"there are no records in {self.directory} yet; make some with `ironbench run`"
        )
        raise InputError(word, "names no record, series or label", hint)

    def _folders(self, unread: list[str]) -> dict[str, index.Stamp]:
        """Folders that hold a record; what else lies there is added to `unread`."""
        found: dict[str, index.Stamp] = {}
        if not self._trials.is_dir():
            return found
        for name, stamp in index.stamps(self._trials):
            if stamp is None:
                unread.append(f"{self._trials / name} holds no record")
            else:
                found[name] = stamp
        return found

    def _read(self, name: str, unread: list[str]) -> Record | None:
        """The record in a folder; None, with the reason in `unread`, where there is none that can be used."""
        path = self._trials / name / "record.json"
        try:
            record = _DECODER.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            unread.append(f"{path} is not a readable record: {error}")
            return None
        if record.schema > SCHEMA:
            unread.append(f"{path} has schema {record.schema}, newer than {SCHEMA}: read it with a newer ironbench")
            return None
        if record.id != name:
            unread.append(f"{path} is the record {record.id} under another name")
            return None
        return record

    @contextmanager
    def _telling(self) -> Iterator[list[str]]:
        """Says once what could not be read: never silent, never fatal."""
        unread: list[str] = []
        yield unread
        for text in unread[:_TOLD]:
            self._printer.say(f"left out: {text}")
        if len(unread) > _TOLD:
            self._printer.say(f"left out: {len(unread) - _TOLD} more in {self._trials}")

    def path(self, id: str) -> Path:
        return self._trials / id

    def seconds(self, id: str) -> Columns:
        return self._columns(id, "seconds.parquet")

    def timeline(self, id: str) -> Columns:
        return self._columns(id, "timeline.parquet")

    def observed(self, id: str) -> dict[str, Columns]:
        """Series name → its columns `t_s` and `value`."""
        from ironbench.record import columns

        path = self._trials / id / "observed.parquet"
        return columns.read_series(path) if path.exists() else {}

    def counted(self, id: str) -> list[Counted]:
        path = self._trials / id / COUNTED
        return msgspec.json.decode(path.read_bytes(), type=list[Counted]) if path.exists() else []

    def histograms(self, id: str) -> dict[str, Histogram]:
        from ironbench._core import read_hlog

        path = self._trials / id / "latency.hlog"
        return read_hlog(path.read_text()) if path.exists() else {}

    def text(self, id: str, name: str) -> str:
        path = self._trials / id / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def _columns(self, id: str, name: str) -> Columns:
        from ironbench.record import columns

        path = self._trials / id / name
        return columns.read(path) if path.exists() else {}


def _is_damaged(path: Path) -> bool:
    """Whether this is no record of any version of ironbench: not there, or no whole JSON document."""
    try:
        msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return True
    return False


def _put_away(folder: Path) -> None:
    """A damaged record keeps its bytes under a name that is not read, and its trial can be measured again."""
    number = 1
    while (aside := folder.with_name(f".damaged-{folder.name}-{number}")).exists():
        number += 1
    try:
        folder.rename(aside)
    except OSError as error:
        raise _unwritten(folder, error) from error


def _unwritten(path: Path, error: OSError) -> UnwrittenError:
    cause = f"the record could not be written: {error.strerror or error}"
    return UnwrittenError(str(path), cause, "free space, or name another directory with --results")


def write_whole(path: Path, data: bytes) -> None:
    """The file whole or not at all, its directory made where needed. UnwrittenError."""
    aside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(aside, data)
        aside.rename(path)
        _sync_directory(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)
        raise _unwritten(path, error) from error


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
