"""The workers of an experiment: started when a trial first needs them, stopped when the experiment is over."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import FailureError, InputError, written
from ironbench.host import scratch
from ironbench.host.child import package_folder
from ironbench.model.driven import Driven
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.trial.cluster import merge, parts
from ironbench.trial.cluster.control import HINT, Control, ServerSampler, sampler
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench._core import Progress


@dataclass(slots=True)
class WorkerPool:
    """The workers of an experiment. No worker is started before the first trial that needs workers."""

    printer: Printer
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _control: Control | None = None
    _reached: set[tuple[int, str, parts.Server]] = field(default_factory=set)

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def of(self, load: Load) -> WorkerPool | None:
        """Returns this pool if the load has workers. Returns None if this process drives the load."""
        return self if load.workers else None

    def reach(self, load: Load, target: dict[str, Any]) -> None:
        """Raises InputError if a worker cannot reach the server."""
        known = parts.server(target)
        if load.workers and known and (load.workers, load.cluster, known) not in self._reached:
            self._require_reached(self._ready(load), load, known)

    def _require_reached(self, control: Control, load: Load, known: parts.Server) -> None:
        if not known or (load.workers, load.cluster, known) in self._reached:
            return
        parts.require_common(dict(known), away := [one["host"] for one in control.workers if not one["here"]])
        for number, why in enumerate(control.request({"ask": "reach", "server": dict(known)})["reach"]):
            if why:
                cause = f"worker {number + 1} on {control.workers[number]['host']} cannot reach the server: {why}"
                hint = f"set {written('system.dsn')} to an address that every machine can reach"
                raise InputError(written("system.dsn") if away else written("load.workers"), cause, hint)
        self._reached.add((load.workers, load.cluster, known))

    def drive(self, plan: bytes, load: Load, progress: Progress, rehearsal: bool = False) -> Driven:
        """Drives a trial or a rehearsal with all workers. Observers sample on this machine. Raises the workers'
        errors."""
        control = self._ready(load)
        whole = msgspec.json.decode(plan, type=dict[str, Any])
        self._require_reached(control, load, parts.server(whole["engine"]))
        sampling = ServerSampler(sampler(whole["observers"], whole["engine"].get("connection")), load)
        there = len(control.workers)
        if there < load.workers:
            self.printer.say(f"  {there} of {counted(load.workers, 'worker')}: the cluster has no more machines")
        cut = parts.cut(plan, there)
        try:
            found, lost = control.driven(cut, progress, sampling)
        except BaseException:
            self.close()
            raise
        finally:
            seen = sampling.end()
        if lost:
            self.printer.say(f"  {lost}")
            self.close()  # Ray may no longer work, so it is started again
        if not found:
            raise FailureError("workers", lost or "no worker returned a result")
        return merge.driven(found, load, seen, sampling.began_ns, lost)

    def copiers(self, load: Load) -> WorkerCopiers | None:
        """Returns workers that copy the rows of large data. Returns None if this process copies the rows."""
        return WorkerCopiers(self, load) if load.workers else None

    def copied(self, plan: dict[str, Any], load: Load, show: Callable[[int, int], None]) -> dict[str, Any]:
        """Copies all remaining pieces of a load plan. Raises the workers' errors. `lost`: why copying could not be
        completed."""
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
        """Stops the workers. A second call has no effect."""
        self._open.close()
        self._control = None
        self._reached.clear()

    def _ready(self, load: Load) -> Control:
        """Starts or reuses as many workers as the load requests. Raises InputError or FailureError."""
        if self._control is not None and not (self._control.alive() and self._control.address == load.cluster):
            self.close()
        if self._control is None:
            where = f"on the Ray cluster {load.cluster}" if load.cluster else "on this machine"
            self.printer.say(f"starting {counted(load.workers, 'worker')} {where}")
            folder = self._open.enter_context(scratch.folder(short=True))
            self._control = self._open.enter_context(contextlib.closing(Control(load.cluster, folder)))
        try:
            self._control.start_workers(load.workers, load.fewer_workers)
        except BaseException:
            self.close()  # after an error, the control process has ended
            raise
        return self._control


@dataclass(frozen=True, slots=True)
class WorkerCopiers:
    """Copies the rows of a load with workers."""

    _pool: WorkerPool
    _load: Load

    @property
    def count(self) -> int:
        return self._load.workers

    @property
    def here(self) -> int:
        """Maximum number of workers on this machine. On a cluster, each worker has a separate machine, so there is at
        most one."""
        return 1 if self._load.cluster else self._load.workers

    def begin(self, target: dict[str, Any]) -> None:
        self._pool.reach(self._load, target)

    def copied(self, plan: dict[str, Any], show: Callable[[int, int], None]) -> dict[str, Any]:
        return self._pool.copied(plan, self._load, show)


def require(load: Load) -> None:
    """Raises InputError if the workers of this load cannot be started from this machine."""
    if load.fewer_workers and not load.cluster:
        cause = "has no effect without a Ray cluster"
        raise InputError(
            written("load.fewer_workers"),
            cause,
            f"add {written('load.cluster')}, or remove {written('load.fewer_workers')}",
        )
    if not load.workers:
        if load.cluster:
            cause = "has no effect without workers"
            raise InputError(written("load.cluster"), cause, f"add {written('load.workers', 'N')}")
        return
    if importlib.util.find_spec("ray") is None:
        raise InputError(written("load.workers"), "the Python package ray is not installed", HINT)
    package_folder("ray", "", HINT)


def machines(cluster: str) -> int:
    """Returns the number of machines of a running cluster that can run a worker. Raises InputError if there is no such
    cluster."""
    with contextlib.closing(Control(cluster, Path("/tmp"))) as control:
        return control.machines


def require_machines(load: Load, machines: int) -> None:
    """Raises InputError if there are too few machines."""
    if load.workers > machines:
        cause = f"{counted(load.workers, 'worker')} requested, but the cluster has only {counted(machines, 'machine')}"
        raise InputError(written("load.workers"), cause, "use fewer workers, or add machines to the cluster")
