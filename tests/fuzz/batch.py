"""A batch of inputs in a process with limits: `python -m fuzz.batch TARGET FIRST COUNT [PROGRESS]`, in `tests`.

Prints how many were taken. Ends with 1 at the first input that neither is taken nor refused in our words, and prints
it. The first eight bytes of the file PROGRESS hold the number of the input that is being read, for whoever watches
for one that takes too long.
"""

from __future__ import annotations

import mmap
import os
import resource
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz.texts import Target, targets

from ironbench.errors import IronbenchError

MOST_BYTES = 1_000_000_000
Reader = Callable[[int], object]


def _hang(number: int) -> None:
    while True:
        pass


FAULTY: dict[str, Reader] = {"raises": lambda number: 1 / 0, "hangs": _hang, "aborts": lambda number: os.abort()}
"""What the fuzz must find."""


def main() -> int:
    name, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    shared = None
    if sys.argv[4:]:
        with Path(sys.argv[4]).open("r+b") as file:
            shared = mmap.mmap(file.fileno(), 8)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Address space also counts what is mapped and never touched; what was touched is held against MOST_BYTES below.
    resource.setrlimit(resource.RLIMIT_AS, (6 * MOST_BYTES, 6 * MOST_BYTES))
    os.environ["IRONBENCH_RESULTS"] = "/nonexistent/results"
    taken = 0
    with _scratch(name) as scratch:
        read = _reader(name, scratch)
        for number in range(first, first + count):
            if shared is not None:
                shared[:8] = struct.pack("<q", number)
            try:
                read(number)
                taken += 1
            except IronbenchError as error:
                if not str(error).strip():
                    return _failed(read, name, number, "an error without words")
            except BaseException:
                return _failed(read, name, number, traceback.format_exc())
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_BYTES:
                return _failed(read, name, number, "more than 1 GB of memory")
    print(taken)
    return 0


@contextmanager
def _scratch(name: str) -> Iterator[Path | None]:
    """A directory in memory for those who need one: a process that is killed leaves its own behind."""
    if name != "parcels":
        yield None
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        yield Path(folder)


def _reader(name: str, scratch: Path | None) -> Reader:
    if scratch:
        from fuzz.parcels import Parcels

        return Parcels(scratch)
    return FAULTY.get(name) or targets()[name]


def _failed(read: Reader, name: str, number: int, why: str) -> int:
    print(f"{why}\n{name} {number}" + (f": {read.text(number)[:2000]!r}" if isinstance(read, Target) else ""))
    return 1


if __name__ == "__main__":
    sys.exit(main())
