"""The child process that uses Ray, so that Ray's threads and exit handlers are not in the experiment's process.

The child starts a private cluster on this machine or joins a running cluster, and executes the parent's requests with
one actor per worker.

There are two processes. The first process uses Ray. The second process waits until the first process or the parent has
ended, and then ends all remaining processes at once, without the help of Ray.

The parent sends these messages: `begin` (once), `workers`, `reach`, `load` and `drive`. While a trial is running, it
may also send `stop`. The child replies to each message with one or more messages. The last one contains `over` or an
error.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import queue
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import Any, NoReturn

from ironbench import units
from ironbench.errors import FailureError
from ironbench.host import processes
from ironbench.host.child import Channel, answer
from ironbench.trial.cluster import clocks, loading
from ironbench.trial.cluster.clocks import ClockReading, Offset
from ironbench.trial.cluster.ray_workers import CLUSTER_S, LOST_S, RayWorkers, first_line
from ironbench.trial.cluster.worker import BOOT

LATE_S = 30.0
"""When the first worker is ready, the others must also become ready within this number of seconds."""
_ENDED = frozenset({"done", "aborted", "refused"})
"""Phases of a worker that no longer runs transactions."""
_POLL_INTERVAL_S = 0.2
_SOON_S = 0.005
_QUESTIONS = 16
"""Number of requests for the time that are sent to each worker."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(parent: Channel) -> None:
    """Runs the child process."""
    owner, prctl = os.pidfd_open(os.getppid()), ctypes.CDLL(None).prctl
    # Processes that Ray starts and abandons become children of this process, so that it can find them.
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    driver = os.fork()
    if driver:
        parent.close()
        _end_with(owner, driver)
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    child = _RayChild(parent)
    threading.Thread(target=child.listen, daemon=True).start()
    child.serve()


def _end_with(owner: int, driver: int) -> NoReturn:
    """Waits until one of the two processes ends, ends all child processes, and exits with the driver's status."""
    ended = os.pidfd_open(driver)
    either = select.poll()
    either.register(owner, select.POLLIN)
    either.register(ended, select.POLLIN)
    either.poll()
    status = os.waitpid(driver, os.WNOHANG)[1]
    _end_all()
    os._exit(abs(os.waitstatus_to_exitcode(status)))


def _end_all() -> None:
    """Ends every process below this one."""
    deadline, none = time.monotonic() + 5.0, 0
    # When a process ends, its children become children of this process. A scan at this moment may miss them, so three
    # scans must find no process.
    while none < 3 and time.monotonic() < deadline:
        left = processes.below(os.getpid())
        for one in left:
            one.signal(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        none = 0 if left else none + 1
        time.sleep(0.02)


class _LostError(Exception):
    """A worker has disappeared, is late, or does not answer."""


class _RayChild:
    def __init__(self, parent: Channel) -> None:
        self._parent = parent
        self._asked: queue.SimpleQueue[tuple[dict[str, Any], bytes]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._pool = RayWorkers()

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
                answer(self._parent, {"over": True, "workers": self._pool.start(asked["count"], asked["fewer"])})
            elif asked["ask"] == "reach":
                answer(self._parent, {"over": True, "reach": self._reach(asked["server"])})
            elif asked["ask"] == "load":
                self._load(asked["plan"])
            elif asked["ask"] == "drive":
                self._drive(_split(data, asked["bytes"]))

    def _begin(self, asked: dict[str, Any]) -> None:
        self._pool.begin(asked)
        import ray  # imported after `begin`, because the import reads Ray's settings

        answer(self._parent, {"over": True, "ray": ray.__version__, "machines": self._pool.machines()})

    def _reach(self, server: dict[str, Any]) -> list[str]:
        """Returns for each worker why it cannot reach the server. The text is empty if the worker can reach it. Raises
        FailureError if a worker is lost."""
        import ray

        asked = [worker.reach.remote(server) for worker in self._pool.workers]
        ray.wait(asked, num_returns=len(asked), timeout=CLUSTER_S)
        found: list[str] = []
        for number, one in enumerate(asked):
            try:
                found.append(ray.get(one, timeout=0.1))
            except ray.exceptions.GetTimeoutError:
                found.append(
                    f"no answer within {units.span(CLUSTER_S)}; check whether the worker's machine can resolve "
                    "the server's name"
                )
            except ray.exceptions.RayError as error:
                raise FailureError("workers", f"{self._pool.name(number)} was lost: {first_line(error)}") from None
        return found

    def _load(self, plan: dict[str, Any]) -> None:
        """Loads data with the workers. Regularly reports to the parent how much they have copied."""
        slots = loading.connections(self._pool.hosts)
        began_s = time.monotonic()

        def check() -> None:
            answer(self._parent, {"copied": self._all(lambda _, worker: worker.copied.remote())})

        try:
            ended = loading.shared(self._pool.workers, slots, plan, check)
        except _LostError as error:
            ended = {"lost": str(error)}
        # The workers are stopped to free memory. Each of them holds 300 MB of text from which rows are made.
        self._pool.stop_all()
        elapsed_s = time.monotonic() - began_s
        answer(self._parent, {"over": True, "connections": sum(slots), "elapsed_s": elapsed_s, **ended})

    # Drive a trial.

    def _drive(self, plans: list[bytes]) -> None:
        lost = ""
        offsets: list[Offset] = []
        try:
            self._all(lambda number, worker: worker.begin.remote(plans[number]))
            self._until({"ready", *_ENDED})
            offsets = self._offsets()
            begin_ns = clocks.begin_ns(time.time_ns(), offsets)
            self._start(begin_ns, offsets)
            answer(self._parent, {"began": begin_ns})
            self._until(_ENDED)
        except _LostError as error:
            lost = str(error)
            answer(self._parent, {"lost": lost})
        self._hand_over(offsets, lost)

    def _start(self, begin_ns: int, offsets: list[Offset]) -> None:
        """Announces the start to all workers. Raises _LostError if a clock was set in the meantime."""
        sent_ns = time.time_ns()
        waits = self._all(lambda number, worker: worker.start.remote(begin_ns + offsets[number].ns))
        heard_ns = time.time_ns()
        for number, wait_ns in enumerate(waits):
            if jump_ns := clocks.jump(sent_ns, heard_ns, begin_ns, wait_ns):
                way, by = "forward" if jump_ns > 0 else "back", units.span(abs(jump_ns) / 1e9)
                raise _LostError(
                    f"during the start, the clock of {self._pool.name(number)} or of this machine was set {way} by {by}"
                )

    def _until(self, phases: Set[str]) -> None:
        """Waits until all workers are in one of the phases. Raises _LostError."""
        stopped, first_s, told_s = False, 0.0, 0.0
        soon = "ready" in phases
        while True:
            states = self._all(lambda _, worker: worker.state.remote())
            if not soon or time.monotonic() - told_s > _POLL_INTERVAL_S:
                told_s = time.monotonic()
                answer(self._parent, {"states": states})
            here = [state[0] in phases for state in states]
            if all(here):
                return
            void = any(state[0] in ("refused", "aborted") for state in states)
            if (void or self._stopping.is_set()) and not stopped:
                stopped = True
                self._all(lambda _, worker: worker.stop.remote())
            if soon and any(here):
                first_s = first_s or time.monotonic()
                if time.monotonic() - first_s > LATE_S:
                    late = self._pool.name(here.index(False))
                    raise _LostError(f"{late} was not ready {units.span(LATE_S)} after the first worker")
            self._stopping.wait(_SOON_S if soon or stopped else _POLL_INTERVAL_S)
            if stopped:
                time.sleep(_SOON_S)

    def _all(self, ask: Callable[[int, Any], Any]) -> list[Any]:
        """Returns the answers of all workers. Raises _LostError."""
        import ray

        asked = [ask(number, worker) for number, worker in enumerate(self._pool.workers)]
        try:
            return list(ray.get(asked, timeout=LOST_S))
        except ray.exceptions.RayError:
            pass
        for number, one in enumerate(asked):
            try:
                ray.get(one, timeout=0.1)
            except ray.exceptions.GetTimeoutError:
                raise _LostError(f"{self._pool.name(number)} did not answer for {units.span(LOST_S)}") from None
            except ray.exceptions.RayError:
                raise _LostError(f"{self._pool.name(number)} was lost") from None
        return list(ray.get(asked, timeout=LOST_S))

    def _offsets(self) -> list[Offset]:
        import ray

        def read_clock(worker: Any) -> ClockReading:
            sent_ns = time.time_ns()
            theirs_ns = int(ray.get(worker.now.remote(), timeout=LOST_S))
            heard_ns = time.time_ns()
            # The requests may take long if packets are lost. The message shows the parent that this process is alive.
            answer(self._parent, {"asked": True})
            return ClockReading(sent_ns, theirs_ns, heard_ns)

        try:
            return [clocks.offset(read_clock(worker) for _ in range(_QUESTIONS)) for worker in self._pool.workers]
        except ray.exceptions.RayError as error:
            raise _LostError(f"a worker was lost while the clocks were compared: {first_line(error)}") from None

    def _hand_over(self, offsets: list[Offset], lost: str) -> None:
        """Sends the result of each worker that has one to the parent. If a worker was lost, the other workers are
        stopped early, and their results are partial."""
        if lost:
            self._end_rest()
        missing = set(range(len(self._pool.workers)))
        for number, (found, data) in self._results(lost):
            missing.discard(number)
            known = offsets[number] if offsets else Offset(0, 0)
            # Processes on the same kernel have the same clock. An exception is a process whose clock was changed, for
            # example by libfaketime. In this case, the measured offset is larger than its error.
            same = (
                self._pool.hosts[number]["boot"] == Path(BOOT).read_text().strip() and abs(known.ns) <= known.error_ns
            )
            clock = {"offset_ns": known.ns, "error_ns": known.error_ns, "same": same}
            answer(self._parent, {"worker": number, "found": found, "clock": clock}, data)
        if missing and not lost:
            lost = f"{self._pool.name(min(missing))} returned no results"
            answer(self._parent, {"lost": lost})
        answer(self._parent, {"over": True, "lost": lost})

    def _end_rest(self) -> None:
        """After a worker was lost, stops the workers that still answer, and waits briefly for their results."""
        import ray

        deadline = time.monotonic() + 2.0
        waiting = list(self._pool.workers)
        while waiting and time.monotonic() < deadline:
            asked = [worker.stop.remote() for worker in waiting]
            ray.wait(asked, num_returns=len(asked), timeout=0.5)
            states = [worker.state.remote() for worker in waiting]
            done, _ = ray.wait(states, num_returns=len(states), timeout=0.5)
            waiting = [one for one, state in zip(waiting, states, strict=True) if state in done and not _over(state)]

    def _results(self, lost: str) -> Iterator[tuple[int, tuple[dict[str, Any], bytes]]]:
        import ray

        asked = [worker.result.remote() for worker in self._pool.workers]
        # All workers are waited for together, so that the timeouts of lost workers do not add up.
        done, _ = ray.wait(asked, num_returns=len(asked), timeout=1.0 if lost else LOST_S)
        for number, one in enumerate(asked):
            if one in done:
                with contextlib.suppress(ray.exceptions.RayError):
                    yield number, ray.get(one, timeout=1.0)


def _over(state: Any) -> bool:
    """Returns whether a worker has stopped driving, or no longer answers."""
    import ray

    try:
        return ray.get(state, timeout=0.1)[0] in _ENDED
    except ray.exceptions.RayError:
        return True


def _split(data: bytes, lengths: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for length in lengths:
        pieces.append(data[at : at + length])
        at += length
    return pieces
