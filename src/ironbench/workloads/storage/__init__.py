"""`storage`: what a device does for a database, without one. As yet: syncs of small writes, as a log makes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import FailureError, InputError
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.workloads.base import Option, Workload
from ironbench.workloads.tally import Tally

_BLOCK = 8192
"""PostgreSQL writes its log in pages of 8 kB (XLOG_BLCKSZ)."""
_FILE_BYTES = 16 << 20
"""Of one file of PostgreSQL's log (wal_segment_size)."""
_PREFIX = "ironbench-storage-"


class Storage(Workload):
    name = "storage"
    doc = "The device under --data DIR, without a database: how long a small write takes to be safe, as a log makes it"
    engines = ("none",)
    drives = True
    usual_warmup_s = 0.0
    options = (Option("sync", "fdatasync", "how a write is made safe", ("fdatasync", "fsync")),)

    def writes(self, options: Mapping[str, str]) -> bool:
        """No data of any database."""
        return False

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        if system.layout.data is None:
            raise InputError("--data", "is missing", "name a directory on the device to be measured: --data DIR")

    def drive(self, work: Work) -> Outcome:
        assert work.system.layout.data is not None and work.load.duration_s is not None
        sync = os.fsync if work.choice.options["sync"] == "fsync" else os.fdatasync
        part, tally, block = work.choice.options["sync"], Tally("profile"), os.urandom(_BLOCK)
        with _file(Path(work.system.layout.data)) as fd:
            with work.window() as window:
                offset = 0
                while (began_s := window.elapsed_s) < work.load.duration_s and not work.stopping():
                    os.pwrite(fd, block, offset)
                    sync(fd)
                    tally.done(part, began_s, window.elapsed_s)
                    offset = (offset + _BLOCK) % _FILE_BYTES
            return tally.outcome(window.elapsed_s, inside=True)


@contextmanager
def _file(folder: Path) -> Iterator[int]:
    """A file that was not there before, full of zeros, removed at the end. FailureError."""
    try:
        fd, name = tempfile.mkstemp(prefix=_PREFIX, dir=folder)
    except OSError as error:
        raise FailureError(f"data directory {folder}", error.strerror or str(error)) from error
    try:
        Path(name).unlink()  # nothing is left behind, however this process ends
        for offset in range(0, _FILE_BYTES, 1 << 20):
            os.pwrite(fd, bytes(1 << 20), offset)
        os.fsync(fd)
        yield fd
    except OSError as error:
        raise FailureError(f"file in {folder}", error.strerror or str(error)) from error
    finally:
        os.close(fd)


WORKLOAD = Storage()
