"""One folder per trial, written aside and renamed. Nothing edits a record.

```
<results>/trials/<id>/record.json  timeline.parquet  seconds.parquet  observed.parquet  latency.hlog  log/  …
<results>/machines/<key>.json  engines/<key>.json  scripts/<key>.json  content-addressed, shared by records
<results>/index.json               what a list needs of each record; can be deleted at any time
```
"""

from __future__ import annotations

import gc
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ironbench.errors import FailureError, InputError, nearest
from ironbench.host import space
from ironbench.model.inside import NOTHING, ServerStatistics
from ironbench.model.observation import Counted
from ironbench.model.record import SCHEMA, Record, Statement
from ironbench.model.redact import HIDDEN
from ironbench.model.secrets import hidden_in
from ironbench.model.workers import WorkerPart
from ironbench.printer import Printer
from ironbench.records import durable, index
from ironbench.records import evidence as files
from ironbench.records.attached import INSIDE, TIMED, WORKERS
from ironbench.records.decoded import decoded
from ironbench.records.evidence import Columns, Evidence
from ironbench.records.index import Listed

if TYPE_CHECKING:
    from ironbench._core import Histogram

RECORD = "record.json"
_RENAMED = {"run_queue_delay_share": "run_queue_waiting_per_core"}
"""Metrics of version 0.1 → their current names. The renamed metric is no fraction, because several threads may wait at
once."""
_MOST_NAMED = 3
"""Maximum number of unreadable files that are reported individually; the rest is counted."""
T = TypeVar("T")


def _without_passwords(record: Record) -> Record:
    """Returns the record without passwords, which messages of servers and libraries may repeat."""
    texts = {
        name: msgspec.to_builtins(getattr(record, name)) for name in ("causes", "warnings", "checks", "conditions")
    }
    clean = {name: hidden_in(value) for name, value in texts.items()}
    if clean == texts:
        return record
    return msgspec.convert({**msgspec.to_builtins(record), **clean}, Record)


class _Files(msgspec.Struct):
    files: dict[str, str] = msgspec.field(default_factory=dict)


class Store:
    """Records in a results directory. Opening it creates nothing; the first write does."""

    def __init__(self, directory: Path, printer: Printer | None = None) -> None:
        self.directory = directory = space.followed(directory)
        self._printer = printer or Printer()
        self._trials = directory / "trials"
        self._left_out: set[Path] = set()
        self._shared: dict[tuple[str, str], dict[str, Any]] = {}

    def validate(self) -> None:
        """Raises InputError if the results directory is not writable, before anything is started. Leaves no file
        behind."""
        there = space.existing(self._trials)
        try:  # permissions alone are not enough: root may write everywhere but to a read-only file system
            tempfile.TemporaryFile(dir=there).close()  # without a name, if the file system supports that
        except OSError as error:
            raise InputError(
                f"--results {self.directory}", f"cannot hold results: {error.strerror}", "name another directory"
            ) from None

    @contextmanager
    def measuring(self, series: str) -> Iterator[None]:
        """Prevents other processes from measuring the same series. Raises InputError if one already does."""
        with durable.held(self.directory / f".{series}.lock", f"run {series}", fleeting=True):
            yield

    def keep(self, record: Record, evidence: Evidence) -> Record:
        """Writes a trial atomically, safe against a kill or a power cut at any time.

        Returns the record with the digest of each of its files. Raises UnwrittenError.
        """
        record = _without_passwords(record)
        final = self._trials / record.id
        if final.exists():
            if not _is_damaged(final / "record.json"):
                raise FailureError(record.id, "is in the store already", "records are never overwritten")
            _put_away(final)
        try:
            with durable.unfinished_folder(self._trials / f".writing-{record.id}") as aside:
                digests = files.write(aside, evidence, record.started_at, record.elapsed_s)
                record = replace(record, files=digests)
                (aside / RECORD).write_bytes(_encoded(record))
                durable.sync_tree(aside)
                aside.rename(final)
                durable.sync(self._trials)
        except OSError as error:
            raise durable.unwritten(final, error) from error
        return record

    def keep_shared(self, kind: str, content: Any) -> str:
        """Stores a fingerprint (`machines`), engine facts (`engines`) or a script's text (`scripts`) once.

        Returns its content key. Raises UnwrittenError.
        """
        data = msgspec.json.encode(content, order="sorted")
        key = content_key(data)
        path = self.directory / kind / f"{key}.json"
        if not is_shared(path, key):
            durable.write_whole(path, msgspec.json.format(data, indent=1))
        return key

    def shared(self, kind: str, key: str) -> dict[str, Any]:
        """Returns what `keep_shared` stored; empty, with a warning, if it is missing or damaged.

        A file is read once: thousands of records share it, and its key depends on its content.
        """
        if known := self._shared.get((kind, key)):
            return known
        path = self.directory / kind / f"{key}.json"
        if not key or not path.exists():
            return {}
        if not is_shared(path, key):
            self.leave_out(path, "its content is not what was kept")
            return {}
        content = self._shared[kind, key] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return content

    def machine(self, key: str) -> dict[str, Any]:
        return self.shared("machines", key)

    def engine(self, key: str) -> dict[str, Any]:
        return self.shared("engines", key)

    def script(self, key: str) -> str:
        text = self.shared("scripts", key).get("text", "")
        return text if isinstance(text, str) else ""

    def all(self) -> list[Record]:
        """Returns every record, oldest first. Unreadable ones are left out with a warning."""
        with self._telling() as unread:
            records = [self._read(name, unread) for name in self._folders(unread)]
        return sorted((one for one in records if one), key=lambda record: (record.started_at, record.id))

    def listed(self) -> list[Listed]:
        """Every record in short, oldest first; from the index where it holds."""
        with self._telling() as unread:
            return index.rows(self.directory, self._folders(unread), lambda name: self._read(name, unread))

    def remembered(self, names: Set[str]) -> dict[str, Listed]:
        """Those of these ids in short, see `index.remembered`."""
        with self._telling() as unread:
            return index.remembered(
                self.directory,
                names,
                lambda name: index.stamp_of(self._trials, name),
                lambda name: self._read(name, unread),
            )

    def row(self, id: str) -> Listed | None:
        """One record in short; None where it cannot be read."""
        record = self._read(id, [])
        return index.short(record) if record else None

    def select(self, selection: Sequence[str]) -> list[Record]:
        """Returns records by id, series or label (all its series), in the order named; all records if the selection is
        empty."""
        if not selection:
            return self.all()
        sides = self.select_each(selection)
        return list({record.id: record for side in sides for record in side}.values())

    def select_each(self, words: Sequence[str]) -> list[list[Record]]:
        """Returns the records of each name separately."""
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
        """Returns records by id, in the same order; unreadable ones are left out with a warning."""
        with self._telling() as unread:
            return [record for id in ids if (record := self._read(id, unread))]

    def _match(self, word: str, rows: list[Listed]) -> list[Listed]:
        exact = [row for row in rows if word in (row.id, row.series)]
        matches = exact or [row for row in rows if row.label == word]
        if matches:
            return matches
        known = sorted({row.label for row in rows} | {row.series for row in rows})
        hint = (
            nearest(word, known)
            if known
            else f"there are no records in {self.directory} yet; make some with `ironbench run`"
        )
        raise InputError(word, "names no record, series or label", hint)

    def _folders(self, unread: list[str]) -> dict[str, index.Stamp]:
        """Folders that hold a record; what else lies there is added to `unread`."""
        stamps: dict[str, index.Stamp] = {}
        if not self._trials.is_dir():
            return stamps
        for name, stamp in index.stamps(self._trials):
            if stamp is None:
                unread.append(f"{self._trials / name} holds no record")
            else:
                stamps[name] = stamp
        return stamps

    def faults(self, read: Set[str]) -> list[str]:
        """What cannot be read, in words, without where the records lie. `read`: ids of records that could be."""
        unread: list[str] = []
        for name in self._folders(unread):
            if name not in read:
                self._read(name, unread)
        return [text.replace(f"{self._trials}/", "") for text in unread]

    def _read(self, name: str, unread: list[str]) -> Record | None:
        """Returns the record in a folder; None, with the reason in `unread`, if there is no usable record."""
        path = self._trials / f"{name}/record.json"
        try:
            record = decoded(path.read_bytes())
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            unread.append(f"{path} is not a readable record: {error}")
            return None
        if record.schema > SCHEMA:
            unread.append(f"{path} has schema {record.schema}, newer than {SCHEMA}: read it with a newer ironbench")
            return None
        if record.id != name:
            unread.append(f"{path} is the record {record.id} under another name")
            return None
        if not _RENAMED.keys().isdisjoint(record.metrics):
            return replace(record, metrics=_renamed(record.metrics))
        return record

    @contextmanager
    def _telling(self) -> Iterator[list[str]]:
        """Collects messages about unreadable files and prints them at the end: never silent, never fatal."""
        unread: list[str] = []
        # The objects read have no reference cycles; searching for cycles would take a tenth of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            yield unread
        finally:
            if collects:
                gc.enable()
        for text in unread[:_MOST_NAMED]:
            self._printer.say(f"left out: {text}")
        if len(unread) > _MOST_NAMED:
            self._printer.say(f"left out: {len(unread) - _MOST_NAMED} more in {self._trials}")

    def gone(self, records: Iterable[Record]) -> list[str]:
        """Returns the ids of records that have disappeared: their directory was removed or unmounted meanwhile."""
        return [record.id for record in records if not (self._trials / record.id / RECORD).is_file()]

    def path(self, id: str) -> Path:
        return self._trials / id

    def seconds(self, id: str) -> Columns:
        return self._evidence(id, files.SECONDS, files.columns, {})

    def timeline(self, id: str) -> Columns:
        return self._evidence(id, files.TIMELINE, files.columns, {})

    def observed(self, id: str) -> dict[str, Columns]:
        """Returns series name → its columns `t_s` and `value`."""
        return _renamed(self._evidence(id, files.OBSERVED, files.series, {}))

    def counted(self, id: str) -> list[Counted]:
        return self._evidence(id, files.COUNTED, files.counted, [])

    def histograms(self, id: str) -> dict[str, Histogram]:
        return self._evidence(id, files.LATENCY, files.histograms, {})

    def text(self, id: str, name: str) -> str:
        return self._evidence(id, name, files.text, "")

    def inside(self, id: str) -> ServerStatistics:
        return self._evidence(id, INSIDE, files.inside, NOTHING)

    def timed(self, id: str) -> Sequence[Statement]:
        return self._evidence(id, TIMED, files.timed, ())

    def workers(self, id: str) -> Sequence[WorkerPart]:
        return self._evidence(id, WORKERS, files.workers, ())

    def damage(self, id: str) -> dict[str, str]:
        """Returns the damaged files of a record, each with its fault."""
        faults = {}
        for name, read in files.READERS.items():
            try:
                self._read_evidence(id, name, read)
            except files.UNREADABLE as error:
                faults[name] = files.fault(error)
        return faults

    def _evidence(self, id: str, name: str, read: Callable[[Path], T], missing: T) -> T:
        """Returns the content of a record's file; `missing` if the file does not exist or, with a warning, is
        damaged."""
        try:
            content = self._read_evidence(id, name, read)
        except files.UNREADABLE as error:
            self.leave_out(self._trials / id / name, files.fault(error))
            return missing
        return missing if content is None else content

    def _read_evidence(self, id: str, name: str, read: Callable[[Path], T]) -> T | None:
        """Reads a file of a record; returns None if the record has no such file. Raises one of `UNREADABLE`."""
        path = self._trials / id / name
        digest = self._digests(id).get(name)
        if not path.exists():
            if digest is not None:
                raise ValueError("is not there any more")
            return None
        if digest is not None and files.digest_of(path) != digest:
            raise ValueError("has another content than the record says")
        return read(path)

    def _digests(self, id: str) -> dict[str, str]:
        try:
            return msgspec.json.decode((self._trials / id / RECORD).read_bytes(), type=_Files).files
        except (OSError, msgspec.DecodeError, RecursionError):
            return {}

    def leave_out(self, path: Path, why: str) -> None:
        """Warns once per damaged file that it is ignored."""
        if path not in self._left_out:
            self._left_out.add(path)
            self._printer.say(f"left out: {path} is damaged: {why}")


def _renamed(by_metric: dict[str, T]) -> dict[str, T]:
    return {_RENAMED.get(name, name): value for name, value in by_metric.items()}


def content_key(data: bytes) -> str:
    """Returns the key of a shared file's JSON document, compact and sorted."""
    return hashlib.sha256(data).hexdigest()[:16]


def is_shared(path: Path, key: str) -> bool:
    """Whether the file is the document that its key was computed from.

    If an export has hidden a password, the document differs; it then only has to be valid JSON.
    """
    try:
        data = path.read_bytes()
        document = msgspec.json.decode(data, type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return False
    return content_key(msgspec.json.format(data, indent=-1)) == key or HIDDEN in str(document)


def _is_damaged(path: Path) -> bool:
    """Whether the file is no record of any version of ironbench: missing, or no complete JSON document."""
    try:
        msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return True
    return False


def _put_away(folder: Path) -> None:
    """Renames a damaged record to a name that is not read, so that its trial can be measured again."""
    number = 1
    while (aside := folder.with_name(f".damaged-{folder.name}-{number}")).exists():
        number += 1
    try:
        folder.rename(aside)
    except OSError as error:
        raise durable.unwritten(folder, error) from error


def _encoded(record: Record) -> bytes:
    """Encodes the record as JSON, with whole metrics as integers to keep it small."""
    content = msgspec.to_builtins(record)
    content["metrics"] = {
        name: int(value) if float(value).is_integer() and abs(value) < 2**53 else value
        for name, value in record.metrics.items()
    }
    return msgspec.json.encode(content) + b"\n"
