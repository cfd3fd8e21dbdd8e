"""One long call of the core in a child process, whose memory, limits and crashes are not ours."""

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
from ironbench.host.child import ORPHANED, STOP_S, Channel, Child, answer, raise_refusal

_TELL_S = 0.1
_LOOK_S = 0.05
_PATIENCE_S = 30.0
"""How long a load whose parent is gone may take to leave what it is doing."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be done."""

    name: str
    """Of `_CALLS`."""
    plan: bytes
    subject: str
    """Of error messages."""
    death: type[FailureError] = EngineDiedError
    """What is raised when the child died."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the child runs: its limits and its crashes are its own."""

    log: Path | None = None
    """Where its standard error goes; None: a file in memory."""
    cpus: Sequence[int] = ()
    within: Sequence[str] = ()
    """What its command is put behind."""


ANYWHERE = Placement()


def run(
    call: Call,
    where: Placement = ANYWHERE,
    *,
    show: Callable[[Any], None] = lambda state: None,
    stopping: Callable[[], bool] = lambda: False,
    keep: bool = False,
) -> bytes:
    """The call's result. Raises what it raised, and `call.death` when the child died.

    `show` gets its state several times a second, in another thread. `stopping` and Ctrl-C end it early; with `keep`,
    what it had done until the first Ctrl-C is its result, else KeyboardInterrupt is raised once the child has ended.
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
    raise_refusal(answers.last)
    if answers.result is None and given_up:
        raise call.death(call.subject, f"it did not stop within {STOP_S:g} s of being told to, and was killed")
    if answers.result is None:
        raise child.died("before its work was over", call.death)
    return answers.result


class _Answers(threading.Thread):
    """Takes the child's frames, in a thread of its own so that Ctrl-C cannot fall between two bytes of a frame."""

    def __init__(self, child: Child, show: Callable[[Any], None]) -> None:
        super().__init__(name="child-answers", daemon=True)
        self.result: bytes | None = None
        self.last: dict[str, Any] = {}
        # Not `is_alive`: a `join` that Ctrl-C interrupts takes the thread for ended (CPython 3.11, gh-90882).
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
    """Until the child hung up. Whether Ctrl-C came, and whether the child was killed.

    Passes on the wish to stop, and ends a child that does not heed it.
    """
    asked_at: float | None = None
    interrupted = given_up = False
    while not answers.ended.is_set():
        try:
            if asked_at is None and (interrupted or stopping()):
                asked_at = time.monotonic()
                child.tell({"stop": True})
            answers.ended.wait(_LOOK_S)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
        if asked_at is not None and time.monotonic() - asked_at > STOP_S:
            child.process.kill()
            given_up = True
    return interrupted, given_up


def _brought(by: dict[str, str]) -> Any:
    """A module of an engine, and the packages that it needs."""
    sys.path.append(by["packages"])
    return importlib.import_module(by["module"])


class _ChildDrive:
    """A trial. An engine may bring the connections."""

    patience_s = 0.0

    def __init__(self, core: Any, plan: bytes) -> None:
        self._core, self._plan = core, plan
        self._progress = core.Progress()
        self._sent = 0
        self.stop = self._progress.stop

    def state(self) -> Any:
        """Of its seconds those that are new."""
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
        drive = self._core.drive if driver is None else _brought(driver).drive
        return bytes(drive(self._plan, self._progress).to_bytes())


class _Load:
    """A large load: the text that its rows are cut from takes 300 MB. An engine may bring a loader of its own."""

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
        return json.dumps(_brought(loader).load(plan, self._progress)).encode()


class _Write:
    """Rows into files: of each generator, table and path of a list."""

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
    """The child's side."""
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
