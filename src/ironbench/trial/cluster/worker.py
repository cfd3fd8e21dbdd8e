"""The actor of a worker. The actor drives the worker's part of a trial or copies pieces of a load, and answers requests
at the same time.

Ray chooses where the actor runs. The actor's Python has only the packages ironbench and msgspec, so this module imports
nothing else outside the standard library.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import resource
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import FailureError, IronbenchError
from ironbench.host.child import encode_error

if TYPE_CHECKING:
    from ironbench._core import DriveResult, LoadProgress, Progress

BOOT = "/proc/sys/kernel/random/boot_id"
_PATIENCE_S = 5.0


class Worker:
    """A worker. Several threads call its methods, and no call waits for another."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._result: DriveResult | None = None
        self._refused: dict[str, Any] = {}
        self._sent = 0
        self._stat: dict[str, bytes] = {}
        self._copied: LoadProgress | None = None
        self._lock = threading.Lock()

    def hello(self) -> dict[str, Any]:
        from ironbench import _core

        return {
            "host": platform.node(),
            "pid": os.getpid(),
            "boot": Path(BOOT).read_text().strip(),
            "version": _core.VERSION,
            "build": _core.BUILD_PROFILE,
            "core": core_digest(),
            "python": platform.python_version(),
            "cpus": len(os.sched_getaffinity(0)),
        }

    def now(self) -> int:
        return time.time_ns()

    def reach(self, server: dict[str, Any]) -> str:
        """Returns why the server cannot be reached from this machine. Returns "" if it can."""
        host, port = str(server.get("host") or ""), int(server.get("port") or 0)
        path = server.get("socket") or (host if host.startswith("/") else "")
        if path:
            return "" if Path(path).exists() else f"{path} does not exist"
        try:
            socket.create_connection((host, port), _PATIENCE_S).close()
        except OSError as error:
            return f"{host} port {port}: {error.strerror or error}"
        return ""

    def begin(self, plan: bytes) -> None:
        """Connects the clients of this worker, which begin at the time that `start` sets."""
        from ironbench import _core

        progress = _core.Progress()
        self._progress, self._result, self._refused, self._sent, self._stat = progress, None, {}, 0, {}
        threading.Thread(target=self._drive, args=(plan, progress), daemon=True).start()

    def start(self, unix_ns: int) -> int:
        """Sets the start time of the trial, by the local clock. Returns the number of nanoseconds until the start."""
        if self._progress is not None:
            self._progress.begin_at(unix_ns)
        return unix_ns - time.time_ns()

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()

    def state(self) -> tuple[str, float, int, int, list[tuple[float, int, int, float, float, int]]]:
        """Returns the progress of the trial. The list of seconds contains only seconds that were not returned before.
        The phase is `refused` if the trial could not start, and `aborted` if an error ended it."""
        progress = self._progress
        if progress is None or self._refused:
            return "refused", 0.0, 0, 0, []
        # The result becomes available shortly after the phase `done`.
        phase = progress.phase.replace("done", "drain")
        if self._result is not None:
            phase = "aborted" if json.loads(self._result.summary)["aborted"] else "done"
        passed = progress.seconds(self._sent)
        self._sent += len(passed)
        return phase, progress.elapsed_s, progress.transactions, progress.errors, passed

    def result(self) -> tuple[dict[str, Any], bytes]:
        """Returns /proc/stat at both ends of the window, and the encoded result. If the trial failed, returns the error
        instead, which the caller must raise, and no result."""
        if self._refused or self._result is None:
            return self._refused, b""
        return {name: raw.decode() for name, raw in self._stat.items()}, self._result.to_bytes()

    def load(self, plan: bytes) -> dict[str, Any]:
        """Copies the pieces that a load plan names over a separate connection. If copying fails, returns the error,
        which the caller must raise. Otherwise, returns an empty dict.

        Several threads may call this method at the same time. The text from which rows are made is created only once.
        """
        from ironbench import _core

        try:
            _core.load_rows(plan, self._loading())
        except IronbenchError as error:
            return encode_error(error)
        return {}

    def copied(self) -> tuple[int, int, int]:
        """Returns the number of rows and bytes so far, and the peak memory of the process in bytes."""
        progress = self._loading()
        return progress.rows, progress.bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def machine(self) -> dict[str, Any]:
        """Returns the fingerprint of the worker's machine."""
        from ironbench.host.fingerprint import fingerprint

        found: dict[str, Any] = msgspec.to_builtins(fingerprint())
        return found

    def _loading(self) -> LoadProgress:
        from ironbench import _core

        with self._lock:
            if self._copied is None:
                self._copied = _core.LoadProgress()
            return self._copied

    def _drive(self, plan: bytes, progress: Progress) -> None:
        from ironbench import _core

        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(progress, over), daemon=True)
        watch.start()
        try:
            result = _core.drive(plan, progress)
        except IronbenchError as error:
            result, self._refused = None, encode_error(error)
        except Exception as error:  # every error must reach the experiment
            result, self._refused = None, encode_error(FailureError("worker", f"{type(error).__name__}: {error}"))
        over.set()
        watch.join()
        self._result = result

    def _watch(self, progress: Progress, over: threading.Event) -> None:
        """Reads the machine's CPU counters at both ends of the window, accurate to a twentieth of a second."""
        while not over.wait(0.05):
            if progress.phase == "run" and "began" not in self._stat:
                self._stat["began"] = Path("/proc/stat").read_bytes()
            elif progress.phase in ("drain", "done"):
                break
        self._stat["ended"] = Path("/proc/stat").read_bytes()


def core_digest() -> str:
    """Returns a digest of the core's file, which distinguishes builds of the same version."""
    from ironbench import _core

    with Path(str(_core.__file__)).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
