"""What runs inside the child process of a library engine: `python -I -S inside.py CORE [CPU,CPU…]`.

The plan comes on standard input; frames go to standard output (see `frames`). Standard input stays open: a byte on it
asks for the end of the trial, its end means that the parent is gone, and then this process goes too. A pipe, not the
parent-death signal: that one fires already when the thread ends that made the process (prctl(2)).

Only the standard library, the core and `ironbench.errors` are loaded, from the paths given, so that the child starts
fast and cannot pick up another ironbench.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import struct
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

HEAD = struct.Struct("<cQ")
"""Kind and length of a frame: `p` progress (JSON), `r` result, `e` error (JSON)."""
LENGTH = struct.Struct("<Q")
PROGRESS_S = 0.2
ORPHANED = 3
"""Exit code when the parent is gone."""


class Answers:
    """The pipe to the parent. Whatever else writes to standard output lands in the log."""

    def __init__(self) -> None:
        self._fd = os.dup(1)
        os.dup2(2, 1)
        self._lock = threading.Lock()

    def send(self, kind: bytes, payload: bytes) -> None:
        data = memoryview(HEAD.pack(kind, len(payload)) + payload)
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except BrokenPipeError:
                os._exit(ORPHANED)


def load_core(path: str) -> Any:
    """`ironbench._core` from its file; it imports `ironbench.errors` by name, so the package must be findable."""
    package = types.ModuleType("ironbench")
    package.__path__ = [str(Path(__file__).resolve().parent.parent)]
    sys.modules["ironbench"] = package
    spec = importlib.util.spec_from_file_location("ironbench._core", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no core at {path}")
    core = importlib.util.module_from_spec(spec)
    sys.modules["ironbench._core"] = core
    spec.loader.exec_module(core)
    return core


def read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            os._exit(ORPHANED)
        data += piece
    return data


def listen(progress: Any) -> None:
    """Ends the trial when asked to, and the process when nobody is left to ask."""
    while os.read(0, 1):
        progress.stop()
    os._exit(ORPHANED)


class Telling:
    """Sends the state of the trial, and of its seconds those that are new."""

    def __init__(self, progress: Any, answers: Answers) -> None:
        self._progress = progress
        self._answers = answers
        self._lock = threading.Lock()
        self._told = 0

    def tell(self) -> None:
        with self._lock:
            passed = self._progress.seconds(self._told)
            self._told += len(passed)
            state = (self._progress.phase, self._progress.elapsed_s, self._progress.transactions, self._progress.errors)
            self._answers.send(b"p", json.dumps((*state, passed)).encode())

    def keep_telling(self) -> None:
        while True:
            self.tell()
            time.sleep(PROGRESS_S)


def main(core_path: str, cpus: str = "") -> None:
    faulthandler.enable()
    if cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    answers = Answers()
    plan = read_exactly(*LENGTH.unpack(read_exactly(LENGTH.size)))
    core = load_core(core_path)
    progress = core.Progress()
    telling = Telling(progress, answers)
    for work in (lambda: listen(progress), telling.keep_telling):
        threading.Thread(target=work, daemon=True).start()
    try:
        result = core.drive(plan, progress).to_bytes()
        telling.tell()
        answers.send(b"r", result)
    except Exception as error:
        errors = sys.modules.get("ironbench.errors")
        if errors is None or not isinstance(error, errors.IronbenchError):
            raise
        said = (type(error).__name__, error.subject, error.cause, error.hint)
        answers.send(b"e", json.dumps(said).encode())
    sys.stderr.flush()
    # Interpreter shutdown would wait for nothing useful: everything measured is with the parent.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
