"""The life of a server that we start, whatever its make: socket, register, guard, readiness, end."""

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
from ironbench.host.guard import GuardOrder, ServerGuard
from ironbench.host.processes import ProcessId

_SOCKET_PATH_MOST = 107
"""sun_path of unix(7) less its end."""
_STATUS_PATIENCE_S = 1.0
"""How long the guard may take to tell how the server ended."""
_MESSAGES_BYTES = 16384
"""Of the end of a server's messages, which are looked through for complaints."""
READY_PATIENCE_S = 600.0
"""A server that replays its log after a crash can take this long."""


def raise_file_limit() -> None:
    """As many open files as the machine allows, for us (a connection each) and for the servers we start."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@dataclass(frozen=True, slots=True)
class Make:
    """What the life of a server depends on besides its files."""

    engine: str
    title: str
    """As its makers write its name."""
    socket: str
    """Name of the socket in its directory."""
    complaint: Callable[[str], str]
    """What the server's messages complain of."""
    stop: int
    """Signal that ends it in good order."""
    kill: int
    """Signal after which it writes nothing more."""
    shared: str = ""
    """Prefix of shared memory that it leaves behind when it is killed."""
    shared_mark: int = 0
    """First word of the segment that lists those of all its processes (`process.shared_memory`)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a server of ours is started from."""

    make: Make
    place: Path
    """Its directory, with everything prepared."""
    messages: Path
    """File for what it says."""
    command: tuple[str, ...]
    environment: dict[str, str]
    identity: Identity
    configure: Callable[[str], None]
    """Writes its settings, given the socket's directory."""
    ready: Callable[[int | None], bool]
    """Whether the server of that process id accepts connections."""
    lock: int
    """Of the data directory: held as long as the server lives."""
    cpus: tuple[int, ...] | None = None
    limit_bytes: int | None = None
    """On the memory of the server and the page cache of its files."""
    cached: tuple[Path, ...] = ()
    """Directories whose files are dropped from the page cache before a limit, in which they would not count."""

    def words(self) -> tuple[str, ...]:
        on_cpus = () if self.cpus is None else ("taskset", "--cpu-list", ",".join(map(str, self.cpus)))
        return (*on_cpus, *self.identity.prefix, *self.command)


@dataclass(frozen=True, slots=True)
class Running:
    """A server that accepts connections."""

    launch: Launch
    socket_directory: str
    guard: ServerGuard
    entry: register.RegisterEntry

    @property
    def process(self) -> ProcessId | None:
        return self.guard.server

    def alive(self) -> bool:
        return not self.guard.ended()

    def ended(self, patience_s: float) -> bool:
        """Whether it has ended, or ends within that time."""
        return self.guard.ended(patience_s)

    def stop(self) -> None:
        """Shuts it down in good order; what the guard could not do is done here. FailureError. May be called twice."""
        self.guard.stop()
        if not register.end(self.entry_now()):
            raise FailureError(f"server process {self.guard.pid}", "it does not end, not even by SIGKILL")

    def freezer(self) -> Freezer:
        """By which it can be frozen. Its control group is noted before it is made, and goes with the server; where it
        cannot be made or entered, signals do. FailureError."""
        entry = self.entry_now()
        assert self.process is not None
        group = control_groups.freezing(entry.groups)
        found = Freezer(self.process, group)
        try:
            if group is not None and str(group) not in entry.groups:
                register.write(replace(entry, groups=(*entry.groups, str(group))))
                group.mkdir()
            found.enter()
        except OSError:  # rights that end below our own group, a threaded group (cgroups(7)), or it was removed
            return Freezer(self.process, None)
        return found

    def kill(self) -> None:
        """Ends it at once, so that it writes nothing more."""
        if self.process is not None:
            self.process.signal(self.launch.make.kill)

    def entry_now(self) -> register.RegisterEntry:
        """The register's entry with the server in it."""
        return register.read(register.path_of(self.entry)) or self.entry

    def last_words(self) -> str:
        """How the server ended, where that is known, and what its messages complain of."""
        self.guard.ended(_STATUS_PATIENCE_S)
        status = self.guard.status
        how = f"killed by {signal.Signals(-status).name}" if status is not None and status < 0 else ""
        return ": ".join(filter(None, (how, _complaints(self.launch))))


def start(launch: Launch, remove: tuple[str, ...] = ()) -> Running:
    """Starts a server and waits until it accepts connections. FailureError with the server's reason.

    `remove`: directories that go with it.
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
            running = Running(launch, socket_directory, ServerGuard(order, keep_open=(launch.lock,)), entry)
        if running.guard.failure:
            raise FailureError(make.title, f"the server cannot be started: {running.guard.failure}")
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
    """The server and its children."""
    if server is None or not server.alive():
        return []
    return [server.pid, *processes.children(server.pid)]


def _new_socket_directory(socket: str) -> str:
    """Path of a directory that does not exist yet: a socket's path holds 107 bytes at most. FailureError."""
    for base in (tempfile.gettempdir(), "/tmp"):
        path = f"{base}/ironbench-{secrets.token_hex(5)}"
        if len(f"{path}/{socket}".encode()) <= _SOCKET_PATH_MOST:
            return path
    raise FailureError(
        "socket directory", "the path of the directory for temporary files is too long", "set TMPDIR=/tmp"
    )


def _within(group: Path | None, launch: Launch) -> tuple[str, ...]:
    """Makes the group; what the server has cached before would not count in it, and so is dropped. FailureError."""
    if group is None or launch.limit_bytes is None:
        return ()
    for directory in launch.cached:
        copies.sync(directory)
        copies.evict(directory)
    control_groups.make(group, launch.limit_bytes)
    return control_groups.entering(group)


def _wait_until_ready(running: Running) -> None:
    launch, deadline = running.launch, time.monotonic() + READY_PATIENCE_S
    subject = f"{launch.make.title} in {launch.place}"
    while not launch.ready(running.guard.pid):
        register.with_shared_memory(running.entry_now())  # it exists long before a recovery has ended
        if not running.alive():
            cause = f"the server ended while starting: {running.last_words()}"
            raise FailureError(subject, cause, f"its messages: {launch.messages}")
        if time.monotonic() > deadline:
            raise FailureError(
                subject, f"the server was not ready after {READY_PATIENCE_S:.0f} s: {running.last_words()}"
            )
        time.sleep(0.01)


def _complaints(launch: Launch) -> str:
    """What the end of the server's messages complains of."""
    try:
        with launch.messages.open("rb") as file:
            file.seek(max(0, launch.messages.stat().st_size - _MESSAGES_BYTES), os.SEEK_SET)
            return launch.make.complaint(file.read().decode(errors="replace"))
    except OSError:
        return "it left no messages"
