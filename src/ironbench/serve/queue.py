"""The queue of labs: files `queue/ID.json` and `queue/ID/NAME.toml` in a results directory.

Once a second, a server checks whether the next lab can start. The server may be killed at any moment. A lab that it has
started continues. The next server then finds the lab's process, or the exit status if the lab has ended.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ironbench.errors import FailureError, InputError, IronbenchError, UnwrittenError
from ironbench.host import durable, measurement_locks, processes
from ironbench.host.detached import Detached, failure_of, status_of
from ironbench.host.processes import ProcessId
from ironbench.printer import Printer
from ironbench.records import Store
from ironbench.records.labs import PLAN, LabDirectory, place_of
from ironbench.report import wording
from ironbench.serve.queue_entry import (
    CANCELLED,
    DONE,
    ENDED,
    FAILED,
    RUNNING,
    STOPPED,
    WAITING,
    QueueEntry,
    QueueRequest,
    moment,
    next_at,
)
from ironbench.serve.results import error_text, without_place

MOST_TRIES = 3
"""Maximum number of attempts to start or resume a lab whose process was killed."""
LONGEST_NAME = 80
"""Maximum number of characters in the name of a lab file, which becomes part of a directory name."""
_INTERRUPTED = 130
_REFUTED = 4
_SUSPECT = 3
_KEPT = 200
"""Maximum number of ended entries. The oldest ones are deleted."""
_LOG_BYTES = 64 << 10
SETTLED_NS = 50_000_000
"""Upper bound for the resolution of a directory's modification time, in ns. If a directory changes twice within this
time, its modification time may change only once."""


Begin = Callable[[QueueEntry, int], ProcessId]
"""Function that starts the lab of an entry and returns the lab's process. The second argument is the file descriptor of
a lock, which the lab inherits."""


class Queue:
    """The queue of a results directory. Several servers may change it, but only one of them starts labs."""

    def __init__(
        self,
        results: Path,
        now: Callable[[], float] = time.time,
        begin: Begin | None = None,
        others: Callable[[], str] = lambda: "",
    ) -> None:
        """Opens the queue. `others`: function that describes what is being measured outside the queue; it returns an
        empty text if there is no such measurement."""
        self.results, self.folder = results, results / "queue"
        self._now, self._begin, self._others = now, begin or self._started, others
        self._lock = contextlib.ExitStack()
        self._starts_labs = False
        self._blocked_by = ""
        """Why the next entry could not start although it is the first in the queue. Empty if nothing prevented it."""
        self._processes: list[Detached] = []
        self._threads, self._inside = threading.RLock(), False
        self._read: tuple[int, list[QueueEntry]] = 0, []
        """Modification time (ns) of the directory when it was last read, and the entries that it contained."""

    def entries(self) -> list[QueueEntry]:
        """Returns the entries in their order. Ignores unreadable files, and entries whose id differs from their file
        name.

        Reads files only if the directory has changed, so that many ended entries take no CPU time from trials.
        """
        try:
            changed_ns = self.folder.stat().st_mtime_ns
        except OSError:
            return []
        known_ns, known = self._read
        if known_ns == changed_ns:
            return list(known)
        found = self._entries()
        if time.time_ns() - changed_ns > SETTLED_NS:
            self._read = changed_ns, found
        return list(found)

    def _entries(self) -> list[QueueEntry]:
        found = []
        with contextlib.suppress(OSError):
            for path in self.folder.glob("*.json"):
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    entry = msgspec.json.decode(path.read_bytes(), type=QueueEntry)
                    found += [entry] if entry.id == path.stem else []
        return sorted(found, key=lambda one: (one.order, one.made_at, one.id))

    def entry(self, id: str) -> QueueEntry:
        """Returns an entry. Raises InputError if there is no entry with this id."""
        for one in self.entries():
            if one.id == id:
                return one
        raise InputError(f"queue entry {id}", "does not exist", "see the queue")

    def put(self, request: QueueRequest) -> QueueEntry:
        """Adds a lab to the queue. Raises InputError if the request is invalid, and UnwrittenError if the files cannot
        be written."""
        letters = request.name.replace("-", "").replace("_", "")
        if len(request.name) > LONGEST_NAME or not (letters.isascii() and letters.isalnum()):
            hint = f"use letters, digits, - and _, at most {LONGEST_NAME} characters"
            raise InputError(f"name {request.name[:LONGEST_NAME]!r}", "is not a valid name for a lab file", hint)
        if request.nightly:
            next_at(request.nightly, self._now())
        if request.after:
            self.entry(request.after)
        with self._changing():
            id = f"{datetime.fromtimestamp(self._now()):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
            not_before = request.not_before or (next_at(request.nightly, self._now()) if request.nightly else 0.0)
            entry = QueueEntry(
                id=id,
                name=request.name,
                made_at=self._now(),
                order=self._last_order() + 1,
                lab=f"{request.name}-{id}",
                resumes=False,
                more=0,
                follows=request.follows,
                not_before=not_before,
                after=request.after,
                nightly=request.nightly,
            )
            try:
                durable.write_whole(self.file(entry), request.text.encode())
                self._write(entry)
            except UnwrittenError:
                self._delete(entry)
                raise
        return entry

    def resume(self, lab: str, more: int = 0) -> QueueEntry:
        """Adds an entry that continues a lab, or that adds a round of `more` blocks to it. Raises InputError if the lab
        is already queued or running, and UnwrittenError if the entry cannot be written."""
        with self._changing():
            for one in self.entries():
                if one.lab == lab and one.state in (WAITING, RUNNING):
                    raise InputError(f"lab {lab}", f"is already {one.state} in the queue", "wait for it, or cancel it")
            id = f"{datetime.fromtimestamp(self._now()):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
            entry = QueueEntry(id, lab, self._now(), self._last_order() + 1, lab, True, more)
            self._write(entry)
        return entry

    def text(self, entry: QueueEntry) -> str:
        path = self._lab_directory(entry) / "lab.toml" if entry.resumes else self.file(entry)
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def begun(self, entry: QueueEntry) -> bool:
        """Returns whether the lab has started. A page exists only for a lab that has started."""
        return (self._lab_directory(entry) / PLAN).is_file()

    def log(self, entry: QueueEntry) -> str:
        """Returns the last 64 KiB of the lab's output, without the paths of the results."""
        try:
            with self._log(entry).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
                return without_place(file.read().decode("utf-8", errors="replace"), self.results)
        except OSError:
            return ""

    def failure(self, lab: str) -> str:
        """Returns why the last start of a lab failed. Returns "" if it did not fail, or if the lab was not started from
        this queue."""
        last = max((one for one in self.entries() if one.lab == lab), key=lambda one: one.begun_at, default=None)
        return last.why if last is not None and last.state == FAILED else ""

    def stop(self, id: str) -> None:
        """Interrupts a running lab as Ctrl-C does. The lab can be resumed, unless its plan was not yet stored."""
        entry = self.entry(id)
        if entry.state == RUNNING and ProcessId(entry.pid, entry.born).alive():
            # The entry's process is the shell that waits for the lab to end.
            for pid in processes.children(entry.pid):
                if (lab := processes.identify(pid)) is not None:
                    lab.signal(signal.SIGINT)

    def cancel(self, id: str) -> None:
        with self._changing():
            entry = self.entry(id)
            if entry.state == WAITING:
                self._write(replace(entry, state=CANCELLED, ended_at=self._now()))

    def remove(self, id: str) -> None:
        """Removes an ended entry. The records of its lab are kept."""
        with self._changing():
            entry = self.entry(id)
            if entry.state in ENDED:
                self._delete(entry)

    def move(self, id: str, by: int) -> None:
        """Swaps a waiting entry with the next entry (`by` 1) or the previous entry (-1)."""
        with self._changing():
            waiting = [one for one in self.entries() if one.state == WAITING]
            place = next((number for number, one in enumerate(waiting) if one.id == id), None)
            if place is None or not 0 <= place + by < len(waiting):
                return
            one, other = waiting[place], waiting[place + by]
            orders = sorted((one.order, other.order)) if one.order != other.order else [one.order, one.order + 0.5]
            first, second = (other, one) if by > 0 else (one, other)
            self._write(replace(first, order=orders[0]))
            self._write(replace(second, order=orders[1]))

    def starts_labs(self) -> bool:
        """Returns whether this server starts the labs of the queue. Only one server does so. If there is none, this
        server takes over."""
        if not self._starts_labs:
            with contextlib.suppress(IronbenchError, OSError):
                self._lock.enter_context(durable.file_lock(self.folder / "lock", f"queue {self.folder}"))
                self._starts_labs = True
        return self._starts_labs

    def close(self) -> None:
        self._lock.close()
        self._starts_labs = False

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        """Locks the queue against other threads and servers while entries are read and written. Raises UnwrittenError
        if the lock file cannot be written."""
        with self._threads:
            if self._inside:
                yield
                return
            with durable.alone(self.folder / "changes"):
                self._inside = True
                try:
                    yield
                finally:
                    self._inside = False

    def tick(self) -> None:
        """Updates entries whose lab has ended, and starts the next lab if it can start now. The server calls this once
        a second. Raises UnwrittenError if an entry cannot be written."""
        self._processes = [process for process in self._processes if not process.reap()]
        with self._threads:
            if self.folder.is_dir() and self.starts_labs():
                self._update()

    def _update(self) -> None:
        with self._changing():
            for one in self.entries():
                if one.state == RUNNING and not ProcessId(one.pid, one.born).alive():
                    self._write(self._ended(one))
            entries = self.entries()
            due = next((one for one in entries if one.state == WAITING and not self.wait_reason(one, entries)), None)
            if due is not None:
                self._start_alone(due)
            for old in sorted((one for one in entries if one.state in ENDED), key=lambda one: -one.ended_at)[_KEPT:]:
                self._delete(old)

    def _start_alone(self, due: QueueEntry) -> None:
        """Starts a lab, unless something else is being measured on this machine. Raises UnwrittenError if the entry
        cannot be written."""
        try:
            lock = measurement_locks.alone()
        except IronbenchError as error:
            self._blocked_by = f"{error} ({error.hint})" if error.hint else str(error)
            return
        self._blocked_by = "another measurement is running on this machine" if lock is None else ""
        if lock is not None:
            try:
                self._launch(due, lock)
            finally:
                os.close(lock)

    def wait_reason(self, entry: QueueEntry, entries: Sequence[QueueEntry]) -> str:
        """Returns why an entry cannot start now. Returns "" if it can."""
        now = self._now()
        if entry.not_before > now:
            return f"starts at {moment(entry.not_before)}"
        earlier = next((one for one in entries if one.id == entry.after), None)
        if earlier is not None and earlier.state not in ENDED:
            return f"starts after {earlier.name} ({earlier.id})"
        if running := next((one for one in entries if one.state == RUNNING), None):
            return f"{running.lab} is running; labs run one at a time"
        if others := self._others():
            return others
        before = [one for one in entries if one.state == WAITING and one.order < entry.order]
        if first := next(
            (one for one in before if one.not_before <= now and not self._is_after_open(one, entries)), None
        ):
            return f"{first.name} ({first.id}) is ahead in the queue"
        return ""

    def page_wait_reason(self, entry: QueueEntry, entries: Sequence[QueueEntry]) -> str:
        """Returns for a page why an entry waits. The text is never empty. Unlike `wait_reason`, this function also
        reports measurements for other results directories."""
        return self.wait_reason(entry, entries) or self._blocked_by or "starts now"

    def file(self, entry: QueueEntry) -> Path:
        return self.folder / entry.id / f"{entry.name}.toml"

    def _is_after_open(self, entry: QueueEntry, entries: Sequence[QueueEntry]) -> bool:
        return any(one.id == entry.after and one.state not in ENDED for one in entries)

    def _launch(self, entry: QueueEntry, lock: int) -> None:
        # The copy for the next night must be queued only once. This code may run again for the same entry if the disk
        # was full or the server was killed.
        if entry.nightly and not entry.tries and not any(one.follows == entry.id for one in self.entries()):
            at = next_at(entry.nightly, self._now())
            self.put(QueueRequest(entry.name, self.text(entry), at, "", entry.nightly, entry.id))
        rounds = entry.rounds if entry.tries else self._rounds(entry)
        entry = replace(entry, state=RUNNING, begun_at=self._now(), tries=entry.tries + 1, why="", rounds=rounds)
        # The entry is written before the process starts. If the server is killed in between, the next server finds an
        # entry without a process and starts the lab again.
        self._write(entry)
        try:
            process = self._begin(entry, lock)
        except IronbenchError as error:
            self._write(replace(entry, state=FAILED, why=error.cause, ended_at=self._now()))
            return
        self._write(replace(entry, pid=process.pid, born=process.born))

    def _started(self, entry: QueueEntry, lock: int) -> ProcessId:
        directory = self._lab_directory(entry).absolute()
        if (directory / PLAN).is_file():
            adds = entry.more and self._rounds(entry) == entry.rounds
            verb = ["resume", str(directory), *(["--more", str(entry.more)] if adds else [])]
        elif entry.resumes:
            raise FailureError(entry.lab, "the lab no longer exists")
        else:
            verb = ["run", str(self.file(entry)), "--results", str(directory)]
        (self.folder / entry.id).mkdir(exist_ok=True)
        environment = {"IRONBENCH_RESULTS": str(self.results.absolute()), measurement_locks.QUEUED: "1"}
        words = [sys.executable, "-m", "ironbench.start", "lab", *verb]
        began = Detached(words, self._log(entry), self._status(entry), environment, [lock])
        self._processes.append(began)
        return began.shell

    def _ended(self, entry: QueueEntry) -> QueueEntry:
        now, status = self._now(), status_of(self._status(entry))
        if status is None or status < 0 or (status > 128 and status != _INTERRUPTED):
            if entry.tries < MOST_TRIES:
                return replace(entry, state=WAITING, why="process killed; the lab will continue", pid=0, born="")
            return replace(entry, state=FAILED, why=f"process killed {MOST_TRIES} times", ended_at=now)
        if status == _INTERRUPTED and not self.begun(entry):
            return replace(entry, state=CANCELLED, why="stopped before the first trial", ended_at=now)
        if status == _INTERRUPTED:
            return replace(entry, state=STOPPED, why="stopped; the lab can be resumed", ended_at=now)
        if status in (0, _SUSPECT, _REFUTED):
            why = {_SUSPECT: "some trials are flagged", _REFUTED: "a claim was refuted"}.get(status, "")
            return replace(entry, state=DONE, why=why, ended_at=now)
        return replace(entry, state=FAILED, why=self._failure(entry) or f"exit code {status}", ended_at=now)

    def _failure(self, entry: QueueEntry) -> str:
        """Returns why a lab failed. This is the error that ended the lab. If it is unknown, returns the cause in the
        record of the last failed trial. Returns "" if there is neither."""
        if error := failure_of(self._status(entry)):
            return error_text(error, self.results)
        records = Store(self._lab_directory(entry), Printer.silent()).all()
        return next((wording.cause(one) for one in reversed(records) if one.causes), "")

    def _rounds(self, entry: QueueEntry) -> int:
        """Returns the number of rounds that were added to the lab of an entry so far. Returns 0 if the entry itself
        does not add a round."""
        with contextlib.suppress(IronbenchError):
            declared = LabDirectory(self._lab_directory(entry)).declared() if entry.more else ()
            return sum(one.stage.added for one in declared)
        return 0

    def _lab_directory(self, entry: QueueEntry) -> Path:
        """Returns the directory of an entry's lab."""
        return place_of(self.results, entry.lab)

    def _last_order(self) -> float:
        return max((one.order for one in self.entries()), default=0.0)

    def _write(self, entry: QueueEntry) -> None:
        durable.write_whole(self.folder / f"{entry.id}.json", msgspec.json.encode(entry))

    def _delete(self, entry: QueueEntry) -> None:
        (self.folder / f"{entry.id}.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder / entry.id, ignore_errors=True)

    def _log(self, entry: QueueEntry) -> Path:
        return self.folder / entry.id / "log"

    def _status(self, entry: QueueEntry) -> Path:
        return self.folder / entry.id / "status"
