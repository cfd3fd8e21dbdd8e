"""A batch of inputs in a process with limits: `python -m fuzz.batch TARGET FIRST COUNT [PROGRESS]`, in `tests`.

Prints how many were accepted. Exits with 1 at the first input that is neither accepted nor refused by an error of
ironbench, or that takes too much time or memory, and prints it. The first eight bytes of the file PROGRESS contain the
number of the current input, so that a watcher can detect one that takes too long.
"""

from __future__ import annotations

import mmap
import os
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fuzz.files import file_targets
from fuzz.texts import targets

from ironbench.errors import IronbenchError
from ironbench.model import secrets

MOST_BYTES = 1_000_000_000
TRIES = 10
"""Number of times that an input is read. The fastest time is compared with the limit, because other programs and
garbage collection slow down single tries, by half and more on a busy machine."""


class Reader(Protocol):
    """Reads inputs of one kind."""

    def allowed_s(self, data: str | bytes) -> float: ...

    def input(self, number: int) -> str | bytes: ...

    def read(self, data: str | bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Faulty:
    """A reader with a bug."""

    fault: Callable[[], object]

    def allowed_s(self, data: str | bytes) -> float:
        return 0.05

    def input(self, number: int) -> str | bytes:
        return str(number)

    def read(self, data: str | bytes) -> None:
        self.fault()


def _hang() -> None:
    while True:
        pass


def _dawdle() -> None:
    until_s = time.process_time() + 0.07
    while time.process_time() < until_s:
        pass


FAULTY = {
    "raises": Faulty(lambda: 1 / 0),
    "hangs": Faulty(_hang),
    "aborts": Faulty(os.abort),
    "slow": Faulty(_dawdle),
}
"""Bugs that the fuzzer must find."""


def main() -> int:
    name, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    shared = None
    if sys.argv[4:]:
        with Path(sys.argv[4]).open("r+b") as file:
            shared = mmap.mmap(file.fileno(), 8)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Includes memory that is mapped but never touched; touched memory is compared with MOST_BYTES below. Not RLIMIT_AS:
    # V8, which draws the charts of a bundle, reserves more address space.
    resource.setrlimit(resource.RLIMIT_DATA, (6 * MOST_BYTES, 6 * MOST_BYTES))
    os.environ["IRONBENCH_RESULTS"] = "/nonexistent/results"
    accepted = 0
    # Use memory, because a killed process leaves its files behind.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        reader = _reader(name, Path(folder))
        for number in range(first, first + count):
            if shared is not None:
                shared[:8] = struct.pack("<q", number)
            data = reader.input(number)
            fault, was_accepted = examined(reader, data)
            if fault:
                print(f"{fault}\n{name} {number}: {data[:2000]!r}")
                return 1
            accepted += was_accepted
    print(accepted)
    return 0


def examined(reader: Reader, data: str | bytes) -> tuple[str, bool]:
    """Returns what is wrong with the way an input is read, or "", and whether it is accepted."""
    accepted, most_s = False, reader.allowed_s(data)
    fastest_s = float("inf")
    for _ in range(TRIES):
        secrets._KNOWN.clear()
        began_s = time.process_time()
        try:
            reader.read(data)
            accepted = True
        except IronbenchError as error:
            if not str(error).strip():
                return "an error without words", False
        except BaseException:
            return traceback.format_exc(), False
        fastest_s = min(fastest_s, time.process_time() - began_s)
        if fastest_s <= most_s:
            break
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_BYTES:
        return "more than 1 GB of memory", False
    if fastest_s > most_s:
        return f"{fastest_s:.2f} s of processor time for {len(data)} bytes", False
    return "", accepted


def _reader(name: str, scratch: Path) -> Reader:
    if name == "bundle":
        from fuzz.bundles import Bundles

        return Bundles(scratch)
    if name.startswith("capture-"):
        from fuzz.captures import capture_targets

        return capture_targets(scratch)[name]
    known: dict[str, Reader] = {**FAULTY, **targets(), **file_targets(scratch)}
    return known[name]


if __name__ == "__main__":
    sys.exit(main())
