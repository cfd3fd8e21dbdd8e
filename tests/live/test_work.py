"""Trials of a workload that drives itself, through the same pipeline as all others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.live


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ironbench", *words]


def records(results: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(results.glob("trials/*/record.json"))]


def test_its_trials_are_observed_recorded_and_repeated(place: Path, tmp_path: Path) -> None:
    words = ["run", "storage", "--data", str(place), "--duration", "1s", "--repeats", "2", "--results", str(tmp_path)]
    subprocess.run(command(*words), check=True, capture_output=True)
    found = records(tmp_path)
    assert [record["status"] for record in found] == ["ok", "ok"]
    for record in found:
        assert record["system"]["engine"] == "none"
        assert record["metrics"]["transactions"] > 0
        assert record["budget"]["server"] > 0, "its own CPU time is the system's"
        assert record["budget"]["client"] == 0
    assert (tmp_path / "trials" / found[0]["id"] / "observed.parquet").exists()
    assert list(place.iterdir()) == []


def test_an_interrupted_one_keeps_what_it_measured(place: Path, tmp_path: Path) -> None:
    words = ["run", "storage", "--data", str(place), "--duration", "60s", "--results", str(tmp_path)]
    running = subprocess.Popen(command(*words), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not _works_in(running.pid, place) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 130
    (record,) = records(tmp_path)
    assert record["status"] == "cut-short"
    assert record["metrics"]["transactions"] > 0
    assert list(place.iterdir()) == []


def _works_in(pid: int, place: Path) -> bool:
    """Whether the process holds a file there open, be it one without a name."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        return any(str(fd.readlink()).startswith(str(place)) for fd in folder.iterdir())
    except OSError:
        return False
