"""The experiment's side of the connection to the child process that uses Ray. Drives trials and loads data through this
process."""

from __future__ import annotations

import contextlib
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import errors, units
from ironbench.errors import FailureError, InputError, written
from ironbench.host import processes
from ironbench.host.child import Child, package_folder, raise_error
from ironbench.host.processes import ProcessId
from ironbench.model.system import Load
from ironbench.trial.cluster import merge
from ironbench.trial.cluster.merge import WorkerResult
from ironbench.trial.cluster.worker import core_digest

if TYPE_CHECKING:
    from ironbench._core import Progress, Sampler

_START_S = 120.0
"""Seconds that Ray may take to start. Ray usually takes several seconds, and longer on a busy machine."""
_STOP_S = 2.0
_SILENT_S = 7.0
"""Maximum interval in seconds between status messages of the child process. If the interval is longer, the process or
Ray hangs."""
HINT = "pip install 'ray>=2.60,<3'"


def sampler(observers: Sequence[Mapping[str, Any]], connection: Mapping[str, Any] | None) -> Sampler:
    """Returns a connected sampler. The connection is made in a separate thread, so that Ctrl-C works even if the server
    does not respond."""
    from ironbench import _core

    made: Future[Sampler] = Future()

    def connect() -> None:
        try:
            made.set_result(_core.Sampler(msgspec.json.encode(observers), msgspec.json.encode(connection)))
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    return made.result()


class ServerSampler:
    """Samples the server from the common start of the workers to the end of the measured window."""

    def __init__(self, sampler: Sampler, load: Load) -> None:
        self._sampler, self._load = sampler, load
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.began_ns = 0

    def begins(self, unix_ns: int) -> None:
        self.began_ns = unix_ns
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, Any]:
        """Stops sampling. Returns the observers' part of a trial's summary, and the samples under the key `samples`."""
        self._over.set()
        if self._thread is None:
            return {"observer_cpu_s": 0.0, "samples": {}}
        self._thread.join()
        seen = self._sampler.stop()
        return {**msgspec.json.decode(seen.summary, type=dict[str, Any]), "samples": seen.samples}

    def _sample(self) -> None:
        self._over.wait(max(0.0, self.began_ns / 1e9 + self._load.warmup_s - time.time()))
        self._sampler.start()
        self._over.wait(self._load.duration_s)
        self._sampler.mark()


class Control:
    """The experiment's side of the connection to the child process that uses Ray."""

    def __init__(self, cluster: str, folder: Path) -> None:
        """Starts the child process. Raises InputError if the cluster cannot be used, or FailureError."""
        self.address = cluster
        self.workers: list[dict[str, Any]] = []
        self._started: list[ProcessId] = []
        ray = package_folder("ray", "", HINT)
        package = Path(errors.__file__).parent
        self._child = Child("ironbench.trial.cluster.ray_child", "control process of the workers", packages=[ray])
        self._frames: queue.SimpleQueue[tuple[dict[str, Any], bytes] | None] = queue.SimpleQueue()
        threading.Thread(target=self._receive, daemon=True).start()
        try:
            asked = {
                "ask": "begin",
                "address": cluster,
                "written": written("load.cluster", cluster),
                "folder": str(folder),
                "packages": [str(package.parent), ray],
                "travels": [str(package), str(Path(str(msgspec.__file__)).parent)],
            }
            self.machines: int = self.request(asked)["machines"]
        except BaseException:
            self.close()
            raise

    def alive(self) -> bool:
        return self._child.alive()

    def close(self) -> None:
        # `shutdown` wakes a thread that waits for the socket. Closing the socket would not.
        with contextlib.suppress(OSError):
            self._child.socket.shutdown(socket.SHUT_RDWR)
        started = {*self._started, *processes.below(self._child.pid)}
        self._child.stop(_STOP_S)
        # The child's second process (`ray_child`) ends these processes. It may have been killed itself.
        for one in started:
            one.signal(signal.SIGKILL)

    def start_workers(self, count: int, fewer: bool = False) -> None:
        """Starts workers. Raises InputError if a worker has a different build of ironbench. Raises FailureError if
        there are too few machines, unless `fewer` is set."""
        self.workers = self.request({"ask": "workers", "count": count, "fewer": fewer})["workers"]
        self._started = processes.below(self._child.pid)
        from ironbench import _core

        ours = (_core.VERSION, _core.BUILD_PROFILE, core_digest())
        here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        for one in self.workers:
            one["here"] = one["boot"] == here
            if (one["version"], one["build"], one["core"]) != ours:
                cause = f"{one['host']} runs another build of ironbench: {one['version']} ({one['build']})"
                raise InputError(
                    written("load.cluster"),
                    cause,
                    "remove ironbench from the Python path of Ray's workers on that machine",
                )

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns the reply. Raises InputError or FailureError."""
        self._child.tell(message)
        return self._next(_START_S)[0]

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        """Copies rows. Returns a dict with `rows`, `bytes`, `connections`, `elapsed_s`, and `memory_bytes` of each
        worker. If a worker was lost, `lost` contains the error."""
        self._child.tell({"ask": "load", "plan": plan})
        counts: list[list[int]] = []
        while True:
            frame = self._next(_SILENT_S)[0]
            if "over" in frame:
                break
            counts = frame["copied"]
            show(sum(one[0] for one in counts), sum(one[1] for one in counts))
        rows, size, memory = ([one[place] for one in counts] for place in range(3))
        return {"lost": "", **frame, "rows": sum(rows), "bytes": sum(size), "memory_bytes": memory}

    def driven(
        self, plans: Sequence[bytes], progress: Progress, sampling: ServerSampler
    ) -> tuple[list[WorkerResult], str]:
        """Drives a trial. Returns the results that workers returned, and the reason why other workers returned none.

        The first Ctrl-C ends the trial and keeps its results; the second raises KeyboardInterrupt.
        """
        self._child.tell({"ask": "drive", "bytes": [len(one) for one in plans]}, b"".join(plans))
        found: list[WorkerResult] = []
        lost, states = "", _States(progress)
        for frame, data in self._frames_until_over(progress):
            if "began" in frame:
                sampling.begins(frame["began"])
            elif "states" in frame:
                states.show(frame["states"])
            elif "lost" in frame and "over" not in frame:
                lost = frame["lost"]
            elif "worker" in frame:
                raise_error(frame["found"])
                if data:
                    number = frame["worker"]
                    found.append(WorkerResult(number, self.workers[number], frame["clock"], frame["found"], data))
        return found, lost

    def _frames_until_over(self, progress: Progress) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Yields messages of a trial until it is over."""
        interrupted = stopped = False
        heard_s = time.monotonic()
        while True:
            try:
                if (interrupted or progress.stopping) and not stopped:
                    self._child.tell({"stop": True})
                    stopped = True
                try:
                    frame = self._frames.get(timeout=0.1)
                except queue.Empty:
                    if time.monotonic() - heard_s > _SILENT_S:
                        raise FailureError(
                            self._child.subject, f"sent no message for {units.span(_SILENT_S)}"
                        ) from None
                    continue
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                continue
            heard_s = time.monotonic()
            if frame is None:
                raise self._child.died("before the trial was over", FailureError)
            raise_error(frame[0])
            yield frame
            if "over" in frame[0]:
                return

    def _next(self, patience_s: float) -> tuple[dict[str, Any], bytes]:
        try:
            frame = self._frames.get(timeout=patience_s)
        except queue.Empty:
            raise FailureError(self._child.subject, f"did not answer within {units.span(patience_s)}") from None
        if frame is None:
            raise self._child.died(kind=FailureError)
        raise_error(frame[0])
        return frame

    def _receive(self) -> None:
        while (frame := self._child.receive()) is not None:
            self._frames.put(frame)
        self._frames.put(None)


class _States:
    """Combined progress of all workers."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seconds: list[list[tuple[float, int, int, float, float, int]]] = []
        self._shown = 0

    def show(self, states: Sequence[Sequence[Any]]) -> None:
        self._seconds = self._seconds or [[] for _ in states]
        for known, state in zip(self._seconds, states, strict=True):
            known += [tuple(second) for second in state[4]]
        whole = min(len(known) for known in self._seconds)
        new = [merge.second([known[at] for known in self._seconds]) for at in range(self._shown, whole)]
        self._shown = whole
        phases = ["done" if state[0] == "aborted" else state[0] for state in states]
        phase = min(phases, key=lambda one: _PHASES.index(one) if one in _PHASES else len(_PHASES))
        elapsed_s = max(state[1] for state in states)
        self._progress.show(phase, elapsed_s, sum(state[2] for state in states), sum(state[3] for state in states), new)


_PHASES = ("connect", "ready", "warmup", "run", "drain", "done")
