"""Life cycle of a server that ironbench starts. All engines share this module. The life cycle covers socket, register,
guard, readiness and shutdown."""

from __future__ import annotations

import os
import resource
import secrets
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench.engines.identity import Identity
from ironbench.errors import FailureError
from ironbench.host import control_groups, copies, processes, register
from ironbench.host.freezer import Freezer
from ironbench.host.processes import ProcessId
from ironbench.host.server_guard import GuardOrder, ServerGuard

_SOCKET_PATH_MOST = 107
"""Maximum length of sun_path (unix(7)) without its terminator."""
_STATUS_PATIENCE_S = 1.0
"""Seconds that the guard has to report how the server ended."""
_MESSAGES_BYTES = 16384
"""Number of bytes at the end of a server's log that are searched for errors."""
READY_PATIENCE_S = 600.0
"""Seconds that a server has to start. Crash recovery can take this long."""


def raise_file_limit() -> None:
    """Raises the limit on open files to the maximum. The limit applies to this process, which has one connection per
    client, and to the servers that it starts."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class ServerProgram:
    """Properties of a server program that are the same for all servers of an engine."""

    engine: str
    title: str
    """Official spelling of the engine's name."""
    socket: str
    """Name of the server's socket in the socket's directory."""
    complaint: Callable[[str], str]
    """Extracts the error from the server's log."""
    stop: int
    """Signal for an orderly shutdown."""
    kill: int
    """Signal after which the server writes nothing more."""
    shared: str = ""
    """Prefix of the names of shared memory segments that remain when the server is killed."""
    shared_mark: int = 0
    """First word (magic number) of the server's control segment. The control segment lists the other shared memory
    segments of the server (`process.shared_memory`)."""


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """Everything needed to start one server."""

    make: ServerProgram
    place: Path
    """Data directory, in which all files are prepared."""
    messages: Path
    """File for the server's log."""
    command: tuple[str, ...]
    environment: dict[str, str]
    identity: Identity
    configure: Callable[[str], None]
    """Writes the settings. The argument is the directory of the socket."""
    ready: Callable[[int | None], bool]
    """Returns whether the server with this process id accepts connections."""
    lock: int
    """File descriptor that locks the data directory. The file descriptor stays open while the server runs."""
    cpus: tuple[int, ...] | None = None
    limit_bytes: int | None = None
    """Memory limit for the server and the page cache of its files."""
    cached: tuple[Path, ...] = ()
    """Directories whose files are evicted from the page cache before a memory limit is set. Cached files would
    otherwise not be charged to the server."""

    def words(self) -> tuple[str, ...]:
        on_cpus = () if self.cpus is None else ("taskset", "--cpu-list", ",".join(map(str, self.cpus)))
        return (*on_cpus, *self.identity.prefix, *self.command)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts connections."""

    launch: ServerLaunch
    socket_directory: str
    guard: ServerGuard
    entry: register.RegisterEntry

    @property
    def process(self) -> ProcessId | None:
        return self.guard.server

    def alive(self) -> bool:
        return not self.guard.ended()

    def ended(self, patience_s: float) -> bool:
        """Returns whether the server has ended, or ends within `patience_s` seconds."""
        return self.guard.ended(patience_s)

    def stop(self) -> None:
        """Shuts the server down. Kills processes that the guard could not end. A second call has no effect. Raises
        FailureError."""
        self.guard.stop()
        if not register.end(self.entry_now()):
            raise FailureError(f"server process {self.guard.pid}", "does not exit after SIGKILL")

    def freezer(self) -> Freezer:
        """Returns a freezer, which pauses the server's processes. The freezer uses a control group. The control group
        is registered before it is created, and it is removed with the server. If no control group can be used, the
        freezer uses signals. Raises FailureError."""
        entry = self.entry_now()
        assert self.process is not None
        group = control_groups.freezing(entry.groups)
        found = Freezer(self.process, group)
        try:
            if group is not None and str(group) not in entry.groups:
                register.write(replace(entry, groups=(*entry.groups, str(group))))
                group.mkdir()
            found.enter()
        # ironbench may lack permission below its own group, the group may be threaded (cgroups(7)), or it was removed
        except OSError:
            return Freezer(self.process, None)
        return found

    def kill(self) -> None:
        """Ends the server at once, so that it writes nothing more."""
        if self.process is not None:
            self.process.signal(self.launch.make.kill)

    def entry_now(self) -> register.RegisterEntry:
        """Returns the register's entry, including the server's process."""
        return register.read(register.path_of(self.entry)) or self.entry

    def last_words(self) -> str:
        """Describes how the server ended, if known, with the errors in its log."""
        self.guard.ended(_STATUS_PATIENCE_S)
        status = self.guard.status
        how = f"killed by {signal.Signals(-status).name}" if status is not None and status < 0 else ""
        return ": ".join(filter(None, (how, _complaints(self.launch))))


def start(launch: ServerLaunch, remove: tuple[str, ...] = ()) -> RunningServer:
    """Starts a server and waits until it accepts connections. Raises FailureError with the reason that the server
    gives.

    `remove`: directories to remove after the server has ended.
    """
    make, identity = launch.make, launch.identity
    socket_directory = _new_socket_directory(make.socket)
    launch.configure(socket_directory)
    if launch.messages.exists():
        launch.messages.replace(launch.messages.with_suffix(".log.old"))
    group = None if launch.limit_bytes is None else control_groups.chosen()
    groups = () if group is None else (str(group),)
    entry = running = None
    try:
        with processes.interrupt_held():
            directories = (socket_directory, *remove)
            entry = register.new(
                make.engine, str(launch.place), directories, groups, make.stop, make.shared, make.shared_mark
            )
            Path(socket_directory).mkdir(mode=0o700)
            identity.give(Path(socket_directory))
        command = (*_within(group, launch), *launch.words())
        order = GuardOrder(str(register.path_of(entry)), command, launch.environment, str(launch.messages))
        with processes.interrupt_held():
            running = RunningServer(launch, socket_directory, ServerGuard(order, keep_open=(launch.lock,)), entry)
        if running.guard.failure:
            raise FailureError(make.title, f"cannot start the server: {running.guard.failure}")
        _wait_until_ready(running)
    except BaseException:
        if running is not None:
            running.stop()
        elif entry is not None:
            register.end(entry)
        raise
    register.with_shared_memory(running.entry_now())
    return running


def own_processes(server: ProcessId | None) -> list[int]:
    """Returns the process ids of the server and its children."""
    if server is None or not server.alive():
        return []
    return [server.pid, *processes.children(server.pid)]


def _new_socket_directory(socket: str) -> str:
    """Returns a new path that is short enough for a socket (107 bytes). Raises FailureError."""
    for base in (tempfile.gettempdir(), "/tmp"):
        path = f"{base}/ironbench-{secrets.token_hex(5)}"
        if len(f"{path}/{socket}".encode()) <= _SOCKET_PATH_MOST:
            return path
    raise FailureError(
        "socket directory", "the path of the directory for temporary files is too long", "set TMPDIR=/tmp"
    )


def _within(group: Path | None, launch: ServerLaunch) -> tuple[str, ...]:
    """Creates the control group, and returns the command prefix that enters it. Before that, evicts files from the page
    cache, because cached pages would not be charged to the group. Raises FailureError."""
    if group is None or launch.limit_bytes is None:
        return ()
    for directory in launch.cached:
        copies.sync(directory)
        copies.evict(directory)
    control_groups.make(group, launch.limit_bytes)
    return control_groups.entering(group)


def _wait_until_ready(running: RunningServer) -> None:
    launch, deadline = running.launch, time.monotonic() + READY_PATIENCE_S
    subject = f"{launch.make.title} in {launch.place}"
    while not launch.ready(running.guard.pid):
        # Repeated from the start, because the segments already exist during crash recovery.
        register.with_shared_memory(running.entry_now())
        if not running.alive():
            cause = f"the server exited during startup: {running.last_words()}"
            raise FailureError(subject, cause, f"its messages: {launch.messages}")
        if time.monotonic() > deadline:
            raise FailureError(
                subject, f"the server was not ready after {READY_PATIENCE_S:.0f} s: {running.last_words()}"
            )
        time.sleep(0.01)


def _complaints(launch: ServerLaunch) -> str:
    """Returns the errors at the end of the server's log."""
    try:
        with launch.messages.open("rb") as file:
            file.seek(max(0, launch.messages.stat().st_size - _MESSAGES_BYTES), os.SEEK_SET)
            return launch.make.complaint(file.read().decode(errors="replace"))
    except OSError:
        return "the server wrote no messages"
