"""The store of records: one directory per trial. A record is written under a temporary name, then renamed, and never
changed.

```
<results>/trials/<id>/record.json  timeline.parquet  seconds.parquet  observed.parquet  latency.hlog  log/  …
<results>/machines/<key>.json  engines/<key>.json  scripts/<key>.json  content-addressed, shared by records
<results>/foreign/<id>.json        results of other programs, which are not records (`records.foreign`)
<results>/ironbench-index.db       the values of each record that lists show; can be deleted at any time
```
"""

from __future__ import annotations

import gc
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ironbench.errors import FailureError, InputError, nearest
from ironbench.host import durable, space
from ironbench.model.driven import NOT_DRIVEN, Driven
from ironbench.model.inside import NOTHING, ServerStatistics
from ironbench.model.observation import NOT_OBSERVED, Counted, Observation
from ironbench.model.profile import SampledStack
from ironbench.model.record import SCHEMA, Record, Statement
from ironbench.model.redact import HIDDEN
from ironbench.model.secrets import hidden_in
from ironbench.model.workers import WorkerPart
from ironbench.printer import Printer
from ironbench.records import evidence
from ironbench.records.attached import INSIDE, TIMED, WORKERS
from ironbench.records.decoded import decoded
from ironbench.records.evidence import Columns
from ironbench.records.index import Index, Listed, Stamp, names_in, stamp_of, state_of, text

if TYPE_CHECKING:
    from ironbench._core import Histogram

RECORD = "record.json"
_RENAMED = {"run_queue_delay_share": "run_queue_waiting_per_core"}
"""Name of a metric in version 0.1 → present name. The run queue delay is not a fraction of time, because several
threads wait at the same time."""
_MOST_NAMED = 3
"""Maximum number of unreadable files that a message names. Further files are only counted."""
T = TypeVar("T")


def _without_passwords(record: Record) -> Record:
    """Removes passwords from a record, because messages of servers and libraries may contain them."""
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
    """The records of a results directory. Opening a store creates nothing; the first write does."""

    def __init__(
        self, directory: Path, printer: Printer | None = None, index: Index | None = None, lab: str = ""
    ) -> None:
        """Opens the store. For the store of a lab, `index` is the index of the results directory that contains the lab,
        and `lab` is the name of the lab."""
        self.directory = directory = space.followed(directory)
        self._printer = printer or Printer()
        self._trials = directory / "trials"
        self.index, self._lab = index or Index(directory), text(lab)
        self._left_out: set[Path] = set()
        self._shared: dict[tuple[str, str], dict[str, Any]] = {}

    def validate(self) -> None:
        """Raises InputError if the results directory cannot be written. Leaves no file there."""
        there = space.existing(self._trials)
        # This writes a file, because root has all permissions, even on a read-only file system.
        try:
            tempfile.TemporaryFile(dir=there).close()  # a nameless file, if possible
        except OSError as error:
            raise InputError(
                f"--results {self.directory}", f"cannot store results: {error.strerror}", "use another directory"
            ) from None

    @contextmanager
    def measuring(self, series: str) -> Iterator[None]:
        """Locks a series for this process. Raises InputError if another process is measuring the series already."""
        with durable.file_lock(self.directory / f".{series}.lock", f"run {series}", fleeting=True):
            yield

    def keep(
        self,
        record: Record,
        driven: Driven = NOT_DRIVEN,
        observation: Observation = NOT_OBSERVED,
        files: Mapping[str, bytes] = {},
        profile: Sequence[SampledStack] = (),
    ) -> Record:
        """Writes a record and its files either completely or not at all, even if the process is killed or power is cut.
        The files contain the other data of the trial: what was driven and observed, further `files` by name, and the
        sampled stacks.

        Returns the record with the digests of its files. Raises UnwrittenError.
        """
        record = _without_passwords(record)
        final = self._trials / record.id
        if final.exists():
            if not _is_damaged(final / "record.json"):
                raise FailureError(record.id, "is already in the store", "records are never overwritten")
            _put_away(final)
        try:
            with durable.unfinished_folder(self._trials / f".writing-{record.id}") as aside:
                digests = evidence.write(aside, record, driven, observation, files, profile)
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
        """Returns the content that `keep_shared` stored under this key. Returns an empty document if there is no such
        file. If the file is damaged, prints a warning and also returns an empty document.

        A shared file is read only once: thousands of records may refer to it, and the content for a key never changes.
        """
        if known := self._shared.get((kind, key)):
            return known
        path = self.directory / kind / f"{key}.json"
        if not key or not path.exists():
            return {}
        if not is_shared(path, key):
            self.leave_out(path, "the contents have changed")
            return {}
        content = self._shared[kind, key] = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return content

    def machine(self, key: str) -> dict[str, Any]:
        return self.shared("machines", key)

    def engine(self, key: str) -> dict[str, Any]:
        return self.shared("engines", key)

    def script(self, key: str) -> str:
        content = self.shared("scripts", key).get("text", "")
        return content if isinstance(content, str) else ""

    def all(self) -> list[Record]:
        """Reads every record, oldest first. Warns of unreadable records and leaves them out."""
        with self._warning() as unread:
            names = [name for name in names_in(self._trials) if self._stamp(name, unread)]
            records = [self._read(name, unread) for name in names]
        return sorted((one for one in records if one), key=lambda record: (record.started_at, record.id))

    def of_lab(self, name: str) -> Store:
        """Returns the store of a lab in these results. The lab's store shares the index of this store."""
        return Store(self.directory / "labs" / name, self._printer, self.index, name)

    def listed(self) -> list[Listed]:
        """Returns the index row of every record, oldest first."""
        self.refresh()
        return self._rows()

    def refresh(self, by_name: bool = False, retry: bool = True) -> None:
        """Brings the index up to date. Warns of files that are not readable records.

        `by_name`: whether to skip records that have a row, because checking a hundred thousand files takes half a
        second. Records that were damaged or replaced since they were indexed are then not noticed. `retry`: whether to
        read unreadable records again.
        """
        state, known = self.state(), self.index.known(self._lab)
        stamps: dict[str, Stamp | None] = {}
        with self._warning() as unread:
            for name in names_in(self._trials):
                if by_name and (name in known.stamps or (name in known.unreadable and not retry)):
                    stamps[name] = known.stamps.get(name)
                else:
                    stamps[name] = self._stamp(name, unread)
            self.index.refresh(self._lab, known, state, stamps, lambda name: self._read(name, unread))
        self.index.refreshed[self._lab] = self.refresh

    def state(self) -> str:
        """Returns the state of the directory of trials, as `state_of` defines it."""
        return state_of(self._trials)

    def _stamp(self, name: str, unread: list[str]) -> Stamp | None:
        """Returns the stamp of a record. Returns None for any other file, which is noted in `unread`."""
        stamp = stamp_of(self._trials, name)
        if stamp is None:
            unread.append(f"{self._trials / name} contains no record")
        return stamp

    def _rows(self, where: str = "true", *values: str) -> list[Listed]:
        """Returns the index rows of this store that satisfy a condition in SQL, oldest first."""
        ordered = f"lab = ? and ({where}) order by started_at, id"
        return [row for _, row in self.index.rows(ordered, self._lab, *values)]

    def select(self, selection: Sequence[str]) -> list[Record]:
        """Reads records by id, series or label, in the given order. Without a selection, reads all records. Raises
        InputError."""
        if not selection:
            return self.all()
        sides = self.select_each(selection)
        return list({record.id: record for side in sides for record in side}.values())

    def select_each(self, words: Sequence[str]) -> list[list[Record]]:
        """Reads the records of each word separately. Raises InputError."""
        self.refresh()
        chosen = [[row.id for row in self._match(word)] for word in words]
        with self._warning() as unread:
            return [[record for id in side if (record := self._read(id, unread))] for side in chosen]

    def matching(self, words: Sequence[str], wanted: Callable[[Listed], bool]) -> list[Record]:
        """Reads the records that `select` would read, but only those whose index row satisfies `wanted`. Opens no other
        record."""
        return self.records([row.id for row in self.rows(words) if wanted(row)])

    def rows(self, words: Sequence[str]) -> list[Listed]:
        """Returns the index rows of the records that `select` would read, in the same order. Raises InputError."""
        if not words:
            return self.listed()
        self.refresh()
        return list({row.id: row for word in words for row in self._match(word)}.values())

    def records(self, ids: Iterable[str]) -> list[Record]:
        """Reads records by id, in the given order. Warns of unreadable records and leaves them out."""
        with self._warning() as unread:
            return [record for id in ids if (record := self._read(id, unread))]

    def _match(self, word: str) -> list[Listed]:
        """Returns the index rows of an id, series or label. Raises InputError."""
        if found := self._rows("id = ? or series = ?", word, word) or self._rows("label = ?", word):
            return found
        from ironbench.records import foreign

        if foreign.named(word, self.directory):
            cause = "is a foreign record; foreign records can be shown and compared, but not ranked, judged or exported"
            hint = f"use `ironbench show {word}`, or `ironbench compare {word} NAME` to compare it with trials"
            raise InputError(word, cause, hint)
        rows = self._rows()
        known = sorted({row.label for row in rows} | {row.series for row in rows})
        hint = (
            nearest(word, known)
            if known
            else f"{self.directory} contains no records yet; create some with `ironbench run`"
        )
        raise InputError(word, "matches no record, series or label", hint)

    def faults(self, read: Set[str]) -> list[str]:
        """Describes the files that cannot be read, without the path of the results. `read`: ids of records that are
        known to be readable."""
        unread: list[str] = []
        for name in names_in(self._trials):
            if name not in read and self._stamp(name, unread):
                self._read(name, unread)
        return [one.replace(f"{self._trials}/", "") for one in unread]

    def _read(self, name: str, unread: list[str]) -> Record | None:
        """Reads a record. If it cannot be used, returns None and notes the reason in `unread`."""
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
            unread.append(f"{path} contains the record {record.id} under another name")
            return None
        if not _RENAMED.keys().isdisjoint(record.metrics):
            return replace(record, metrics=_renamed(record.metrics))
        return record

    @contextmanager
    def _warning(self) -> Iterator[list[str]]:
        """Yields a list to which the caller adds messages about unreadable files. Prints these messages at the end of
        the block."""
        unread: list[str] = []
        # The garbage collector is disabled: records have no reference cycles, and searching for them would take a tenth
        # of the time.
        collects = gc.isenabled()
        gc.disable()
        try:
            yield unread
        finally:
            if collects:
                gc.enable()
        for one in unread[:_MOST_NAMED]:
            self._printer.say(f"skipped: {one}")
        if len(unread) > _MOST_NAMED:
            self._printer.say(f"skipped: {len(unread) - _MOST_NAMED} more in {self._trials}")

    def gone(self, records: Iterable[Record]) -> list[str]:
        """Returns the ids of records whose files are missing, because their directory was removed or unmounted."""
        return [record.id for record in records if not (self._trials / record.id / RECORD).is_file()]

    def path(self, id: str) -> Path:
        return self._trials / id

    def seconds(self, id: str) -> Columns:
        return self._evidence(id, evidence.SECONDS, evidence.columns, {})

    def timeline(self, id: str) -> Columns:
        return self._evidence(id, evidence.TIMELINE, evidence.columns, {})

    def observed(self, id: str) -> dict[str, Columns]:
        """Reads the observed time series: name → columns `t_s` and `value`."""
        return _renamed(self._evidence(id, evidence.OBSERVED, evidence.series, {}))

    def counted(self, id: str) -> list[Counted]:
        return self._evidence(id, evidence.COUNTED, evidence.counted, [])

    def profile(self, id: str) -> Sequence[SampledStack]:
        return self._evidence(id, evidence.PROFILE, evidence.profile, ())

    def histograms(self, id: str) -> dict[str, Histogram]:
        return self._evidence(id, evidence.LATENCY, evidence.histograms, {})

    def text(self, id: str, name: str) -> str:
        return self._evidence(id, name, evidence.text, "")

    def inside(self, id: str) -> ServerStatistics:
        return self._evidence(id, INSIDE, evidence.inside, NOTHING)

    def timed(self, id: str) -> Sequence[Statement]:
        return self._evidence(id, TIMED, evidence.timed, ())

    def workers(self, id: str) -> Sequence[WorkerPart]:
        return self._evidence(id, WORKERS, evidence.workers, ())

    def damage(self, id: str) -> dict[str, str]:
        """Finds the damaged files of a record. Returns the fault of each file by the file's name."""
        faults = {}
        for name, read in evidence.READERS.items():
            try:
                self._read_evidence(id, name, read)
            except evidence.UNREADABLE as error:
                faults[name] = evidence.fault(error)
        return faults

    def _evidence(self, id: str, name: str, read: Callable[[Path], T], missing: T) -> T:
        """Reads a file of a record. Returns `missing` if there is no such file. If the file is damaged, prints a
        warning and returns `missing`."""
        try:
            content = self._read_evidence(id, name, read)
        except evidence.UNREADABLE as error:
            self.leave_out(self._trials / id / name, evidence.fault(error))
            return missing
        return missing if content is None else content

    def _read_evidence(self, id: str, name: str, read: Callable[[Path], T]) -> T | None:
        """Reads a file of a record. Returns None if the record has no such file. Raises one of `UNREADABLE`."""
        path = self._trials / id / name
        digest = self._digests(id).get(name)
        if not path.exists():
            if digest is not None:
                raise ValueError("no longer exists")
            return None
        if digest is not None and evidence.digest_of(path) != digest:
            raise ValueError("does not match the digest in the record")
        return read(path)

    def _digests(self, id: str) -> dict[str, str]:
        try:
            return msgspec.json.decode((self._trials / id / RECORD).read_bytes(), type=_Files).files
        except (OSError, msgspec.DecodeError, RecursionError):
            return {}

    def leave_out(self, path: Path, why: str) -> None:
        """Prints once that a damaged file is not used."""
        if path not in self._left_out:
            self._left_out.add(path)
            self._printer.say(f"skipped: {path} is damaged: {why}")


def _renamed(by_metric: dict[str, T]) -> dict[str, T]:
    return {_RENAMED.get(name, name): value for name, value in by_metric.items()}


def content_key(data: bytes) -> str:
    """Returns the key of a shared file, computed from its document in compact and sorted form."""
    return hashlib.sha256(data).hexdigest()[:16]


def is_shared(path: Path, key: str) -> bool:
    """Returns whether the content of a file matches its key.

    The content of a file in which an export has hidden a password cannot match. Such a file is accepted if it is a JSON
    document.
    """
    try:
        data = path.read_bytes()
        document = msgspec.json.decode(data, type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return False
    return content_key(msgspec.json.format(data, indent=-1)) == key or HIDDEN in str(document)


def _is_damaged(path: Path) -> bool:
    """Returns whether the file is missing or not a JSON document, so that no version of ironbench can read it."""
    try:
        msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, RecursionError):
        return True
    return False


def _put_away(folder: Path) -> None:
    """Renames a damaged record, so that its trial can be measured again and its bytes are kept."""
    number = 1
    while (aside := folder.with_name(f".damaged-{folder.name}-{number}")).exists():
        number += 1
    try:
        folder.rename(aside)
    except OSError as error:
        raise durable.unwritten(folder, error) from error


def _encoded(record: Record) -> bytes:
    """Encodes a record as JSON. Whole numbers are written without `.0`, which keeps records small."""
    content = msgspec.to_builtins(record)
    content["metrics"] = {
        name: int(value) if float(value).is_integer() and abs(value) < 2**53 else value
        for name, value in record.metrics.items()
    }
    return msgspec.json.encode(content) + b"\n"
