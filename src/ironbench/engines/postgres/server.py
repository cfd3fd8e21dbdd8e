"""The life of a server that we start."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench.engines.postgres import settings as server_settings
from ironbench.engines.postgres.cluster import Cluster, environment
from ironbench.engines.postgres.identity import Identity
from ironbench.engines.postgres.installation import Installation, complaint
from ironbench.errors import FailureError
from ironbench.machine import control_groups, copies
from ironbench.process import processes, register, shared_memory
from ironbench.process.guard import Guard, Order
from ironbench.process.processes import ProcessId

_SOCKET_PATH_MOST = 107
"""sun_path of unix(7) less its end."""
_STATUS_PATIENCE_S = 1.0
"""How long the guard may take to tell how the server ended."""
READY_PATIENCE_S = 600.0
"""A server that replays its log after a crash can take this long."""


def raise_file_limit() -> None:
    """As many open files as the machine allows, for us (a connection each) and for the servers we start."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _new_socket_directory() -> str:
    """Path of a directory that does not exist yet: a socket's path holds 107 bytes at most. FailureError."""
    for base in (tempfile.gettempdir(), "/tmp"):
        path = f"{base}/ironbench-{secrets.token_hex(5)}"
        if len(f"{path}/.s.PGSQL.{server_settings.PORT}".encode()) <= _SOCKET_PATH_MOST:
            return path
    raise FailureError(
        "socket directory", "the path of the directory for temporary files is too long", "set TMPDIR=/tmp"
    )


@dataclass(frozen=True, slots=True)
class Running:
    """A server that accepts connections."""

    cluster: Cluster
    socket_directory: str
    guard: Guard
    entry: register.Entry

    @property
    def process(self) -> ProcessId | None:
        return self.guard.server

    def alive(self) -> bool:
        return not self.guard.ended()

    def stop(self) -> None:
        """Shuts it down in good order; what the guard could not do is done here. FailureError. May be called twice."""
        self.guard.stop()
        if not register.end(self.entry_now()):
            raise FailureError(f"server process {self.guard.pid}", "it does not end, not even by SIGKILL")

    def kill(self) -> None:
        """Ends it at once, so that it writes nothing more: PostgreSQL's immediate shutdown."""
        if self.process is not None:
            self.process.signal(signal.SIGQUIT)

    def entry_now(self) -> register.Entry:
        """The register's entry with the server in it."""
        return register.read(register.path_of(self.entry)) or self.entry

    def last_words(self) -> str:
        """How the server ended, where that is known, and what its messages complain of."""
        self.guard.ended(_STATUS_PATIENCE_S)
        status = self.guard.status
        how = f"killed by {signal.Signals(-status).name}" if status is not None and status < 0 else ""
        return ": ".join(filter(None, (how, _complaints(self.cluster.messages))))


@dataclass(frozen=True, slots=True)
class Launch:
    """What a server of ours is started from."""

    cluster: Cluster
    """Prepared."""
    installation: Installation
    identity: Identity
    settings_for: Callable[[str], Mapping[str, str]]
    """Socket directory → settings."""
    lock: int
    """Of the data directory: held as long as the server lives."""
    cpus: tuple[int, ...] | None = None
    limit_bytes: int | None = None
    """On the memory of the server and the page cache of its files."""

    def command(self) -> tuple[str, ...]:
        on_cpus = () if self.cpus is None else ("taskset", "--cpu-list", ",".join(map(str, self.cpus)))
        program = (self.installation.program("postgres"), "-D", str(self.cluster.files))
        return (*on_cpus, *self.identity.prefix, *program)


def start(launch: Launch, remove: tuple[str, ...] = ()) -> Running:
    """Starts a server and waits until it accepts connections. FailureError with the server's reason.

    `remove`: directories that go with it.
    """
    cluster, identity = launch.cluster, launch.identity
    socket_directory = _new_socket_directory()
    _write_settings(cluster, identity, launch.settings_for(socket_directory))
    if cluster.messages.exists():
        cluster.messages.replace(cluster.messages.with_suffix(".log.old"))
    group = None if launch.limit_bytes is None else control_groups.chosen()
    groups = () if group is None else (str(group),)
    entry = running = None
    try:
        with processes.interrupt_held():
            entry = register.new("postgres", str(cluster.place), (socket_directory, *remove), groups)
            Path(socket_directory).mkdir(mode=0o700)
            identity.give(Path(socket_directory))
        command = (*_within(group, launch.limit_bytes, cluster), *launch.command())
        order = Order(str(register.path_of(entry)), command, environment(), str(cluster.messages))
        with processes.interrupt_held():
            running = Running(cluster, socket_directory, Guard(order, keep_open=(launch.lock,)), entry)
        if running.guard.failure:
            raise FailureError("PostgreSQL", f"the server cannot be started: {running.guard.failure}")
        _wait_until_ready(running)
    except BaseException:
        if running is not None:
            running.stop()
        elif entry is not None:
            register.end(entry)
        raise
    now = running.entry_now()
    register.write(replace(now, shared=shared_memory.of(running.guard.pid or 0, "PostgreSQL.")))
    return running


def own_processes(server: ProcessId | None) -> list[int]:
    """The server and its backends."""
    if server is None or not server.alive():
        return []
    return [server.pid, *processes.children(server.pid)]


def _write_settings(cluster: Cluster, identity: Identity, settings: Mapping[str, str]) -> None:
    written = (cluster.files / "postgresql.conf", cluster.files / "postgresql.auto.conf")
    written[0].write_text(server_settings.as_file(settings))
    written[1].write_text("")  # ALTER SYSTEM of an earlier run must not reach into this one
    identity.give(*written)


def _within(group: Path | None, limit_bytes: int | None, cluster: Cluster) -> tuple[str, ...]:
    """Makes the group; what the server has cached before would not count in it, and so is dropped. FailureError."""
    if group is None or limit_bytes is None:
        return ()
    copies.sync(cluster.files)
    for directory in (cluster.files, Path(os.path.realpath(cluster.files / "pg_wal"))):
        copies.evict(directory)
    control_groups.make(group, limit_bytes)
    return control_groups.entering(group)


def _wait_until_ready(running: Running) -> None:
    """Line 8 of postmaster.pid says `ready` when connections are accepted, as pg_ctl reads it."""
    deadline = time.monotonic() + READY_PATIENCE_S
    pid_file = running.cluster.files / "postmaster.pid"
    while not _says_ready(pid_file, running.guard.pid):
        if not running.alive():
            raise FailureError(
                f"PostgreSQL in {running.cluster.place}",
                f"the server ended while starting: {running.last_words()}",
                f"its messages: {running.cluster.messages}",
            )
        if time.monotonic() > deadline:
            raise FailureError(
                f"PostgreSQL in {running.cluster.place}",
                f"the server was not ready after {READY_PATIENCE_S:.0f} s: {running.last_words()}",
            )
        time.sleep(0.01)


def _says_ready(pid_file: Path, pid: int | None) -> bool:
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"


def _complaints(messages: Path) -> str:
    """What the end of the server's messages complains of."""
    try:
        with messages.open("rb") as file:
            file.seek(max(0, messages.stat().st_size - 16384), os.SEEK_SET)
            lines = file.read().decode(errors="replace").splitlines()
            # What every backend says when its server was killed explains nothing.
            return complaint("\n".join(line for line in lines if "unexpected postmaster exit" not in line))
    except OSError:
        return "it left no messages"
