"""`ironbench run --require`: refusals before anything starts, and an exit code from the interval over repeats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import launch
import pytest

pytestmark = pytest.mark.live


def run(tmp_path: Path, *words: str) -> Any:
    data = ["--data", str(tmp_path / "data"), "--results", str(tmp_path / "results")]
    length = () if "--duration" in words else ("--duration", "300ms")
    return launch.run(["run", "select-only", "--engine", "sqlite", *length, *data, *words])


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("--require", "p99 < 10"), "has no unit"),
        (("--require", "p99 < 10ms"), "needs 3 trials; planned: 1"),
        (("--require", "rate = 200/s", "--repeats", "3"), "a closed loop has no target rate"),
        (("--require", "rate = 200/s", "--repeats", "3", "--rate", "100"), "100 transactions per second"),
        (("--require", "p99 < 10ms", "--clients", "auto"), "a search varies the load"),
    ],
)
def test_a_requirement_that_cannot_be_decided_is_refused_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], cause: str
) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == 2 and cause in done.stderr, done.stderr
    assert not (tmp_path / "data").exists() and not (tmp_path / "results" / "trials").exists()


def test_a_refuted_requirement_ends_with_4_and_a_confirmed_one_does_not(tmp_path: Path) -> None:
    done = run(tmp_path, "--repeats", "3", "--require", "mean < 1ns", "--require", "mean < 10s", "--json")
    assert done.returncode == 4, done.stderr
    outcomes = {one["requirement"]: one["outcome"] for one in json.loads(done.stdout)["requirements"]}
    assert outcomes == {"mean < 1ns": "refuted", "mean < 10s": "confirmed"}
    assert "exit code 4: refuted: 'mean < 1ns'" in done.stderr


@pytest.mark.long
def test_a_rate_that_is_sustained_is_confirmed(tmp_path: Path) -> None:
    done = run(tmp_path, "--repeats", "3", "--rate", "50", "--duration", "1s", "--require", "rate = 50/s")
    assert "3 of 3 trials sustained" in done.stdout and "confirmed" in done.stdout, done.stdout + done.stderr
