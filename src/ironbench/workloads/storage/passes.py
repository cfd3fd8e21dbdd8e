"""Plans and runs passes. During a pass, the core reads and writes the files for some time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.catalogue.storage_tests import MIB, Test, chosen
from ironbench.errors import FailureError
from ironbench.workloads.storage.files import TestFile

if TYPE_CHECKING:
    from ironbench._core import Histogram, StorageProgress


LOG_BYTES = 16 * MIB
"""Size of the file that sync tests overwrite repeatedly, as PostgreSQL recycles WAL segments (wal_segment_size)."""
BUCKET_S = 0.1
WARMING = Test("warming", "warming", "read", "sequential", MIB, blocking=True)
"""Test that reads a file into the page cache."""


@dataclass(frozen=True, slots=True)
class PassSettings:
    """Parameters that are the same for all passes of a trial."""

    size: int
    """Size of each file in bytes."""
    zero_percent: int
    io: str
    """How I/Os are submitted: `auto`, `io_uring` or `threads`."""
    seed: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PassResult:
    """Result of one pass of one test."""

    test: Test
    began_s: float
    elapsed_s: float
    ios: int
    bytes: int
    cpu_s: float
    reads: Histogram
    writes: Histogram
    buckets: tuple[int, ...]
    """Number of I/Os in each tenth of a second."""
    io: str
    note: str
    stopped: bool
    alone: int | None = None
    """Index of the file, if the pass used only one of several files. The value is None if the pass used all files."""

    @property
    def bytes_per_s(self) -> float:
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0


def fill(files: Sequence[TestFile], terms: PassSettings, progress: StorageProgress) -> None:
    """Writes every block once, because reads of unwritten space would not reach the device. Raises FailureError."""
    test = Test("fill", "fill", "write", "sequential", MIB, 8, 1, 0)
    size = os.fstat(files[0].direct).st_size
    _core_pass(test, files, replace(terms, size=size), {"bytes": size}, progress)


def run(
    test: Test,
    files: Sequence[TestFile],
    terms: PassSettings,
    seconds: float,
    began_s: float,
    progress: StorageProgress,
) -> PassResult:
    """Runs one pass. Raises FailureError if an I/O fails."""
    if test.hot:
        _core_pass(
            WARMING, [replace(file, direct=file.cached) for file in files], terms, {"bytes": terms.size}, progress
        )
    if test.sync != "none" or test.cached:
        # Otherwise, the first flush of the test would also wait for data of earlier tests. Besides, dirty pages cannot
        # be evicted from the cache.
        _settled(files)
    if test.read_percent < 100:
        _out_of_cache([file for file in files if _descriptor(test, file) == file.direct])
    until: dict[str, Any] = {"seconds": seconds}
    if test.kdiskmark:
        until = {"first_of": {"seconds": seconds, "bytes": test.threads * terms.size}}
    result = _core_pass(test, files, terms, until, progress)
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    return PassResult(
        test=test,
        began_s=began_s,
        elapsed_s=summary["elapsed_s"],
        ios=summary["reads"] + summary["writes"],
        bytes=summary["bytes"],
        cpu_s=summary["cpu_user_s"] + summary["cpu_system_s"],
        reads=result.reads,
        writes=result.writes,
        buckets=tuple(result.buckets),
        io=summary["io"],
        note=summary["note"],
        stopped=summary["stopped"],
    )


def _settled(files: Sequence[TestFile]) -> None:
    """Flushes all files. Raises FailureError."""
    for file in files:
        try:
            os.fdatasync(file.cached)
        except OSError as error:
            raise FailureError(f"storage in {file.folder}", f"a flush failed: {error.strerror}") from error


def _out_of_cache(files: Sequence[TestFile]) -> None:
    """Evicts files from the page cache if they are opened for direct I/O. Otherwise, a direct write would have to
    invalidate cached pages of its block (Linux: mm/filemap.c, `kiocb_invalidate_pages`), and the time for this would
    count as part of the write. Files that are not opened for direct I/O stay in the page cache.
    """
    for file in files:
        if fcntl.fcntl(file.direct, fcntl.F_GETFL) & os.O_DIRECT:
            os.posix_fadvise(file.cached, 0, 0, os.POSIX_FADV_DONTNEED)


def _core_pass(
    test: Test, files: Sequence[TestFile], terms: PassSettings, until: dict[str, Any], progress: StorageProgress
) -> Any:
    from ironbench import _core

    plan = {
        "files": [_descriptor(test, file) for file in files],
        "file_bytes": min(LOG_BYTES, terms.size) if test.sync != "none" else terms.size,
        "block_bytes": test.block_bytes,
        "order": test.order,
        "depth": test.depth,
        "threads": test.threads,
        "read_percent": test.read_percent,
        "zero_percent": terms.zero_percent,
        "sync": test.sync if test.sync in ("fsync", "fdatasync") else "none",
        "sync_at_end": test.kdiskmark,
        "small_pages": test.kdiskmark,
        "evict": test.cached,
        "until": until,
        # Like the WAL of a database, durable writes are written by one thread, one call at a time.
        "io": "threads" if test.sync != "none" or test.blocking else terms.io,
        "seed": terms.seed,
        "cpus": list(terms.cpus),
    }
    return _core.storage_pass(msgspec.json.encode(plan), progress)


def _descriptor(test: Test, file: TestFile) -> int:
    if test.sync == "dsync":
        return file.synced
    return file.cached if test.cached or test.hot or test.sync != "none" else file.direct


def seeded(terms: PassSettings, number: int) -> PassSettings:
    """Gives every pass different random offsets."""
    return replace(terms, seed=(terms.seed + number * 0x9E37_79B9) % (1 << 63))


@dataclass(frozen=True, slots=True)
class PlannedPass:
    """A pass that has not run yet."""

    test: Test
    round: int
    """0-based number of the round. A sustained write has only round 0."""
    seconds: float
    alone: int | None = None
    """Index of the file, if the pass uses only one of several files. The value is None if the pass uses all files at
    the same time."""


def due(options: Mapping[str, str], folders: int, duration_s: float | None = None) -> list[PlannedPass]:
    """Plans the passes. Every test has one pass per round, so that drift becomes visible in the range of each test.
    Sustained writes come last. If there are several folders, every short test runs in each folder separately and then
    in all folders together. This shows whether the folders share a limit. `duration_s`: total duration of all passes,
    if the user set it.
    """
    tests = chosen(options["tests"], int(options["mix"]))
    seconds, sustain = float(options["seconds"]), float(options["sustain"])
    ways = (*range(folders), None) if folders > 1 else (None,)
    short = [
        PlannedPass(test, number, seconds, way)
        for number in range(int(options["passes"]))
        for test in tests
        if not test.sustained
        for way in ways
    ]
    passes = [*short, *(PlannedPass(test, 0, sustain) for test in tests if test.sustained)]
    if duration_s is None:
        return passes
    scale = duration_s / sum(one.seconds for one in passes)
    return [replace(one, seconds=one.seconds * scale) for one in passes]
