"""The guard: a small process between ironbench and a server. The guard starts the server, and stops it when ironbench
ends for any reason.

The guard is a child process (`ironbench.host.child`). The first message to the guard is a `GuardOrder`. The guard
answers with the server's `pid`, or with `failed`. The message `stop` stops the server. The guard's last message is
`ended` with the server's exit status.
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
"""Seconds that a server has to shut down when ironbench stops it. The server's last checkpoint may go to a slow
device."""
_MESSAGES_BYTES = 4 << 20
NO_ROOM = os.strerror(errno.ENOSPC).encode()
RECOVERING = b"all server processes terminated; reinitializing"
READY = b"database system is ready to accept connections"


@dataclass(frozen=True, slots=True)
class GuardOrder:
    """Message that tells a guard which server to run."""

    entry: str
    """Path of the server's entry in the register."""
    command: tuple[str, ...]
    environment: dict[str, str]
    log: str
    """File for the server's standard output and error."""


class ServerGuard:
    """The guard as seen by ironbench: a server that stops when this process ends."""

    def __init__(self, order: GuardOrder, keep_open: tuple[int, ...] = ()) -> None:
        """Starts guard and server. `keep_open`: file descriptors (locks) that stay open while the server runs."""
        self.child = Child(__name__, "guard", log=Path(order.log), keep_open=keep_open)
        self.status: int | None = None
        """Exit status of the server after it has ended. A negative status is the number of the signal that ended it."""
        first = self.child.ask(asdict(order))
        self.server = processes.identify(first["pid"]) if "pid" in first else None
        self.pid: int | None = first.get("pid")
        if "failed" in first:
            self.failure: str = first["failed"]
        else:
            self.failure = (
                "" if self.pid is not None else f"the supervisor process of the server ended; see {order.log}"
            )

    def ended(self, patience_s: float = 0.0) -> bool:
        """Returns whether the server has ended, and sets `status`. Waits up to `patience_s` for the exit status,
        because the guard may report it shortly after the end."""
        if self.status is None and self.child.waiting(patience_s):
            self._hear()
        return self.status is not None or self.server is None or not self.server.alive()

    def stop(self) -> None:
        """Shuts down the server, and then the guard."""
        self.child.tell("stop")
        while self.status is None and self._hear():
            pass
        self.child.stop(STOP_PATIENCE_S)

    def _hear(self) -> bool:
        """Receives the guard's next message. Returns False if the guard closed the connection."""
        frame = self.child.receive()
        if frame is not None:
            self.status = frame[0].get("ended", self.status)
        return frame is not None


def main(parent: Channel) -> None:
    """Entry point of the guard. Runs one server until the server ends, the owner dies, or the owner asks the guard to
    stop it."""
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
        entry = register.read(Path(order.entry)) or entry  # may contain new control groups
        freezer.thaw(() if entry is None else entry.groups, processes.identify(server.pid))
        _end(server, patience_s, Path(order.log), signal.SIGINT if entry is None else entry.stop)
    parent.tell({"ended": server.returncode})
    # The entry is read again, because the owner adds the server's shared memory to it while the server runs.
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
    """Waits until the server has ended or must be stopped. Returns how many seconds it has to shut down."""
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
    """Returns a descriptor that becomes readable when the owner dies. The socket is not enough, because a forked copy
    of the owner may keep it open longer."""
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
    """Waits until the server ends, but no longer than `wait_s`. Returns early if the log shows that the server cannot
    end.

    There are two such cases. If the disk is full, PostgreSQL repeats its last checkpoint endlessly. If PostgreSQL 18 is
    shut down during crash recovery, it waits for I/O workers that are never stopped. `log_bytes`: size of the log
    before the server was told to stop.
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
    """Returns the end of the log and its offset. The whole log is not read, because a server that logs every statement
    writes gigabytes."""
    try:
        with log.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - _MESSAGES_BYTES)
            file.seek(start)
            return file.read(), start
    except OSError:
        return b"", 0
