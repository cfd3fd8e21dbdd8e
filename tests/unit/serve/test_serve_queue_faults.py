"""Faults around the queue: a full disk, no place for a lock, a lab that is stopped before it has started."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from queued import Clock, Labs, put, states

from ironbench.errors import UnwrittenError
from ironbench.host import measurement_locks
from ironbench.serve.queue import Queue
from ironbench.serve.queue_entry import CANCELLED, RUNNING, WAITING, QueueRequest

PLAN = """question = "x"
workload.name = "select-only"
system.engine = "null"
load.duration = "60s"
vary.clients = [1, 2]
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(measurement_locks.QUEUED, raising=False)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few pages."""
    path = tmp_path / "small"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "none", str(path)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(disk: Path) -> Path:
    """Fills the disk until no byte is free. Returns the file."""
    path = disk / "filler"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return path


def test_a_full_disk_leaves_no_half_entry(small_disk: Path) -> None:
    with contextlib.closing(Queue(small_disk)) as queue:
        filler = fill(small_disk)
        with pytest.raises(UnwrittenError, match="No space left"):
            put(queue, "one")
        assert not queue.entries() and {path.name for path in (small_disk / "queue").glob("*")} <= {"changes"}
        filler.unlink()
        put(queue, "one")
        assert states(queue) == [("one", WAITING)]


def test_on_a_full_disk_a_nightly_lab_waits_and_has_one_next_night_when_there_is_room(small_disk: Path) -> None:
    clock, labs = Clock(), Labs(small_disk)
    with contextlib.closing(labs), contextlib.closing(Queue(small_disk, clock, labs.begin)) as queue:
        put(queue, "night", nightly="22:00")
        filler = fill(small_disk)
        clock.now = datetime(2026, 11, 25, 22, 0, 1).timestamp()
        for _ in range(3):
            with pytest.raises(UnwrittenError):
                queue.tick()
        assert states(queue) == [("night", WAITING)] and not labs.begun
        assert len(list((small_disk / "queue").glob("*/"))) == 1
        filler.unlink()
        queue.tick()
        assert states(queue) == [("night", RUNNING), ("night", WAITING)]


def test_a_nightly_lab_that_was_interrupted_between_two_files_has_one_next_night(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, labs = Clock(), Labs(tmp_path)
    with contextlib.closing(labs), contextlib.closing(Queue(tmp_path, clock, labs.begin)) as queue:
        put(queue, "night", nightly="22:00")
        clock.now = datetime(2026, 11, 25, 22, 0, 1).timestamp()
        keep, broken = queue._write, []

        def broken_once(entry: object) -> None:
            if getattr(entry, "state", "") == RUNNING and not broken:
                broken.append(entry)
                raise UnwrittenError("queue", "could not be written", "free space")
            keep(entry)  # type: ignore[arg-type]

        monkeypatch.setattr(queue, "_write", broken_once)
        with pytest.raises(UnwrittenError):
            queue.tick()
        queue.tick()
        assert states(queue) == [("night", RUNNING), ("night", WAITING)]


def test_without_a_place_for_the_lock_an_entry_says_why_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    labs = Labs(tmp_path)
    with contextlib.closing(labs), contextlib.closing(Queue(tmp_path, Clock(), labs.begin)) as queue:
        entry = put(queue, "one")
        queue.tick()
        assert not labs.begun
        why = queue.page_wait_reason(entry, queue.entries())
        assert "cannot be locked" in why and "XDG_CACHE_HOME" in why


def test_a_lab_whose_plan_is_still_made_can_be_stopped(tmp_path: Path) -> None:
    with contextlib.closing(Queue(tmp_path)) as queue:
        entry = queue.put(QueueRequest("one", PLAN))
        queue.tick()
        time.sleep(0.3)  # it is importing the program and has written no plan
        assert not queue.begun(entry)
        deadline = time.monotonic() + 30
        while states(queue) == [("one", RUNNING)]:
            queue.stop(entry.id)
            assert time.monotonic() < deadline
            time.sleep(0.1)
            queue.tick()
        assert states(queue) == [("one", CANCELLED)]
        lock = measurement_locks.alone()
        assert lock is not None
