"""Runs many batches of inputs, each in a watched process, and collects the results."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HANG_S = 10.0
"""CPU seconds of one input after which its process is killed."""
BATCH = 5000
SHARES = {
    **{"dump-postgres": 10, "dump-mariadb": 11, "ldif": 12, "access-log": 12, "server-error": 10, "dsn": 10},
    **{"script": 10, "device": 5, "target": 3, "models": 2, "prices": 2, "systems": 2, "curve": 2, "lab": 3},
    **{"bundle": 1, "foreign": 2, "capture-log": 2, "capture-file": 1},
}
"""Percentage of all inputs by kind."""
ACCEPTED = (0.02, 0.98)
"""Range of the share of each kind that is accepted. If all inputs are refused, only refusals are tested."""
NEVER_REFUSED = ("server-error",)
_TICKS = os.sysconf("SC_CLK_TCK")
_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Read:
    name: str
    inputs: int
    accepted: int = 0
    fault: str = ""
    cpu_s: float = 0.0


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12]) + int(words[13]) + int(words[14])) / _TICKS


def read(name: str, first: int, count: int, folder: Path, hang_s: float = HANG_S) -> Read:
    """Reads a batch in a separate process."""
    progress = folder / f"{name}-{first}"
    progress.write_bytes(struct.pack("<q", -1))
    words = [sys.executable, "-m", "fuzz.batch", name, str(first), str(count), str(progress)]
    printed = folder / f"{name}-{first}.txt"  # an unread pipe is full after 64 kB
    worker = subprocess.Popen(
        words, stdout=printed.open("wb"), stderr=subprocess.STDOUT, cwd=_TESTS,
        env={**os.environ, "PYTHONPATH": f"{_TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    number, since_s, used_s = -1, 0.0, 0.0
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
            worker.wait()
            return Read(name, count, fault=f"{name} {number}: took more than {hang_s:g} s of processor time")
    worker.wait()
    output = printed.read_text(errors="replace")
    if worker.returncode:
        return Read(name, count, fault=f"{output}\n(exit {worker.returncode}, at {name} {number})")
    return Read(name, count, int(output.split()[-1]), cpu_s=used_s)


def campaign(inputs: int, longest_s: float = float("inf"), workers: int = 0) -> dict[str, list[Read]]:
    """Reads batches by kind of input: `inputs` in total, or as many as possible in `longest_s`."""
    counts = {name: inputs * share // sum(SHARES.values()) for name, share in SHARES.items()}
    batches = [
        (name, first, min(BATCH, count - first)) for name, count in counts.items() for first in range(0, count, BATCH)
    ]
    batches.sort(key=lambda batch: batch[1])  # inputs of all kinds, even if the campaign ends early
    until_s = time.monotonic() + longest_s

    def in_time(batch: tuple[str, int, int]) -> Read | None:
        if time.monotonic() > until_s:
            return None
        found = read(*batch, Path(folder))
        if found.fault:
            sys.stderr.write(f"{found.fault}\n\n")  # shown immediately, because a campaign takes hours
        return found

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        done = [one for one in pool.map(in_time, batches) if one]
    return {name: [one for one in done if one.name == name] for name in counts}


def table(done: Mapping[str, list[Read]]) -> str:
    """Formats inputs, accepted inputs, CPU time and faults of each kind."""
    rows = [("target", "inputs", "accepted", "ms/input", "faults")]
    every = [one for batches in done.values() for one in batches]
    for name, batches in (*done.items(), ("all", every)):
        whole = [one for one in batches if not one.fault]
        inputs = sum(one.inputs for one in whole)
        accepted = sum(one.accepted for one in whole) / max(1, inputs)
        each_ms = 1000 * sum(one.cpu_s for one in whole) / max(1, inputs)
        rows.append((name, f"{inputs:,}", f"{accepted:.0%}", f"{each_ms:.2f}", str(len(batches) - len(whole))))
    return "\n".join(f"{row[0]:14}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in rows)


def faults(done: Mapping[str, list[Read]]) -> list[str]:
    return [one.fault for batches in done.values() for one in batches if one.fault]


def one_sided(done: Mapping[str, list[Read]]) -> list[str]:
    """Lists kinds of input of which nearly all were accepted, or nearly none."""
    shares = {
        name: sum(one.accepted for one in batches) / sum(one.inputs for one in batches)
        for name, batches in done.items()
        if batches
    }
    return [
        f"{share:.0%} of {name} was accepted"
        for name, share in shares.items()
        if not ACCEPTED[0] < share < ACCEPTED[1] and name not in NEVER_REFUSED
    ]
