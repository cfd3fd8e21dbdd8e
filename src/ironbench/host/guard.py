"""A small process between us and a server: it starts the server, and ends it when we do, however we do.

A child process (`ironbench.host.child`). The first message is a `GuardOrder`, answered by the server's `pid` or
by `failed`; `stop` ends the server. Its last message is `ended` with the server's exit status.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ironbench.host import freezer, processes, register
from ironbench.host.child import Channel, Child

STOP_PATIENCE_S = 300.0
"""How long a server that we stop ourselves may take: its last checkpoint goes to a slow device."""
_MESSAGES_BYTES = 4 << 20
NO_ROOM = os.strerror(errno.ENOSPC).encode()
RECOVERING = b"all server processes terminated; reinitializing"
READY = b"database system is ready to accept connections"


@dataclass(frozen=True, slots=True)
class GuardOrder:
    """What the guard is to run."""

    entry: str
    """Path of the register's entry."""
    command: tuple[str, ...]
    environment: dict[str, str]
    log: str
    """File for the server's standard output and error."""


class ServerGuard:
    """Our end of a guard: a server that ends with us."""

    def __init__(self, order: GuardOrder, keep_open: tuple[int, ...] = ()) -> None:
        """Starts guard and server. `keep_open`: file descriptors (locks) to hold while the server lives."""
        self.child = Child(__name__, "guard", log=Path(order.log), keep_open=keep_open)
        self.status: int | None = None
        """Exit status of the server once it ended; negative: the signal that ended it."""
        first = self.child.ask(asdict(order))
        self.server = processes.identify(first["pid"]) if "pid" in first else None
        self.pid: int | None = first.get("pid")
        if "failed" in first:
            self.failure: str = first["failed"]
        else:
            self.failure = "" if self.pid is not None else f"its guard ended, see {order.log}"

    def ended(self, patience_s: float = 0.0) -> bool:
        """Whether the server has ended; sets `status` where the guard could tell, which may be a moment after the end:
        so long it is waited for."""
        if self.status is None and self.child.waiting(patience_s):
            self._hear()
        return self.status is not None or self.server is None or not self.server.alive()

    def stop(self) -> None:
        """Ends the server in good order, and the guard."""
        self.child.tell("stop")
        while self.status is None and self._hear():
            pass
        self.child.stop(STOP_PATIENCE_S)

    def _hear(self) -> bool:
        """Takes its next message; False when it has hung up."""
        frame = self.child.receive()
        if frame is not None:
            self.status = frame[0].get("ended", self.status)
        return frame is not None


def main(parent: Channel) -> None:
    """The guard process: runs one server until it ends, or until the owner does or says so."""
    frame = parent.receive()
    if frame is None:
        return
    order = GuardOrder(**frame[0])
    woken = processes.woken_by(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    entry = register.read(Path(order.entry))
    try:
        server = _spawn(order)
    except OSError as error:
        parent.tell({"failed": str(error)})
        return
    own = processes.identify(os.getpid())
    if entry is not None:
        entry = register.with_server(entry, processes.identify(server.pid), own)
    parent.tell({"pid": server.pid})
    patience_s = _watch(parent, server, woken, entry)
    if server.poll() is None:
        entry = register.read(Path(order.entry)) or entry  # the owner has noted control groups since
        freezer.thaw(() if entry is None else entry.groups, processes.identify(server.pid))
        _end(server, patience_s, Path(order.log), signal.SIGINT if entry is None else entry.stop)
    parent.tell({"ended": server.returncode})
    # Read again: the owner has noted the server's shared memory since, too.
    entry = register.read(Path(order.entry))
    if entry is not None:
        register.end(entry, patience_s=1.0)


def _spawn(order: GuardOrder) -> subprocess.Popen[bytes]:
    with Path(order.log).open("ab") as log:
        return subprocess.Popen(
            order.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=order.environment,
            cwd="/",
        )


def _watch(parent: Channel, server: subprocess.Popen[bytes], woken: int, entry: register.RegisterEntry | None) -> float:
    """Waits until there is something to end; how long the server may take then."""
    poller = select.poll()
    poller.register(parent.socket, select.POLLIN | select.POLLHUP)
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
                return register.ORPHAN_PATIENCE_S if parent.receive() is None else STOP_PATIENCE_S
        if server.poll() is not None:
            return 0.0


def _owner_death(entry: register.RegisterEntry | None) -> int | None:
    """A descriptor that becomes readable when the owner dies: a forked copy of it may hold our pipe open longer."""
    if entry is None:
        return None
    try:
        return os.pidfd_open(entry.owner.pid)
    except OSError:
        return None


def _end(server: subprocess.Popen[bytes], patience_s: float, log: Path, stop: int = signal.SIGINT) -> None:
    for number, wait_s in ((stop, patience_s), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
        log_bytes = log.stat().st_size if log.exists() else 0
        server.send_signal(number)
        if _ended(server, wait_s, log, log_bytes):
            return


def _ended(server: subprocess.Popen[bytes], wait_s: float, log: Path, log_bytes: int) -> bool:
    """Waits for the end, but not for what never comes.

    A last checkpoint that finds no room is tried again without end, and a fast shutdown in the midst of recovery from
    a crash leaves PostgreSQL 18 waiting for I/O workers that nobody ends. `log_bytes`: of the log before the stop.
    """
    deadline = time.monotonic() + wait_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            server.wait(min(1.0, left))
            return True
        except subprocess.TimeoutExpired:
            words, start = _end_of(log)
            if NO_ROOM in words[max(0, log_bytes - start) :] or words.rfind(RECOVERING) > words.rfind(READY):
                return False
    return False


def _end_of(log: Path) -> tuple[bytes, int]:
    """The last messages and where they begin: a server that logs every statement writes gigabytes."""
    try:
        with log.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - _MESSAGES_BYTES)
            file.seek(start)
            return file.read(), start
    except OSError:
        return b"", 0
