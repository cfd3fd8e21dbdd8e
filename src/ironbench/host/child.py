"""Child processes of ironbench: how ironbench starts them, communicates with them, and learns how they ended.

A child runs `main(parent)` of one module under `python -I -S`, which starts fast and ignores the user's packages and
environment variables. The child's standard input is one end of a socket pair. Both processes send frames over it. A
frame consists of a message (JSON) and of bytes.

When one process ends, the other one reads the end of the file. The child then exits. The parent-death signal is not
suitable for this, because it is already sent when the *thread* that started the child ends (prctl(2)).

Parent and child both import this module, so it uses only the standard library.
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
"""Exit code of a child that ends because its parent has died."""
STOP_S = 20.0
"""Seconds that a child has to end cleanly after it was asked to end."""
_LENGTHS = struct.Struct("<QQ")
"""Format of a frame's header: lengths of the message and of the bytes that follow the message."""
_PACKAGES = str(Path(errors.__file__).resolve().parents[1])
_TAIL_BYTES = 16384
_CODE = "import sys; sys.path.extend({packages!r}); from ironbench.host.child import run; run({module!r})"


class Channel:
    """One end of a socket pair. Any thread may send; only one thread may receive."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._sending = threading.Lock()

    def send(self, message: Any, data: bytes = b"") -> None:
        """Sends a frame. Raises OSError if the other process has ended."""
        text = json.dumps(message).encode()
        with self._sending:
            self.socket.sendall(_LENGTHS.pack(len(text), len(data)) + text + data)

    def tell(self, message: Any, data: bytes = b"") -> None:
        """Sends a frame like `send`, but ignores the error if the other process has ended. The caller notices this when
        no answer arrives."""
        with contextlib.suppress(OSError):
            self.send(message, data)

    def receive(self) -> tuple[Any, bytes] | None:
        """Returns the next frame. Returns None if the other process has ended, even if it sent a part of a frame."""
        head = self._exactly(_LENGTHS.size)
        if head is None:
            return None
        text_bytes, data_bytes = _LENGTHS.unpack(head)
        text, data = self._exactly(text_bytes), self._exactly(data_bytes)
        return None if text is None or data is None else (json.loads(text), data)

    def waiting(self, timeout_s: float | None) -> bool:
        """Returns whether there is something to receive, including the end of file. Waits up to `timeout_s`."""
        if self.socket.fileno() < 0:
            return False
        # `poll` is used, because select(2) accepts no descriptor above 1023. A process with many clients has thousands
        # of descriptors.
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        return bool(ready.poll(None if timeout_s is None else 1000 * timeout_s))

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes | None:
        pieces = []
        while size:
            try:
                piece = self.socket.recv(min(size, 1 << 20))
            # The other process was killed, which resets the connection, or this process has closed the connection.
            except OSError:
                return None
            if not piece:
                return None
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


class Child(Channel):
    """The parent's end of a child process."""

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
        """Starts the child. `module`: the child runs the module's `main`. `subject`: subject of error messages.
        `within`: a command that runs the child's command, such as a program that enters a control group.

        `log`: file for standard output and error. If it is None, a file in memory is used. `packages`: folders in which
        the child finds additional packages. `keep_open`: file descriptors that the child inherits, such as locks.
        """
        self.subject = subject
        # The folders are added at the end of the module path. They may contain packages that must not replace modules
        # of the standard library.
        code = _CODE.format(packages=[_PACKAGES, *packages], module=module)
        # This process does not keep the log open. Otherwise, the file system of the log could not be unmounted.
        self._log = log or Path(f"/proc/self/fd/{self._unnamed()}")
        written = self._log.open("ab")  # append: children of the child write to the file too
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
                # Ctrl-C in the terminal does not reach the child. This process tells the child to stop.
                start_new_session=True,
                cwd="/",
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, message: Any, data: bytes = b"") -> dict[str, Any]:
        """Sends a request and returns the answer. Returns {} if the child has ended. Raises the error if the answer is
        one."""
        try:
            self.send(message, data)
            frame = self.receive()
        except OSError:
            frame = None
        answer: dict[str, Any] = {} if frame is None else frame[0]
        raise_error(answer)
        return answer

    def alive(self) -> bool:
        return self.process.poll() is None

    def how_it_ended(self) -> tuple[str, str]:
        """Describes how the child ended, with the last line of its output or another hint. Returns ("", "") while the
        child runs."""
        code = self.process.poll()
        if code is None:
            return "", ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        if lines := self._tail():
            # After a crash, the first line is the cause and a stack trace follows. After an exception, the last line is
            # the message.
            return how, f"last output: {lines[0 if code < 0 else -1].strip()}"
        if code == -signal.SIGKILL:
            return how, "the kernel kills the largest process when memory runs out (see dmesg)"
        return how, ""

    def _tail(self) -> list[str]:
        try:
            with self._log.open("rb") as log:
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
                return log.read().decode(errors="replace").strip().splitlines()
        except OSError:  # the log has been deleted
            return []

    def _unnamed(self) -> int:
        """Returns the descriptor of a new file in memory. The file exists as long as this object."""
        file = os.memfd_create("log")
        weakref.finalize(self, os.close, file)
        return file

    def died(self, when: str = "", kind: type[FailureError] = EngineDiedError, patience_s: float = 5.0) -> FailureError:
        """Returns the error for a child that closed its connection. `when`: what the child had not finished, such as
        "before the trial was over"."""
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return kind(self.subject, f"does not answer {when}".strip())
        how, hint = self.how_it_ended()
        return kind(self.subject, f"the process {how} {when}".strip(), hint)

    def stop(self, patience_s: float = STOP_S) -> None:
        """Closes the connection and waits for the child to end. Kills the child after `patience_s`. A second call has
        no effect."""
        self.close()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def package_folder(package: str, engine: str, hint: str) -> str:
    """Returns the folder in which Python finds an engine's package, without importing the package. Raises InputError if
    the package is not installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        cause = f"the Python package {package} is not installed"
        raise InputError(written("system.engine", engine), cause, hint)
    return str(Path(spec.origin).parents[1 if spec.submodule_search_locations else 0])


def run(module: str) -> None:
    """Entry point of the child. An IronbenchError is sent as the child's last answer; other exceptions are written to
    the log."""
    faulthandler.enable()
    parent = Channel(socket.socket(fileno=os.dup(0)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # children of the child must not inherit the connection
    os.close(nothing)
    try:
        importlib.import_module(module).main(parent)
    except IronbenchError as error:
        answer(parent, encode_error(error))
    sys.stdout.flush()
    sys.stderr.flush()
    # This skips the interpreter's cleanup. The cleanup takes time and is not needed, because the kernel frees all
    # resources.
    os._exit(0)


def answer(parent: Channel, message: Any, data: bytes = b"") -> None:
    """Sends an answer to the parent. Ends this process if the parent has ended."""
    try:
        parent.send(message, data)
    except OSError:
        os._exit(ORPHANED)


def encode_error(error: IronbenchError) -> dict[str, Any]:
    """Converts an error to an answer."""
    return {"error": [type(error).__name__, error.subject, error.cause, error.hint, error.sqlstate, error.number]}


def raise_error(answer: dict[str, Any]) -> None:
    """Raises the error that an answer contains, if any."""
    if "error" in answer:
        kind, subject, cause, hint, sqlstate, number = answer["error"]
        raised = getattr(errors, kind)(subject, cause, hint)
        raised.sqlstate, raised.number = sqlstate, number
        raise raised
