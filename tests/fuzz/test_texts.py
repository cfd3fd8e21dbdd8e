"""No text that a user writes yields a traceback, a hang or a gigabyte of memory, wherever it is read.

`make test` reads a few of each kind. `make test-long` reads IRONBENCH_FUZZ_INPUTS of them (a million unless set), or as
many as IRONBENCH_FUZZ_SECONDS allow. An input follows from its target and its number alone: in `tests`,
`python -m fuzz.batch lab 1234 1` reads it again.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fuzz.texts import targets

HANG_S = 5.0
"""Of processor time for one input: other programs must not make one too slow."""
BATCH = 5000
SHARES = {"lab": 10, "script": 25, "device": 20, "prices": 10, "systems": 10, "models": 10, "dsn": 10, "target": 5}
"""Of all inputs, in percent."""
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12]) + int(words[13]) + int(words[14])) / _TICKS


def complaint(name: str, first: int, count: int, folder: Path) -> str:
    """What is wrong with a batch; empty when nothing is."""
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
        elif number >= 0 and used_s - since_s > HANG_S:
            worker.kill()
            worker.communicate()
            return f"{name} {number}: took more than {HANG_S:g} s of processor time"
    told, _ = worker.communicate()
    return "" if worker.returncode == 0 else f"{told}\n(exit {worker.returncode}, at {name} {number})"


@pytest.mark.parametrize("name", sorted(targets()))
def test_a_few_mutated_texts_are_taken_or_refused_in_words(name: str, tmp_path: Path) -> None:
    assert complaint(name, 0, 30 if name == "lab" else 200, tmp_path) == ""


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_million_mutated_texts_are_taken_or_refused_in_words(tmp_path: Path) -> None:
    assert sum(SHARES.values()) == 100 and SHARES.keys() == targets().keys()
    inputs = int(os.environ.get("IRONBENCH_FUZZ_INPUTS", "1000000"))
    until = time.monotonic() + float(os.environ.get("IRONBENCH_FUZZ_SECONDS", "inf"))
    batches = [
        (name, first, min(BATCH, inputs * share // 100 - first))
        for name, share in SHARES.items()
        for first in range(0, inputs * share // 100, BATCH)
    ]
    batches.sort(key=lambda batch: batch[1])  # some of each kind, however early it ends

    done: list[int] = []

    def read(batch: tuple[str, int, int]) -> str:
        if time.monotonic() > until:
            return ""
        done.append(batch[2])
        return complaint(*batch, tmp_path)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [one for one in pool.map(read, batches) if one]
    print(f"{sum(done):,} inputs were read")
    assert not complaints, "\n\n".join(complaints[:20])
