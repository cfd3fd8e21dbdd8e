"""The workers of an experiment, as the loop uses them: hired when a trial first needs them, gone when it is over."""

from __future__ import annotations

import contextlib
import importlib.util
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import errors, units
from ironbench.cluster import merge, parts
from ironbench.cluster.merge import Part
from ironbench.cluster.worker import core_digest
from ironbench.errors import FailureError, InputError, written
from ironbench.model.driven import Driven
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.process import processes, scratch
from ironbench.process.child import Child, package_folder, raise_refusal
from ironbench.process.processes import ProcessId
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench._core import Progress, Sampler

_START_S = 120.0
"""Ray's own start takes seconds, on a busy machine many."""
_STOP_S = 2.0
_SILENT_S = 7.0
"""The control process says at least this often how a trial stands: else it, or Ray, hangs."""
_HINT = "pip install 'ray>=2.60,<3'"


@dataclass(slots=True)
class Crew:
    """Made for an experiment; starts nothing before the first trial that has workers."""

    printer: Printer
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _control: _Control | None = None
    _reached: set[tuple[int, str, parts.Server]] = field(default_factory=set)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def of(self, load: Load) -> Crew | None:
        """None: this process drives it."""
        return self if load.workers else None

    def reach(self, load: Load, target: dict[str, Any]) -> None:
        """InputError: a worker has no way to the server."""
        known = parts.server(target)
        if load.workers and known and (load.workers, load.cluster, known) not in self._reached:
            self._require_reached(self._ready(load), load, known)

    def _require_reached(self, control: _Control, load: Load, known: parts.Server) -> None:
        if not known or (load.workers, load.cluster, known) in self._reached:
            return
        parts.require_common(dict(known), away := [one["host"] for one in control.workers if not one["here"]])
        for number, why in enumerate(control.asked({"ask": "reach", "server": dict(known)})["reach"]):
            if why:
                cause = f"worker {number + 1} on {control.workers[number]['host']} does not reach the server: {why}"
                way_out = f"name it in {written('system.dsn')} by an address that every machine reaches"
                raise InputError(written("system.dsn") if away else written("load.workers"), cause, way_out)
        self._reached.add((load.workers, load.cluster, known))

    def drive(self, plan: bytes, load: Load, progress: Progress, started: str) -> Driven:
        """One trial by all workers; observers sample here. What a worker refuses is raised."""
        from ironbench import _core

        control = self._ready(load)
        whole = msgspec.json.decode(plan, type=dict[str, Any])
        self._require_reached(control, load, parts.server(whole["engine"]))
        connection = whole["engine"].get("connection")
        sampler = _core.Sampler(msgspec.json.encode(whole["observers"]), msgspec.json.encode(connection))
        window = _Window(sampler, load)
        hired = len(control.workers)
        if hired < load.workers:
            self.printer.say(f"  {hired} of {counted(load.workers, 'worker')}: the cluster has no more machines")
        cut = parts.cut(plan, hired)
        try:
            found, lost = control.driven(cut, progress, window)
        except BaseException:
            self.close()
            raise
        finally:
            seen = window.end()
        if lost:
            self.printer.say(f"  {lost}")
            self.close()  # Ray may be what is broken
        if not found:
            return Driven(started, alive=True, failure=lost or "no worker has a result")
        return merge.driven(found, load, seen, window.began_ns, lost, started)

    def rehearse(self, plan: bytes, load: Load, progress: Progress, started: str) -> Driven:
        return self.drive(plan, load, progress, started)

    def copiers(self, load: Load) -> Copiers | None:
        """None: this machine copies the rows of large data alone."""
        return Copiers(self, load) if load.workers else None

    def copied(self, plan: dict[str, Any], load: Load, show: Callable[[int, int], None]) -> dict[str, Any]:
        """Copies all pieces of a load plan that are not done; `lost`: why it could not be ended. Raises what a worker
        refused."""
        control = self._ready(load)
        self._require_reached(control, load, parts.server(plan["engine"]))
        try:
            found = control.copied(plan, show)
        except BaseException:
            self.close()
            raise
        if found["lost"]:
            self.printer.say(f"  {found['lost']}")
            self.close()
        return found

    def close(self) -> None:
        """Ends what was started. May be called twice."""
        self._open.close()
        self._control = None
        self._reached.clear()

    def _ready(self, load: Load) -> _Control:
        """As many workers as the load asks for. InputError, FailureError."""
        if self._control is not None and not (self._control.alive() and self._control.address == load.cluster):
            self.close()
        if self._control is None:
            self.printer.say(f"starting {counted(load.workers, 'worker')} {_where(load.cluster)}")
            folder = self._open.enter_context(scratch.folder(short=True))
            self._control = self._open.enter_context(contextlib.closing(_Control(load.cluster, folder)))
        try:
            self._control.hire(load.workers, load.fewer_workers)
        except BaseException:
            self.close()  # the control process ends after what it refuses
            raise
        return self._control


@dataclass(frozen=True, slots=True)
class Copiers:
    """The workers of a load, as it is loaded by them."""

    _crew: Crew
    _load: Load

    @property
    def count(self) -> int:
        return self._load.workers

    @property
    def here(self) -> int:
        """At most one where each has a machine of its own."""
        return 1 if self._load.cluster else self._load.workers

    def begin(self, target: dict[str, Any]) -> None:
        self._crew.reach(self._load, target)

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        return self._crew.copied(plan, self._load, show)


def require(load: Load) -> None:
    """InputError: no such workers can be had here."""
    if load.fewer_workers and not load.cluster:
        cause = "machines are lost of a cluster, and none is named"
        raise InputError(
            written("load.fewer_workers"), cause, f"name one by {written('load.cluster')}, or leave it out"
        )
    if not load.workers:
        if load.cluster:
            cause = "a cluster is named, and no workers"
            raise InputError(written("load.cluster"), cause, f"say how many {written('load.workers')} there are")
        return
    if importlib.util.find_spec("ray") is None:
        raise InputError(written("load.workers"), "the Python package ray is not installed", _HINT)
    package_folder("ray", "", _HINT)


require_shared = parts.require


def machines(cluster: str) -> int:
    """Machines of a running cluster that can hold a worker. InputError: there is no such cluster."""
    with contextlib.closing(_Control(cluster, Path("/tmp"))) as control:
        return control.machines


def require_machines(load: Load, machines: int) -> None:
    """InputError: there are too few."""
    if load.workers > machines:
        cause = (
            f"{counted(load.workers, 'worker')}, and the cluster has {counted(machines, 'machine')} with a CPU for one"
        )
        raise InputError(written("load.workers"), cause, "ask for fewer, or join more machines to the cluster")


def _where(cluster: str) -> str:
    return f"on the Ray cluster {cluster}" if cluster else "on this machine"


class _Window:
    """Samples the server's side from the start that all workers have in common to the end of the measured time."""

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
        """Of a drive's summary what observers have in it, and `samples`."""
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


class _Control:
    """Our end of the child that speaks with Ray."""

    def __init__(self, cluster: str, folder: Path) -> None:
        """InputError: the cluster cannot be used. FailureError."""
        self.address = cluster
        self.workers: list[dict[str, Any]] = []
        self._started: list[ProcessId] = []
        ray = package_folder("ray", "", _HINT)
        package = Path(errors.__file__).parent
        self._child = Child("ironbench.cluster.control", "control process of the workers", packages=[ray])
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
            self.machines: int = self.asked(asked)["machines"]
        except BaseException:
            self.close()
            raise

    def alive(self) -> bool:
        return self._child.alive()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a socket that another thread waits for is not closed by closing it
            self._child.socket.shutdown(socket.SHUT_RDWR)
        started = {*self._started, *processes.below(self._child.pid)}
        self._child.stop(_STOP_S)
        for one in started:  # the guard ends them, unless it was killed itself
            one.signal(signal.SIGKILL)

    def hire(self, count: int, fewer: bool = False) -> None:
        """InputError: another build there. FailureError: too few machines, unless fewer workers are allowed."""
        self.workers = self.asked({"ask": "workers", "count": count, "fewer": fewer})["workers"]
        self._started = processes.below(self._child.pid)
        from ironbench import _core

        ours = (_core.VERSION, _core.BUILD_PROFILE, core_digest())
        here = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        for one in self.workers:
            one["here"] = one["boot"] == here
            if (one["version"], one["build"], one["core"]) != ours:
                cause = f"ironbench {one['version']} ({one['build']}) runs on {one['host']}, here another build does"
                raise InputError(
                    written("load.cluster"), cause, "remove ironbench from the path of Ray's workers there"
                )

    def asked(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer. InputError, FailureError."""
        self._child.send(message)
        return self._next(_START_S)[0]

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        """`rows`, `bytes`, `connections`, `elapsed_s`, `memory_bytes` of each worker, and `lost`."""
        self._child.send({"ask": "load", "plan": plan})
        counts: list[list[int]] = []
        while True:
            frame = self._next(_SILENT_S)[0]
            if "over" in frame:
                break
            counts = frame["copied"]
            show(sum(one[0] for one in counts), sum(one[1] for one in counts))
        rows, size, memory = ([one[place] for one in counts] for place in range(3))
        return {"lost": "", **frame, "rows": sum(rows), "bytes": sum(size), "memory_bytes": memory}

    def driven(self, plans: Sequence[bytes], progress: Progress, window: _Window) -> tuple[list[Part], str]:
        """The parts of a trial that have a result, and why others have none.

        The first Ctrl-C ends the trial and keeps what was done; the second is raised.
        """
        self._child.send({"ask": "drive", "bytes": [len(one) for one in plans]}, b"".join(plans))
        found: list[Part] = []
        lost, states = "", _States(progress)
        for frame, data in self._told(progress):
            if "began" in frame:
                window.begins(frame["began"])
            elif "states" in frame:
                states.show(frame["states"])
            elif "lost" in frame and "over" not in frame:
                lost = frame["lost"]
            elif "worker" in frame:
                raise_refusal(frame["found"])
                if data:
                    number = frame["worker"]
                    found.append(Part(number, self.workers[number], frame["clock"], frame["found"], data))
        return found, lost

    def _told(self, progress: Progress) -> Iterator[tuple[dict[str, Any], bytes]]:
        """Frames of a trial until it is over."""
        interrupted = stopped = False
        heard_s = time.monotonic()
        while True:
            try:
                if (interrupted or progress.stopping) and not stopped:
                    self._child.send({"stop": True})
                    stopped = True
                try:
                    frame = self._frames.get(timeout=0.1)
                except queue.Empty:
                    if time.monotonic() - heard_s > _SILENT_S:
                        raise FailureError(self._child.subject, f"said nothing for {units.span(_SILENT_S)}") from None
                    continue
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                continue
            heard_s = time.monotonic()
            if frame is None:
                raise self._child.died("before the trial was over", FailureError)
            raise_refusal(frame[0])
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
        raise_refusal(frame[0])
        return frame

    def _receive(self) -> None:
        while (frame := self._child.receive()) is not None:
            self._frames.put(frame)
        self._frames.put(None)


class _States:
    """What all workers together have done so far."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seconds: list[list[tuple[float, int, int, float, float]]] = []
        self._shown = 0

    def show(self, states: Sequence[Sequence[Any]]) -> None:
        self._seconds = self._seconds or [[] for _ in states]
        for known, state in zip(self._seconds, states, strict=True):
            known += [tuple(second) for second in state[4]]
        whole = min(len(known) for known in self._seconds)
        new = [merge.second([known[at] for known in self._seconds]) for at in range(self._shown, whole)]
        self._shown = whole
        phases = [state[0] for state in states]
        phase = min(phases, key=lambda one: _PHASES.index(one) if one in _PHASES else len(_PHASES))
        elapsed_s = max(state[1] for state in states)
        self._progress.show(phase, elapsed_s, sum(state[2] for state in states), sum(state[3] for state in states), new)


_PHASES = ("connect", "ready", "warmup", "run", "drain", "done")
