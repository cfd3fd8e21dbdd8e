"""A small process between us and a server: it starts the server, and ends it when we do, however we do.

`python -I -S` runs it. It holds the read end of a pipe; end of file means that we are gone, even by SIGKILL. The
parent-death signal would not do: it fires when the thread that started the child ends (prctl(2), PR_SET_PDEATHSIG).

It reads lines (`Order` as JSON first, then `stop`), and writes lines: `{"pid": N}`, `{"ended": status}`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ironbench.process import processes, register

STOP_PATIENCE_S = 300.0
"""How long a server that we stop ourselves may take: its last checkpoint goes to a slow device."""
NO_ROOM = os.strerror(errno.ENOSPC).encode()
RECOVERING = b"all server processes terminated; reinitializing"
READY = b"database system is ready to accept connections"


@dataclass(frozen=True, slots=True)
class Order:
    """What the guard is to run."""

    entry: str
    """Path of the register's entry."""
    command: tuple[str, ...]
    environment: dict[str, str]
    log: str
    """File for the server's standard output and error."""


class Guard:
    """Our end of a guard: a server that ends with us."""

    def __init__(self, order: Order, keep_open: tuple[int, ...] = ()) -> None:
        """Starts guard and server. `keep_open`: file descriptors (locks) to hold while the server lives."""
        code = (
            f"import sys; sys.path.insert(0, {str(_package_parent())!r}); import ironbench.process.guard as g; g.main()"
        )
        with Path(order.log).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=keep_open,
                start_new_session=True,  # Ctrl-C in our terminal is ours alone
                cwd="/",
                text=True,
            )
        self.status: int | None = None
        """Exit status of the server once it ended; negative: the signal that ended it."""
        self._say(json.dumps(asdict(order)))
        first = self._hear(None) or {}
        self.server = processes.identify(first["pid"]) if "pid" in first else None
        self.pid: int | None = first.get("pid")
        if "failed" in first:
            self.failure: str = first["failed"]
        else:
            self.failure = "" if self.pid is not None else f"its guard ended, see {order.log}"

    def ended(self, patience_s: float = 0.0) -> bool:
        """Whether the server has ended; sets `status` where the guard could tell, which may be a moment after the end:
        so long it is waited for."""
        if self.status is None and (message := self._hear(patience_s)):
            self.status = message.get("ended")
        return self.status is not None or self.server is None or not self.server.alive()

    def stop(self) -> None:
        """Ends the server in good order, and the guard."""
        self._say("stop")
        while self._process.poll() is None and (message := self._hear(None)) is not None:
            self.status = message.get("ended", self.status)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return
        # Past Python's buffer, which would try again when it is closed. A guard that has ended is found out later.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), f"{line}\n".encode())

    def _hear(self, timeout_s: float | None) -> dict[str, Any] | None:
        stream = self._process.stdout
        assert stream is not None
        if stream.closed or not select.select([stream], [], [], timeout_s)[0]:
            return None
        line = stream.readline()
        message: dict[str, Any] | None = json.loads(line) if line else None
        return message


def _package_parent() -> Path:
    return Path(__file__).resolve().parents[2]


def main() -> None:
    """The guard process: runs one server until it ends, or until the owner does or says so."""
    order = Order(**json.loads(sys.stdin.readline()))
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    entry = register.read(Path(order.entry))
    try:
        server = _spawn(order)
    except OSError as error:
        _report({"failed": str(error)})
        return
    own = processes.identify(os.getpid())
    if entry is not None:
        entry = register.with_server(entry, processes.identify(server.pid), own)
    _report({"pid": server.pid})
    patience_s = _watch(server, woken, entry)
    if server.poll() is None:
        _end(server, patience_s, Path(order.log))
    _report({"ended": server.returncode})
    # Read again: the owner has noted the server's shared memory since.
    entry = register.read(Path(order.entry))
    if entry is not None:
        register.end(entry, patience_s=1.0)


def _spawn(order: Order) -> subprocess.Popen[bytes]:
    with Path(order.log).open("ab") as log:
        return subprocess.Popen(
            order.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=order.environment,
            cwd="/",
        )


def _watch(server: subprocess.Popen[bytes], woken: int, entry: register.Entry | None) -> float:
    """Waits until there is something to end; how long the server may take then."""
    poller = select.poll()
    poller.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    poller.register(woken, select.POLLIN)
    owner = _owner_death(entry)
    if owner is not None:
        poller.register(owner, select.POLLIN)
    while True:
        for fd, _ in poller.poll():
            if fd == woken:
                numbers = os.read(woken, 64)
                if signal.SIGCHLD not in numbers or len(set(numbers)) > 1:
                    return register.ORPHAN_PATIENCE_S
            elif fd == owner:
                return register.ORPHAN_PATIENCE_S
            else:
                orderly = os.read(fd, 64).startswith(b"stop")
                return STOP_PATIENCE_S if orderly else register.ORPHAN_PATIENCE_S
        if server.poll() is not None:
            return 0.0


def _owner_death(entry: register.Entry | None) -> int | None:
    """A descriptor that becomes readable when the owner dies: a forked copy of it may hold our pipe open longer."""
    if entry is None:
        return None
    try:
        return os.pidfd_open(entry.owner.pid)
    except OSError:
        return None


def _end(server: subprocess.Popen[bytes], patience_s: float, log: Path) -> None:
    for number, wait_s in ((signal.SIGINT, patience_s), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
        said = log.stat().st_size if log.exists() else 0
        server.send_signal(number)
        if _ended(server, wait_s, log, said):
            return


def _ended(server: subprocess.Popen[bytes], wait_s: float, log: Path, said: int) -> bool:
    """Waits for the end, but not for what never comes.

    A last checkpoint that finds no room is tried again without end, and a fast shutdown in the midst of recovery from
    a crash leaves PostgreSQL 18 waiting for I/O workers that nobody ends. `said`: bytes in the log before it was told.
    """
    deadline = time.monotonic() + wait_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            server.wait(min(1.0, left))
            return True
        except subprocess.TimeoutExpired:
            words = log.read_bytes() if log.exists() else b""
            if NO_ROOM in words[said:] or words.rfind(RECOVERING) > words.rfind(READY):
                return False
    return False


def _report(message: dict[str, Any]) -> None:
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except OSError:
        # Nobody listens any more; Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
