"""Runs one target of the fuzz in a process of its own: `python worker.py TARGET SEED COUNT` prints one JSON document.

A target is a module beside this one with `Target`. It is made once with a scratch directory, and called with a source
of chance for each case. An IronbenchError is an answer. Any other exception is a fault. So are a case that takes more
than `MOST_S`, and one that ends the process.
"""

from __future__ import annotations

import importlib
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from ironbench.errors import IronbenchError

MOST_S = 5.0
"""Of the processor: how long a case takes beside other programs says nothing about it."""
MOST_WALL_S = 120.0
MOST_FAULTS = 5


class Hang(BaseException):
    """A case that takes too long. No handler of ours catches it."""


def main(name: str, seed: int, count: int) -> None:
    def hang(number: int, frame: object) -> None:
        raise Hang

    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, hang)
    faults: list[dict[str, object]] = []
    answers = 0
    slowest_s = 0.0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        target = importlib.import_module(name).Target(Path(scratch))
        for case in range(seed, seed + count):
            print(case, file=sys.stderr, flush=True)  # the last line names the case that ended the process
            begin = time.process_time()
            _limit(MOST_S, MOST_WALL_S)
            try:
                target(random.Random(case))
            except IronbenchError as error:
                answers += 1
                str(error)
            except (Exception, Hang, RecursionError):
                _limit(0, 0)
                faults.append({"case": case, "fault": traceback.format_exc()[-3000:]})
                print(faults[-1]["fault"], file=sys.stderr, flush=True)
                if len(faults) == MOST_FAULTS:
                    break
            finally:
                _limit(0, 0)
            slowest_s = max(slowest_s, time.process_time() - begin)
    most_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"faults": faults, "refused": answers, "most_bytes": most_bytes, "slowest_s": slowest_s}))


def _limit(cpu_s: float, wall_s: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
