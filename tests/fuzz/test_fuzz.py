"""Nothing that arrives yields a traceback, a hang or a gigabyte of memory, wherever it is read.

`make test` reads a few inputs of each kind. `make test-long` reads IRONBENCH_FUZZ_INPUTS texts (a million unless set)
and a hundredth as many parcels, or as many as IRONBENCH_FUZZ_SECONDS allow. An input follows from its target and its
number alone: in `tests`, `python -m fuzz.batch lab 1234 1` reads it again.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from fuzz.batch import FAULTY
from fuzz.texts import targets

HANG_S = 5.0
"""Of processor time for one input: other programs must not make one too slow."""
BATCH = 5000
SHARES = {"lab": 10, "script": 25, "device": 20, "prices": 10, "systems": 10, "models": 10, "dsn": 10, "target": 5}
"""Of all texts, in percent."""
FEW = {"lab": 20, "parcels": 5}
"""Of the kinds that take longest: inputs in the short test."""
TAKEN = (0.02, 0.95)
"""Share of each kind that is taken: a fuzz whose inputs all end at the door tests the door alone."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Read:
    name: str
    inputs: int
    taken: int = 0
    complaint: str = ""


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12]) + int(words[13]) + int(words[14])) / _TICKS


def read(name: str, first: int, count: int, folder: Path, hang_s: float = HANG_S) -> Read:
    """A batch, in a process that is watched."""
    progress = folder / f"{name}-{first}"
    progress.write_bytes(struct.pack("<q", -1))
    words = [sys.executable, "-m", "fuzz.batch", name, str(first), str(count), str(progress)]
    tests = Path(__file__).parents[1]
    worker = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=tests,
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    number, since_s = -1, 0.0
    while worker.poll() is None:
        time.sleep(0.1)
        (now,) = struct.unpack("<q", progress.read_bytes()[:8])
        try:
            used_s = cpu_s(worker.pid)
        except (OSError, IndexError):
            break
        if now != number:
            number, since_s = now, used_s
        elif number >= 0 and used_s - since_s > hang_s:
            worker.kill()
            worker.communicate()
            return Read(name, count, complaint=f"{name} {number}: took more than {hang_s:g} s of processor time")
    output, _ = worker.communicate()
    if worker.returncode:
        return Read(name, count, complaint=f"{output}\n(exit {worker.returncode}, at {name} {number})")
    return Read(name, count, int(output.split()[-1]))


@pytest.mark.parametrize("name", [*sorted(targets()), "parcels"])
def test_a_few_mutated_inputs_are_taken_or_refused_in_words(name: str, tmp_path: Path) -> None:
    assert read(name, 0, FEW.get(name, 100), tmp_path).complaint == ""


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_reader_that_raises_hangs_or_ends_its_process_is_found(name: str, tmp_path: Path) -> None:
    words = {"raises": "ZeroDivisionError", "hangs": "took more than 1 s", "aborts": "exit -6"}
    assert words[name] in read(name, 7, 1, tmp_path, hang_s=1.0).complaint


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_million_mutated_inputs_are_taken_or_refused_in_words(tmp_path: Path) -> None:
    assert sum(SHARES.values()) == 100 and SHARES.keys() == targets().keys()
    inputs = int(os.environ.get("IRONBENCH_FUZZ_INPUTS", "1000000"))
    until = time.monotonic() + float(os.environ.get("IRONBENCH_FUZZ_SECONDS", "inf"))
    counts = {name: inputs * share // 100 for name, share in SHARES.items()} | {"parcels": inputs // 100}
    batches = [
        (name, first, min(BATCH, count - first)) for name, count in counts.items() for first in range(0, count, BATCH)
    ]
    batches.sort(key=lambda batch: batch[1])  # some of each kind, however early it ends

    def in_time(batch: tuple[str, int, int]) -> Read | None:
        return None if time.monotonic() > until else read(*batch, tmp_path)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = [one for one in pool.map(in_time, batches) if one]
    for name in counts:
        of_it = [one for one in done if one.name == name]
        print(f"{name}: {sum(one.inputs for one in of_it):,} inputs, {sum(one.taken for one in of_it):,} taken")
    complaints = [one.complaint for one in done if one.complaint]
    assert not complaints, "\n\n".join(complaints[:20])
    for name in {one.name for one in done}:
        of_it = [one for one in done if one.name == name]
        share = sum(one.taken for one in of_it) / sum(one.inputs for one in of_it)
        assert TAKEN[0] < share < TAKEN[1], f"{share:.0%} of {name} was taken"
