"""The child of ours that speaks with Ray, so that neither its threads nor its end are in our process.

It starts a cluster of its own on this machine, or joins a running one, and asks one actor per worker for what the
parent wants. It is two processes: one uses Ray; the other only waits for the end of the first or of the parent,
whatever Ray does then, and ends every process that is left, at once.

Messages from the parent: `begin` (once), `workers`, `reach`, `load`, `drive`; `stop` while a trial is driven. Each is
answered by frames, the last of which has `over` or is a refusal.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import queue
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ironbench import units
from ironbench.cluster import clocks, guard, loading
from ironbench.cluster.clocks import Answer, Offset
from ironbench.cluster.worker import BOOT, Worker
from ironbench.errors import FailureError, InputError
from ironbench.process.child import Channel, answer

LOST_S = 5.0
"""A worker that does not answer for so long is lost."""
LATE_S = 30.0
"""So long after the first worker is ready the last one must be, too."""
_LOOK_S = 0.2
_SOON_S = 0.005
_AT_ONCE = loading.MOST_CONNECTIONS + 8
"""Calls of one worker: pieces that it copies, and questions meanwhile."""
_QUESTIONS = 16
"""For the time, of each worker."""
_PATIENCE_S = 5.0
_JOINED = "begin it with `ray start` on each machine, this one included: see docs/guide/many-machines.md"
_CLUSTER_S = 20.0
"""A running cluster, or the actors on it, must be there after so long."""
_STORE_BYTES = 80 << 20
"""Ray's least object store; results are far smaller."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # whoever runs out of memory is the kernel's to choose
    "RAY_enable_metrics_collection": "0",
    "RAY_DEDUP_LOGS": "0",
}


def main(parent: Channel) -> None:
    """The child's side."""
    owner, prctl = os.pidfd_open(os.getppid()), ctypes.CDLL(None).prctl
    # What Ray starts and leaves alone becomes a child of this process, which can then find it.
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    driver = os.fork()
    if driver:
        parent.close()
        guard.wait(owner, driver)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    control = _Control(parent)
    threading.Thread(target=control.listen, daemon=True).start()
    control.serve()


def _require_answer(address: str, subject: str) -> None:
    """InputError: nothing is there. Ray itself would try for half a minute."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _PATIENCE_S).close()
    except (OSError, ValueError) as error:
        cause = f"nothing answers there: {getattr(error, 'strerror', None) or error}"
        raise InputError(subject, cause, _JOINED) from None


class _LostError(Exception):
    """A worker is gone, late, or does not answer."""


class _Control:
    def __init__(self, parent: Channel) -> None:
        self._parent = parent
        self._asked: queue.SimpleQueue[tuple[dict[str, Any], bytes]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._workers: list[Any] = []
        self._waiting: list[Any] = []
        self._said: list[dict[str, Any]] = []
        self._group: Any = None
        self._address = ""

    def listen(self) -> None:
        while (frame := self._parent.receive()) is not None:
            if "stop" in frame[0]:
                self._stopping.set()
            else:
                self._asked.put(frame)
        os._exit(0)

    def serve(self) -> None:
        while True:
            asked, data = self._asked.get()
            self._stopping.clear()
            if asked["ask"] == "begin":
                self._begin(asked)
            elif asked["ask"] == "workers":
                answer(self._parent, {"over": True, "workers": self._hired(asked["count"])})
            elif asked["ask"] == "reach":
                answer(self._parent, {"over": True, "reach": self._reach(asked["server"])})
            elif asked["ask"] == "load":
                self._load(asked["plan"])
            elif asked["ask"] == "drive":
                self._drive(_split(data, asked["bytes"]))

    # The cluster.

    def _begin(self, asked: dict[str, Any]) -> None:
        os.environ |= _SETTINGS | {"PYTHONPATH": os.pathsep.join(asked["packages"])}
        self._address = asked["address"]
        for name in ("http_proxy", "https_proxy", "all_proxy"):  # gRPC would ask them for other machines of the cluster
            os.environ.pop(name, None)
            os.environ.pop(name.upper(), None)
        if self._address:
            _require_answer(self._address, asked["written"])
        else:
            # The only thing that keeps Ray on the loopback device (ray/_private/services.py, get_node_ip_address).
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
            # Nobody else on this machine can use it; without a token in the environment Ray writes one into ~/.ray.
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        import ray

        if self._address:
            self._join(asked)
        else:
            ray.init(
                num_cpus=0,
                object_store_memory=_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                _temp_dir=asked["folder"],
                _node_ip_address="127.0.0.1",
            )
        answer(self._parent, {"over": True, "ray": ray.__version__, "machines": self._machines()})

    def _join(self, asked: dict[str, Any]) -> None:
        """InputError: there is no such cluster, or it is of another version."""
        import ray

        travels = {"py_modules": asked["travels"], "env_vars": _SETTINGS}
        try:
            ray.init(
                address=self._address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                namespace=f"ironbench-{os.getpid()}",
                runtime_env=travels,
            )
        except ConnectionError as error:
            cause = " ".join(str(error).split()) or "nothing answers there"
            raise InputError(asked["written"], f"this is no running Ray cluster: {cause}", _JOINED) from None
        except ray.exceptions.AuthenticationError:
            way_out = "set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or ~/.ray/auth_token as the cluster has it"
            raise InputError(asked["written"], "this Ray cluster asks for its token", way_out) from None
        except RuntimeError as error:
            cause = " ".join(str(error).split())[-300:]
            same = "install the same versions of Ray and Python on every machine"
            raise InputError(asked["written"], cause, same if "ersion" in cause else _JOINED) from None

    def _machines(self) -> int:
        """Those that can hold a worker."""
        import ray

        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        return sum(1 for node in nodes if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)

    def _hired(self, count: int) -> list[dict[str, Any]]:
        """As many workers, on as many machines of a cluster; what they say of themselves."""
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        # Those of a trial with more workers wait for the next one: starting them takes seconds of CPU time.
        hired = [*self._workers, *self._waiting]
        gone = [number for number, worker in enumerate(hired) if self._answers(worker) is None]
        if self._address and (gone or count > len(hired)):
            self._dismiss(hired)
            if self._group is not None:
                remove_placement_group(self._group)
            hired, gone = [], []
            self._group = placement_group([{"CPU": 1}] * count, strategy="STRICT_SPREAD")
            if not self._group.wait(_CLUSTER_S):
                raise FailureError("Ray cluster", f"no {count} machines of it have a free CPU each")
        self._dismiss(hired[number] for number in gone)
        kept = [worker for number, worker in enumerate(hired) if number not in gone]
        self._workers, self._waiting = kept[:count], kept[count:]
        kind = ray.remote(Worker)
        while len(self._workers) < count:
            number = len(self._workers)
            where: dict[str, Any] = {"num_cpus": 0}
            if self._group is not None:
                where = {"num_cpus": 1, "scheduling_strategy": PlacementGroupSchedulingStrategy(self._group, number)}
            self._workers.append(kind.options(max_concurrency=_AT_ONCE, max_restarts=0, **where).remote())
        try:
            self._said = list(ray.get([worker.hello.remote() for worker in self._workers], timeout=4 * _CLUSTER_S))
            seen = ray.get([worker.machine.remote() for worker in self._workers], timeout=_CLUSTER_S)
        except ray.exceptions.RayError as error:
            raise FailureError("workers", f"they could not be started: {_first_line(error)}") from None
        return [{**one, "machine": machine} for one, machine in zip(self._said, seen, strict=True)]

    def _answers(self, worker: Any) -> int | None:
        import ray

        try:
            return int(ray.get(worker.now.remote(), timeout=LOST_S))
        except ray.exceptions.RayError:
            return None

    def _dismiss(self, workers: Iterable[Any]) -> None:
        import ray

        for worker in workers:
            ray.kill(worker)

    def _reach(self, server: dict[str, Any]) -> list[str]:
        import ray

        found: list[str] = ray.get([worker.reach.remote(server) for worker in self._workers], timeout=_CLUSTER_S)
        return found

    def _load(self, plan: dict[str, Any]) -> None:
        """Answers with what the workers have copied, now and then."""
        slots = loading.connections(self._said)
        began_s = time.monotonic()

        def look() -> None:
            answer(self._parent, {"copied": self._all(lambda _, worker: worker.copied.remote())})

        try:
            ended = loading.shared(self._workers, slots, plan, look)
        except _LostError as error:
            ended = {"lost": str(error)}
        # The text that rows are cut from, 300 MB, goes with their processes.
        self._dismiss([*self._workers, *self._waiting])
        self._workers, self._waiting = [], []
        elapsed_s = time.monotonic() - began_s
        answer(self._parent, {"over": True, "connections": sum(slots), "elapsed_s": elapsed_s, **ended})

    # A trial.

    def _drive(self, plans: list[bytes]) -> None:
        lost = ""
        offsets: list[Offset] = []
        try:
            self._all(lambda number, worker: worker.begin.remote(plans[number]))
            self._until({"ready", "done", "refused"})
            offsets = self._offsets()
            begin_ns = clocks.begin_ns(time.time_ns(), offsets)
            self._start(begin_ns, offsets)
            answer(self._parent, {"began": begin_ns})
            self._until({"done", "refused"})
        except _LostError as error:
            lost = str(error)
            answer(self._parent, {"lost": lost})
        self._hand_over(offsets, lost)

    def _start(self, begin_ns: int, offsets: list[Offset]) -> None:
        """Tells all workers the start. _LostError: a clock was set meanwhile."""
        sent_ns = time.time_ns()
        waits = self._all(lambda number, worker: worker.start.remote(begin_ns + offsets[number].ns))
        heard_ns = time.time_ns()
        for number, wait_ns in enumerate(waits):
            if jump_ns := clocks.jump(sent_ns, heard_ns, begin_ns, wait_ns):
                by = f"{units.span(abs(jump_ns) / 1e9)} {'forward' if jump_ns > 0 else 'back'}"
                raise _LostError(f"the clock of {self._name(number)} was set {by}, or ours was, during the start")

    def _until(self, phases: set[str]) -> None:
        """All workers are in one of the phases. _LostError."""
        stopped, first_s, told_s = False, 0.0, 0.0
        soon = "ready" in phases
        while True:
            states = self._all(lambda _, worker: worker.state.remote())
            if not soon or time.monotonic() - told_s > _LOOK_S:
                told_s = time.monotonic()
                answer(self._parent, {"states": states})
            here = [state[0] in phases for state in states]
            if all(here):
                return
            refused = any(state[0] == "refused" for state in states)
            if (refused or self._stopping.is_set()) and not stopped:
                stopped = True
                self._all(lambda _, worker: worker.stop.remote())
            if soon and any(here):
                first_s = first_s or time.monotonic()
                if time.monotonic() - first_s > LATE_S:
                    late = self._name(here.index(False))
                    raise _LostError(f"{late} was not ready {units.span(LATE_S)} after another was")
            self._stopping.wait(_SOON_S if soon or stopped else _LOOK_S)
            if stopped:
                time.sleep(_SOON_S)

    def _all(self, ask: Callable[[int, Any], Any]) -> list[Any]:
        """What every worker answers. _LostError."""
        import ray

        asked = [ask(number, worker) for number, worker in enumerate(self._workers)]
        try:
            return list(ray.get(asked, timeout=LOST_S))
        except ray.exceptions.RayError:
            pass
        for number, one in enumerate(asked):
            try:
                ray.get(one, timeout=0.1)
            except ray.exceptions.GetTimeoutError:
                raise _LostError(f"{self._name(number)} did not answer for {units.span(LOST_S)}") from None
            except ray.exceptions.RayError:
                raise _LostError(f"{self._name(number)} was lost") from None
        return list(ray.get(asked, timeout=LOST_S))

    def _offsets(self) -> list[Offset]:
        import ray

        def asked(worker: Any) -> Answer:
            sent_ns = time.time_ns()
            theirs_ns = int(ray.get(worker.now.remote(), timeout=LOST_S))
            heard_ns = time.time_ns()
            answer(self._parent, {"asked": True})  # on a network that loses packets, all questions take long
            return Answer(sent_ns, theirs_ns, heard_ns)

        try:
            return [clocks.offset(asked(worker) for _ in range(_QUESTIONS)) for worker in self._workers]
        except ray.exceptions.RayError as error:
            raise _LostError(f"a worker was lost while the clocks were compared: {_first_line(error)}") from None

    def _hand_over(self, offsets: list[Offset], lost: str) -> None:
        """Results of all that have one; of a trial that lost a worker, what the others have done by now."""
        if lost:
            self._end_rest()
        for number, (found, data) in self._results(lost):
            known = offsets[number] if offsets else Offset(0, 0)
            # A kernel has one clock; a time that differs by more than asking explains was set for a process.
            same = self._said[number]["boot"] == Path(BOOT).read_text().strip() and abs(known.ns) <= known.error_ns
            clock = {"offset_ns": known.ns, "error_ns": known.error_ns, "same": same}
            answer(self._parent, {"worker": number, "found": found, "clock": clock}, data)
        answer(self._parent, {"over": True, "lost": lost})

    def _end_rest(self) -> None:
        """Stops the workers that still answer, and waits a little for what they have."""
        import ray

        deadline = time.monotonic() + 2.0
        waiting = list(self._workers)
        while waiting and time.monotonic() < deadline:
            asked = [worker.stop.remote() for worker in waiting]
            ray.wait(asked, num_returns=len(asked), timeout=0.5)
            states = [worker.state.remote() for worker in waiting]
            done, _ = ray.wait(states, num_returns=len(states), timeout=0.5)
            waiting = [one for one, state in zip(waiting, states, strict=True) if state in done and not _over(state)]

    def _results(self, lost: str) -> Iterator[tuple[int, tuple[dict[str, Any], bytes]]]:
        import ray

        asked = [worker.result.remote() for worker in self._workers]
        for number, one in enumerate(asked):
            with contextlib.suppress(ray.exceptions.RayError):
                yield number, ray.get(one, timeout=1.0 if lost else LOST_S)

    def _name(self, number: int) -> str:
        return f"worker {number + 1} on {self._said[number]['host']} (process {self._said[number]['pid']})"


def _over(state: Any) -> bool:
    """Also where nobody answers any more."""
    import ray

    try:
        return ray.get(state, timeout=0.1)[0] in ("done", "refused")
    except ray.exceptions.RayError:
        return True


def _split(data: bytes, lengths: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(data[at : at + length])
        at += length
    return pieces


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
