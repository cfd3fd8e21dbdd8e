"""How hours of different noise are summed up, and what runs beside them."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from patience import eventually

from bench import hours
from bench.figures import Between
from bench.slices import METHODS, Block
from ironbench.process import processes
from ironbench.record.labs import LabDirectory

ROOT = Path(__file__).parents[2]


def blocks(dice: random.Random, spread: float, took_s: float, count: int = 4) -> list[Block]:
    return [Block(dice.gauss(0.0, spread), took_s, (), LabDirectory(Path())) for _ in range(count)]


def test_the_interval_of_a_time_ratio_holds_the_truth_in_nine_of_ten() -> None:
    dice, names, held, series = random.Random(1), ("a", "b", "c", "d"), 0, 1000
    for _ in range(series):
        measured = {
            (name, method): blocks(dice, spread, took_s)
            for name in names
            for method, spread, took_s in zip(METHODS, (0.02, 0.05), (15.0, 20.0), strict=True)
        }
        found = hours.time_ratio([measured], names)
        held += found.low <= 0.02**2 * 15 / (0.05**2 * 20) <= found.high
    assert 0.87 < held / series < 0.93


def test_a_workload_that_one_method_could_not_measure_says_nothing() -> None:
    one = {("a", "slices"): blocks(random.Random(1), 0.02, 15.0)}
    assert str(hours.time_ratio([one], ["a"])) == "nan (nan to nan)"


def test_the_median_of_ten_hours_lies_between_the_third_and_the_eighth() -> None:
    found = hours.median([Between(ratio, 0.0, 9.0) for ratio in (10, 1, 9, 2, 8, 3, 7, 4, 6, 5)])
    assert (found.ratio, found.low, found.high) == (5.5, 3, 8)


@pytest.mark.parametrize("kind", sorted({*hours.HOURS} - {"nothing"}))
def test_what_runs_beside_ends_when_the_bench_was_killed(kind: str) -> None:
    code = "import subprocess, sys, os, time; child = subprocess.Popen([*sys.argv[1:], str(os.getpid())]); "
    code += "print(child.pid, flush=True); time.sleep(60)"
    words = [sys.executable, "-c", code, sys.executable, "-m", "bench.hours", kind, "1"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout is not None
        beside = processes.identify(int(bench.stdout.readline()))
        assert beside is not None and beside.alive()
        bench.kill()
    assert eventually(lambda: not beside.alive())
