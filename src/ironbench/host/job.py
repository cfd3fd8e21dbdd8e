"""Runs one long call of the core in a child process, so that its memory, limits and crashes do not affect this
process."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironbench.errors import EngineDiedError, FailureError
from ironbench.host.child import ORPHANED, STOP_S, Channel, Child, answer, raise_error

_TELL_S = 0.1
_POLL_INTERVAL_S = 0.05
_PATIENCE_S = 30.0
"""Seconds that a child process that loads data has to stop after its parent has died."""


@dataclass(frozen=True, slots=True)
class CoreCall:
    """A call of a function of the core."""

    name: str
    """Name of the function: a key of `_CALLS`."""
    plan: bytes
    subject: str
    """Subject of error messages."""
    death: type[FailureError] = EngineDiedError
    """Error that is raised if the child process dies."""


@dataclass(frozen=True, slots=True)
class ChildPlacement:
    """Where the child process runs: its CPUs, its control group, and its log."""

    log: Path | None = None
    """File for the child's standard error; None: a file in memory."""
    cpus: Sequence[int] = ()
    within: Sequence[str] = ()
    """Words before the child's command, such as a program that enters a control group."""


ANYWHERE = ChildPlacement()


def run(
    call: CoreCall,
    where: ChildPlacement = ANYWHERE,
    *,
    show: Callable[[Any], None] = lambda state: None,
    stopping: Callable[[], bool] = lambda: False,
    keep: bool = False,
) -> bytes:
    """Runs the call in a child process and returns its result. Raises the error of the call, or `call.death` if the
    child dies.

    `show` is called with the state several times a second, in another thread. The call ends early if `stopping` returns
    true or the user presses Ctrl-C. After the first Ctrl-C, the partial result is returned if `keep` is set. Without
    `keep`, KeyboardInterrupt is raised after the child has ended.
    """
    child = Child(__name__, call.subject, within=where.within, log=where.log)
    answers = _Answers(child, show)
    try:
        child.tell({"call": call.name, "cpus": list(where.cpus)}, call.plan)
        answers.start()
        interrupted, given_up = _wait(child, answers, stopping)
    except BaseException:
        child.process.kill()
        raise
    finally:
        child.process.wait()
        child.close()
    if interrupted and not keep:
        raise KeyboardInterrupt
    raise_error(answers.last)
    if answers.result is None and given_up:
        raise call.death(call.subject, f"was killed because it did not stop within {STOP_S:g} s")
    if answers.result is None:
        raise child.died("before its work was done", call.death)
    return answers.result


class _Answers(threading.Thread):
    """Receives the child's frames in a separate thread, so that Ctrl-C cannot interrupt the reading of a frame."""

    def __init__(self, child: Child, show: Callable[[Any], None]) -> None:
        super().__init__(name="child-answers", daemon=True)
        self.result: bytes | None = None
        self.last: dict[str, Any] = {}
        # This event is used instead of `is_alive`. If Ctrl-C interrupts a `join`, `is_alive` returns false although the
        # thread still runs (CPython 3.11, gh-90882).
        self.ended = threading.Event()
        self._child = child
        self._show = show

    def run(self) -> None:
        try:
            while (frame := self._child.receive()) is not None:
                self.last, data = frame
                if "done" in self.last:
                    self.result = data
                elif "state" in self.last:
                    self._show(self.last["state"])
        finally:
            self.ended.set()


def _wait(child: Child, answers: _Answers, stopping: Callable[[], bool]) -> tuple[bool, bool]:
    """Waits until the child closes the connection. Returns whether Ctrl-C was pressed, and whether the child was
    killed.

    Forwards the request to stop to the child, and kills the child if it does not stop.
    """
    asked_at: float | None = None
    interrupted = given_up = False
    while not answers.ended.is_set():
        try:
            if asked_at is None and (interrupted or stopping()):
                asked_at = time.monotonic()
                child.tell({"stop": True})
            answers.ended.wait(_POLL_INTERVAL_S)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
        if asked_at is not None and time.monotonic() - asked_at > STOP_S:
            child.process.kill()
            given_up = True
    return interrupted, given_up


def _imported(by: dict[str, str]) -> Any:
    """Imports a module of an engine. First adds the folder with the packages that the module needs to the module
    path."""
    sys.path.append(by["packages"])
    return importlib.import_module(by["module"])


class _ChildDrive:
    """Runs a trial. An engine may provide its own driver."""

    patience_s = 0.0

    def __init__(self, core: Any, plan: bytes) -> None:
        self._core, self._plan = core, plan
        self._progress = core.Progress()
        self._sent = 0
        self.stop = self._progress.stop

    def state(self) -> Any:
        """Returns the progress of the trial, with only those finished seconds that were not sent before."""
        passed = self._progress.seconds(self._sent)
        self._sent += len(passed)
        return (
            self._progress.phase,
            self._progress.elapsed_s,
            self._progress.transactions,
            self._progress.errors,
            passed,
        )

    def result(self) -> bytes:
        driver = json.loads(self._plan)["engine"].get("driver")
        drive = self._core.drive if driver is None else _imported(driver).drive
        return bytes(drive(self._plan, self._progress).to_bytes())


class _Load:
    """Loads a large amount of generated data. This is done in a child process because the generator's text pool takes
    300 MB. An engine may provide its own loader."""

    patience_s = _PATIENCE_S

    def __init__(self, core: Any, plan: bytes) -> None:
        self._core, self._plan = core, plan
        self._progress = core.LoadProgress()
        self.stop = self._progress.stop

    def state(self) -> Any:
        return self._progress.rows, self._progress.bytes

    def result(self) -> bytes:
        plan = json.loads(self._plan)
        loader = plan["engine"].get("loader")
        if loader is None:
            return bytes(self._core.load_rows(self._plan, self._progress))
        return json.dumps(_imported(loader).load(plan, self._progress)).encode()


class _Write:
    """Writes generated rows to files, for each entry in a list of (generator, table, path)."""

    patience_s = 0.0

    def __init__(self, core: Any, plan: bytes) -> None:
        self._core, self._plan = core, plan

    def stop(self) -> None:
        os._exit(ORPHANED)

    def state(self) -> Any:
        return None

    def result(self) -> bytes:
        for generator, table, path in json.loads(self._plan):
            self._core.write_rows(json.dumps(generator).encode(), table, 1, path)
        return b""


_CALLS: dict[str, type[_ChildDrive | _Load | _Write]] = {"drive": _ChildDrive, "load": _Load, "write": _Write}


def main(parent: Channel) -> None:
    """Entry point of the child process."""
    begin = parent.receive()
    if begin is None:
        os._exit(ORPHANED)
    asked, plan = begin
    if asked["cpus"]:
        os.sched_setaffinity(0, asked["cpus"])
    import ironbench._core as core

    work = _CALLS[asked["call"]](core, plan)
    telling = threading.Lock()

    def tell() -> None:
        with telling:
            answer(parent, {"state": work.state()})

    def keep_telling() -> None:
        while True:
            tell()
            time.sleep(_TELL_S)

    def listen() -> None:
        while parent.receive() is not None:
            work.stop()
        if work.patience_s:
            work.stop()
            time.sleep(work.patience_s)
        os._exit(ORPHANED)

    for task in (listen, keep_telling):
        threading.Thread(target=task, daemon=True).start()
    result = work.result()
    tell()
    answer(parent, {"done": True}, result)
