"""Writes the files with a trial's evidence and computes their digests. Reads and validates these files.

A reader raises one of `UNREADABLE` for a file with invalid content.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import IronbenchError
from ironbench.model.driven import Driven
from ironbench.model.inside import ServerStatistics
from ironbench.model.observation import Counted, Observation
from ironbench.model.profile import SampledStack
from ironbench.model.record import Record, Statement
from ironbench.model.workers import WorkerPart
from ironbench.records.attached import INSIDE, TIMED, WORKERS, read_inside, read_timed, read_workers

if TYPE_CHECKING:
    import numpy as np

    from ironbench._core import Histogram

TIMELINE, SECONDS, OBSERVED = "timeline.parquet", "seconds.parquet", "observed.parquet"
PROFILE = "profile.parquet"
COUNTED, LATENCY, LOG = "counted.json", "latency.hlog", "log/child.log"
Columns = dict[str, "np.ndarray[Any, np.dtype[np.float64]]"]
UNREADABLE = (OSError, ValueError, KeyError, RecursionError, msgspec.MsgspecError, IronbenchError)
_LONGEST = 300
"""Maximum number of characters of a reader's message that are shown."""


def write(
    folder: Path,
    record: Record,
    driven: Driven,
    observation: Observation,
    files: Mapping[str, bytes],
    profile: Sequence[SampledStack],
) -> dict[str, str]:
    """Writes the files with the data of a trial and does not sync them. Returns a dict that maps the name of each file
    to its digest. Raises OSError. `files`: further files by name."""
    from ironbench.records import parquet

    if driven.timeline:
        parquet.write(folder / TIMELINE, driven.timeline)
    if driven.seconds:
        parquet.write(folder / SECONDS, driven.seconds)
    if series := (*observation.series, *driven.series):
        parquet.write_series(folder / OBSERVED, series)
    if profile:
        from ironbench.records import profiles

        profiles.write_profile(folder / PROFILE, profile)
    if observation.counted:
        (folder / COUNTED).write_bytes(msgspec.json.encode(observation.counted))
    if driven.histograms:
        from datetime import datetime

        from ironbench._core import write_hlog

        start = datetime.fromisoformat(record.started_at).timestamp()
        (folder / LATENCY).write_text(write_hlog(driven.histograms, start, record.elapsed_s))
    if driven.log:
        (folder / LOG).parent.mkdir()
        (folder / LOG).write_bytes(driven.log)
    for name, content in {**driven.files, **files}.items():
        (folder / name).write_bytes(content)
    return {str(path.relative_to(folder)): digest_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file's content. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def columns(path: Path) -> Columns:
    from ironbench.records import parquet

    return parquet.read(path)


def series(path: Path) -> dict[str, Columns]:
    """Returns, for each series, its columns `t_s` and `value`."""
    from ironbench.records import parquet

    return parquet.read_series(path)


def profile(path: Path) -> tuple[SampledStack, ...]:
    from ironbench.records import profiles

    return profiles.read_profile(path)


def fault(error: Exception) -> str:
    """Returns the message of a reader's error on one line."""
    words = error.cause if isinstance(error, IronbenchError) else str(error)
    return next(iter(words.splitlines()), type(error).__name__)[:_LONGEST]


def counted(path: Path) -> list[Counted]:
    quantities = msgspec.json.decode(path.read_bytes(), type=list[Counted])
    for one in quantities:
        if len(one.edges) != len(one.counts) or list(one.edges) != sorted(set(one.edges)):
            raise ValueError(f"the buckets of {one.name} are not in order")
        if any(count < 0 for count in one.counts) or not math.isfinite(sum((*one.edges, *one.counts))):
            raise ValueError(f"{one.name} has impossible counts")
    return quantities


def histograms(path: Path) -> dict[str, Histogram]:
    from ironbench._core import read_hlog

    return read_hlog(path.read_text(encoding="utf-8"))


def text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def inside(path: Path) -> ServerStatistics:
    return read_inside(path.read_bytes())


def timed(path: Path) -> tuple[Statement, ...]:
    return read_timed(path.read_bytes())


def workers(path: Path) -> tuple[WorkerPart, ...]:
    return read_workers(path.read_bytes())


def slices(path: Path) -> tuple[dict[str, float | bool], ...]:
    return msgspec.json.decode(path.read_bytes(), type=tuple[dict[str, float | bool], ...])


READERS: dict[str, Callable[[Path], Any]] = {
    TIMELINE: columns,
    SECONDS: columns,
    OBSERVED: series,
    PROFILE: profile,
    COUNTED: counted,
    LATENCY: histograms,
    LOG: text,
    "commands.log": text,
    "plans.txt": text,
    "slices.json": slices,
    INSIDE: inside,
    TIMED: timed,
    WORKERS: workers,
    "streams.csv": text,
}
"""For each evidence file, the function that reads and validates it."""
