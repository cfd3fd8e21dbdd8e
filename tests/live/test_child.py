"""The child process of a library engine: it obeys, it dies with its parent, and its death is reported."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import launch
import pytest
from sqlite_trial import database, plan, rows, trial

from ironbench import _core
from ironbench.errors import FailureError
from ironbench.trial.drive import run

pytestmark = pytest.mark.live

LONG = {"stop": {"duration_s": 600.0}}
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n;"
DRIVE = """
import sys
from pathlib import Path
from ironbench import _core
from ironbench.trial.drive.run import drive_in_child
from ironbench.host.job import ChildPlacement
result = drive_in_child(Path(sys.argv[1]).read_bytes(), _core.Progress(), ChildPlacement(Path(sys.argv[2])))
print(result.summary.decode())
"""


def wait_for(condition: Callable[[], object]) -> None:
    """Waits until the condition is true, however slow the machine; the test's time limit applies."""
    while not condition():
        time.sleep(0.01)


def children(parent: int) -> list[int]:
    """Lists our child processes among the children of `parent`."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(folder.name)
            ours = b"ironbench.host.job" in (folder / "cmdline").read_bytes()
            if ours and int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == parent:
                found.append(pid)
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


@contextlib.contextmanager
def when_running(progress: _core.Progress, act: Callable[[], None]) -> Iterator[None]:
    """Calls `act` once the trial has transactions."""

    def watch() -> None:
        wait_for(lambda: progress.transactions > 0)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


@contextlib.contextmanager
def another_ironbench(place: Path, path: str) -> Iterator[subprocess.Popen[str]]:
    """Yields a separate process that drives a long trial, once its child has transactions."""
    (place / "plan").write_bytes(plan(path, "INSERT INTO t VALUES (1);", **LONG))
    source = str(Path(run.__file__).parent.parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVE, str(place / "plan"), str(place / "log")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
        process_group=0,
    )
    try:
        wait_for(lambda: rows(path, "SELECT 1 FROM t LIMIT 1"))
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def path(place: Path) -> str:
    return database(place, "CREATE TABLE t (a INTEGER)")


def test_a_killed_child_is_a_failure_that_names_the_signal(place: Path, path: str) -> None:
    progress = _core.Progress()
    kill = when_running(progress, lambda: [os.kill(pid, signal.SIGKILL) for pid in children(os.getpid())] and None)
    with kill, pytest.raises(FailureError, match="killed by SIGKILL before its work was done") as failed:
        trial(place, plan(path, "INSERT INTO t VALUES (1);", **LONG), progress)
    assert "memory" in failed.value.hint
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_crashed_child_tells_its_last_words(place: Path, path: str) -> None:
    progress = _core.Progress()
    crash = when_running(progress, lambda: [os.kill(pid, signal.SIGABRT) for pid in children(os.getpid())] and None)
    with crash, pytest.raises(FailureError, match="SIGABRT"):
        trial(place, plan(path, "INSERT INTO t VALUES (1);", **LONG), progress)
    assert "Fatal Python error" in (place / "child.log").read_text()


@pytest.mark.long
def test_a_trial_whose_engine_was_killed_is_voided_and_kept(place: Path) -> None:
    (place / "s.sql").write_text("SELECT 1;")
    asked = ["run", "script", "s.sql", "--engine", "sqlite", "--duration", "600s", "--data", "./d", "--results", "./r"]
    process = launch.Command([*asked, "--clients", "1"], cwd=place)
    wait_for(lambda: children(process.pid))
    for pid in children(process.pid):
        os.kill(pid, signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == 1
    assert "killed by SIGKILL" in told
    (record,) = (place / "r").glob("trials/*/record.json")
    kept = json.loads(record.read_text())
    assert kept["status"] == "voided"
    (cause,) = kept["causes"]
    assert cause["code"] == "engine-died" and "SIGKILL" in str(cause["values"])


def test_stopping_the_progress_ends_the_trial_and_keeps_its_result(place: Path, path: str) -> None:
    progress = _core.Progress()
    with when_running(progress, progress.stop):
        told = trial(place, plan(path, "INSERT INTO t VALUES (1);", **LONG), progress)
    assert told["cut_short"]
    assert told["commits"] == int(rows(path, "SELECT count(*) FROM t")[0][0] or 0) > 0


@pytest.mark.parametrize(
    "script",
    [
        f"INSERT INTO t VALUES (1);\n{ENDLESS}",
        "INSERT INTO t VALUES (1);\n\\sleep 1000 s",
    ],
    ids=["statement", "sleep"],
)
def test_what_takes_forever_ends_with_the_trial(place: Path, path: str, script: str) -> None:
    progress = _core.Progress()

    def stop() -> None:
        wait_for(lambda: rows(path, "SELECT 1 FROM t"))
        progress.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    told = trial(place, plan(path, script, **LONG), progress)
    thread.join()
    assert told["cut_short"]
    assert told["transactions"] == 0


def test_ctrl_c_ends_the_trial_and_keeps_its_result(place: Path, path: str) -> None:
    with another_ironbench(place, path) as process:
        os.killpg(process.pid, signal.SIGINT)
        written, _ = process.communicate()
    assert process.returncode == 0
    told = json.loads(written)
    assert told["cut_short"]
    assert told["commits"] == int(rows(path, "SELECT count(*) FROM t")[0][0] or 0)


def test_a_child_does_not_outlive_a_killed_parent(place: Path, path: str) -> None:
    with another_ironbench(place, path) as process:
        (child,) = children(process.pid)
        process.kill()
        wait_for(lambda: gone(child))


def test_the_child_runs_on_the_cpus_it_was_given(place: Path, path: str) -> None:
    cpu = max(os.sched_getaffinity(0))
    seen: list[set[int]] = []
    progress = _core.Progress()

    def look() -> None:
        seen.extend(os.sched_getaffinity(pid) for pid in children(os.getpid()))
        progress.stop()

    with when_running(progress, look):
        trial(place, plan(path, "INSERT INTO t VALUES (1);", **LONG), progress, cpus=[cpu])
    assert seen == [{cpu}]
