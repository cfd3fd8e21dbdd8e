"""Runs a trial of a library engine in a process of its own, so that its limits and crashes are not ours."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ironbench import errors
from ironbench.drive.inside import HEAD, LENGTH

if TYPE_CHECKING:
    from ironbench._core import DriveResult, Progress

STOP_S = 10.0
"""How long a child may take to hand over its result once it was asked to stop."""


def drive_in_child(
    plan: bytes,
    progress: Progress,
    *,
    cpus: Sequence[int] | None = None,
    log_path: Path,
    within: Sequence[str] = (),
) -> DriveResult:
    """As `_core.drive`, in a child on `cpus` that writes its standard error to `log_path`; its command after `within`.

    Ctrl-C and `progress.stop()` end the trial and keep its result; a second Ctrl-C ends the child and is raised.
    Raises what the trial raised, and EngineDiedError when the child died: its cause names the signal.
    """
    from ironbench import _core

    with log_path.open("wb") as log, _started(_core.__file__, cpus or (), log, within) as child:
        _ask(child, LENGTH.pack(len(plan)) + plan)
        answers = _Answers(child, progress)
        answers.start()
        _wait(child, answers, progress)
    if answers.error is not None:
        kind, subject, cause, hint = answers.error
        raise getattr(errors, kind)(subject, cause, hint)
    if answers.result is None:
        raise _death(child.returncode, log_path)
    return _core.DriveResult.from_bytes(answers.result)


class _Answers(threading.Thread):
    """Takes the child's frames, in a thread of its own so that Ctrl-C cannot fall between two bytes of a frame."""

    def __init__(self, child: subprocess.Popen[bytes], progress: Progress) -> None:
        super().__init__(name="child-answers", daemon=True)
        self.result: bytes | None = None
        self.error: tuple[str, str, str, str] | None = None
        # Not `is_alive`: a `join` that Ctrl-C interrupts takes the thread for ended (CPython 3.11, gh-90882).
        self.ended = threading.Event()
        assert child.stdout is not None
        self._pipe = child.stdout
        self._progress = progress

    def run(self) -> None:
        try:
            self._take()
        finally:
            self.ended.set()

    def _take(self) -> None:
        while head := self._exactly(HEAD.size):
            kind, length = HEAD.unpack(head)
            payload = self._exactly(length)
            if kind == b"p" and payload:
                phase, elapsed_s, transactions, failed, seconds = json.loads(payload)
                self._progress.show(phase, elapsed_s, transactions, failed, [tuple(second) for second in seconds])
            elif kind == b"r":
                self.result = payload
            elif kind == b"e" and payload:
                self.error = json.loads(payload)

    def _exactly(self, size: int) -> bytes | None:
        """None when the child ended before `size` bytes: half a frame is no frame."""
        pieces: list[bytes] = []
        while size > 0:
            piece = self._pipe.read(min(size, 1 << 20))
            if not piece:
                return None
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


@contextlib.contextmanager
def _started(
    core: str, cpus: Sequence[int], log: IO[bytes], within: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The child, in a process group of its own: the terminal's Ctrl-C is for us to hear and to pass on."""
    command = [*within, sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py")), core]
    child = subprocess.Popen(
        [*command, ",".join(map(str, cpus))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        bufsize=0,
        process_group=0,
    )
    try:
        yield child
    except BaseException:
        child.kill()
        raise
    finally:
        child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            pipe.close()


def _wait(child: subprocess.Popen[bytes], answers: _Answers, progress: Progress) -> None:
    """Until the child closed its end; passes on the wish to stop, and ends a child that does not heed it."""
    asked_at: float | None = None
    interrupted = False
    while not answers.ended.is_set():
        try:
            if asked_at is None and (interrupted or progress.stopping):
                asked_at = time.monotonic()
                _ask(child, b"s")
            answers.ended.wait(0.05)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
        if asked_at is not None and time.monotonic() - asked_at > STOP_S:
            child.kill()


def _ask(child: subprocess.Popen[bytes], data: bytes) -> None:
    """A child that is gone says so by what it did not answer."""
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        rest = memoryview(data)
        while rest:
            rest = rest[child.stdin.write(rest) :]


def _death(code: int, log_path: Path) -> errors.EngineDiedError:
    if code >= 0:
        cause = f"it ended with exit code {code} before the trial was over"
    else:
        cause = f"it was ended by {signal.Signals(-code).name} before the trial was over"
    lines = log_path.read_text(errors="replace").strip().splitlines()
    # A crash is told first and explained by a stack; an exception is told last.
    hint = f"it said: {lines[0 if code < 0 else -1]}" if lines else ""
    if not hint and code == -signal.SIGKILL:
        hint = "the kernel does this to the largest process when memory runs out (see dmesg)"
    return errors.EngineDiedError("the engine's process", cause, hint)
