"""Child processes of ours: one way to start them, to talk to them, and to tell how they ended.

A child runs `main(parent)` of one module under `python -I -S`, which starts fast and is blind to the user's packages
and variables. Its standard input is one end of a socket pair, on which frames go both ways: a message (JSON) and bytes.
End of file means that the other side is gone, however it died; a child then goes too. The parent-death signal would not
do: it fires already when the *thread* ends that started the process (prctl(2)).

Only the standard library: both ends import this.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ironbench import errors
from ironbench.errors import EngineDiedError, FailureError, InputError, IronbenchError, written

ORPHANED = 3
"""Exit code of a child whose parent is gone."""
STOP_S = 20.0
"""How long a child may take to end in good order once it was asked to."""
_LENGTHS = struct.Struct("<QQ")
"""Of the message and of the bytes behind it."""
_PACKAGES = str(Path(errors.__file__).resolve().parents[1])
_TAIL_BYTES = 16384
_CODE = "import sys; sys.path.extend({packages!r}); from ironbench.host.child import run; run({module!r})"


class Channel:
    """One end of a socket pair. Any thread may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._sending = threading.Lock()

    def send(self, message: Any, data: bytes = b"") -> None:
        """OSError: the other side is gone."""
        text = json.dumps(message).encode()
        with self._sending:
            self.socket.sendall(_LENGTHS.pack(len(text), len(data)) + text + data)

    def tell(self, message: Any, data: bytes = b"") -> None:
        """As `send`; lost where the other side is gone, which is seen by what it does not say."""
        with contextlib.suppress(OSError):
            self.send(message, data)

    def receive(self) -> tuple[Any, bytes] | None:
        """The next frame; None when the other side is gone, for half a frame is none."""
        head = self._exactly(_LENGTHS.size)
        if head is None:
            return None
        text_bytes, data_bytes = _LENGTHS.unpack(head)
        text, data = self._exactly(text_bytes), self._exactly(data_bytes)
        return None if text is None or data is None else (json.loads(text), data)

    def waiting(self, timeout_s: float | None) -> bool:
        """Whether there is something to receive, the end included; waits for it at most so long."""
        return self.socket.fileno() >= 0 and bool(select.select([self.socket], [], [], timeout_s)[0])

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes | None:
        pieces = []
        while size:
            try:
                piece = self.socket.recv(min(size, 1 << 20))
            except OSError:  # reset by a process that was killed, or closed by us
                return None
            if not piece:
                return None
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


class Child(Channel):
    """Our end of a child process."""

    def __init__(
        self,
        module: str,
        subject: str,
        *,
        within: Sequence[str] = (),
        log: Path | None = None,
        packages: Sequence[str] = (),
        keep_open: Sequence[int] = (),
    ) -> None:
        """`module`: its `main` runs there. `subject`: of error messages. `within`: put before its command.

        `log`: for what it writes to standard output and error; None: a file in memory. `packages`: folders where it
        finds other packages. `keep_open`: file descriptors (locks) that it holds.
        """
        self.subject = subject
        # Behind the standard library: where ironbench is installed, other packages lie beside it.
        code = _CODE.format(packages=[_PACKAGES, *packages], module=module)
        # Not held open here: it may lie on a file system that is to be unmounted.
        self._log = log or Path(f"/proc/self/fd/{self._unnamed()}")
        written = self._log.open("ab")  # children of its own write to the file as well
        self._log_start = written.tell()
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        with theirs, written:
            self.process = subprocess.Popen(
                [*within, sys.executable, "-I", "-S", "-c", code],
                stdin=theirs.fileno(),
                stdout=written,
                stderr=written,
                pass_fds=keep_open,
                start_new_session=True,  # the terminal's Ctrl-C is for us to hear and to pass on
                cwd="/",
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, message: Any, data: bytes = b"") -> dict[str, Any]:
        """Its answer; empty when it has ended. Raises the error that it answers with."""
        try:
            self.send(message, data)
            frame = self.receive()
        except OSError:
            frame = None
        answer: dict[str, Any] = {} if frame is None else frame[0]
        raise_refusal(answer)
        return answer

    def alive(self) -> bool:
        return self.process.poll() is None

    def how_it_ended(self) -> tuple[str, str]:
        """In words, with its last line or another hint; both empty while it lives."""
        code = self.process.poll()
        if code is None:
            return "", ""
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if lines := self._tail():
            # A crash is told first and explained by a stack; an exception is told last.
            return how, f"it wrote: {lines[0 if code < 0 else -1].strip()}"
        if code == -signal.SIGKILL:
            return how, "the kernel does this to the largest process when memory runs out (see dmesg)"
        return how, ""

    def _tail(self) -> list[str]:
        try:
            with self._log.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return log.read().decode(errors="replace").strip().splitlines()
        except OSError:  # it went with its folder
            return []

    def _unnamed(self) -> int:
        """A file in memory that lasts as long as this does."""
        file = os.memfd_create("log")
        weakref.finalize(self, os.close, file)
        return file

    def died(self, when: str = "", kind: type[FailureError] = EngineDiedError, patience_s: float = 5.0) -> FailureError:
        """What to raise when it hung up. `when`: what it had not done, e.g. "before the trial was over"."""
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return kind(self.subject, f"it does not answer {when}".strip())
        how, hint = self.how_it_ended()
        return kind(self.subject, f"its process {how} {when}".strip(), hint)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Hangs up and waits for its end, but no longer. May be called twice."""
        self.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def package_folder(package: str, engine: str, hint: str) -> str:
    """Where Python finds an engine's package, without importing it here. InputError: it is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        cause = f"the Python package {package} is not installed"
        raise InputError(written("system.engine", engine), cause, hint)
    return str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0])


def run(module: str) -> None:
    """The child's side of it: an IronbenchError is its last answer; what else is raised stands in the log."""
    faulthandler.enable()
    parent = Channel(socket.socket(fileno=os.dup(0)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # children of its own shall not hold the line
    os.close(nothing)
    try:
        importlib.import_module(module).main(parent)
    except IronbenchError as error:
        answer(parent, refusal(error))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the interpreter's own tidying would take time, and the kernel does it anyway


def answer(parent: Channel, message: Any, data: bytes = b"") -> None:
    """Sends to the parent; ends this process when nobody listens any more."""
    try:
        parent.send(message, data)
    except OSError:
        os._exit(ORPHANED)


def refusal(error: IronbenchError) -> dict[str, Any]:
    """An error as an answer."""
    return {"error": [type(error).__name__, error.subject, error.cause, error.hint, error.sqlstate, error.number]}


def raise_refusal(answer: dict[str, Any]) -> None:
    """Raises the error that an answer is, if it is one."""
    if "error" in answer:
        kind, subject, cause, hint, sqlstate, number = answer["error"]
        raised = getattr(errors, kind)(subject, cause, hint)
        raised.sqlstate, raised.number = sqlstate, number
        raise raised
