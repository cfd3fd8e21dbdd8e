"""A session with a running server, which ironbench started or which already exists. All engines share this module."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ironbench import units
from ironbench.engines.administration import DENIED
from ironbench.engines.existing_server import checked_answers
from ironbench.engines.server import READY_PATIENCE_S, RunningServer, own_processes
from ironbench.engines.statement_timeouts import Limited
from ironbench.errors import FailureError, IronbenchError, written
from ironbench.host.freezer import Freezer
from ironbench.host.processes import ProcessId
from ironbench.host.relay import LatencyRelay
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row, WorkConnection

_T = TypeVar("_T")
_A = TypeVar("_A")
_C = TypeVar("_C", bound="TimeLimitedConnection")
_S = TypeVar("_S", bound="ServerSession[Any, Any]")
_AGAIN_S = 0.1
DOWN_PATIENCE_S = 120.0
"""Maximum time in seconds without a listening server after a restart command has succeeded. Restart commands wait until
the service is up (pg_ctl, systemd's notify). A server in crash recovery answers with an error, so this limit does not
apply to it. The limit for a server in crash recovery is `READY_PATIENCE_S`."""
_SILENCE_S = 20.0
_OWN_SILENCE_S = 120.0
"""Seconds of silence after which ironbench gives up a server that it started. The limit is longer than for an existing
server. Emulated devices may be slow by design, and ironbench notices at once if its own server dies."""
_ANSWER_S = 30.0
"""Time limit of a query about the server itself, such as one for its settings or counters. Such a query normally takes
milliseconds."""
_DYING_S = 1.0
"""How many seconds to wait for the end of a server after it has closed its connections. A server that dies closes its
connections before its process ends."""


@dataclass(frozen=True, slots=True)
class OwnedServer:
    """Everything that a session needs to know about a server that ironbench started."""

    running: RunningServer
    again: Callable[[], RunningServer]
    """Starts the stopped server again."""
    directories: dict[str, str]
    facts: Mapping[str, Any]
    """Facts about the installation and the identity."""
    release: Callable[[], None]
    """Releases the data directory."""
    claim_again: Callable[[], OwnedServer]
    """Claims the data directory again after `release`, and starts the server."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """Processes and directories of a server on this machine."""

    server: ProcessId | None = None
    directories: dict[str, str] = field(default_factory=dict)


class TimeLimitedConnection(WorkConnection, Protocol):
    """A connection whose queries have a time limit."""

    def query(self, sql: str, limit_s: float | None = None) -> list[Row]: ...


class ServerSession(Limited, ABC, Generic[_A, _C]):
    """A session with one server. An existing server is never configured and never stopped.

    `_A`: type of the server's address. `_C`: type of a connection.
    """

    engine: str
    title: ClassVar[str]
    broken: ClassVar[tuple[str, ...]]
    """SQLSTATE classes of errors after which the connection may be lost. The class "" stands for no answer at all."""
    alive_query: ClassVar[str] = "SELECT 1"
    """A statement that every running server answers."""

    def __init__(self, address: _A, secrets: Secrets, own: OwnedServer | None = None) -> None:
        """Connects to the server. Raises InputError for a wrong password or name, and FailureError if no server
        answers."""
        self._address = address
        self._secrets = secrets
        self._own = own
        self._lock = threading.Lock()
        self._stopped = False
        self._relay: LatencyRelay | None = None
        self._connection: _C | None = self.connect()
        self._local = LocalServer() if own is not None else self.found()

    @abstractmethod
    def connect(self, as_client: bool = False) -> _C:
        """Opens a separate connection. The caller closes it. `as_client`: whether to connect through the relay that
        adds latency, if there is one."""

    @property
    @abstractmethod
    def on_socket(self) -> bool:
        """Whether the server is reached through a Unix socket."""

    @abstractmethod
    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]: ...

    @abstractmethod
    def known(self) -> dict[str, Any]:
        """Returns facts that the server itself reports."""

    @abstractmethod
    def counters(self) -> dict[str, int]: ...

    @abstractmethod
    def found(self) -> LocalServer:
        """Locates an existing server on this machine. Returns an empty result if the server is elsewhere."""

    @abstractmethod
    def moved(self, socket_directory: str) -> _A:
        """Returns the server's address after a restart."""

    @property
    @abstractmethod
    def role(self) -> str:
        """Name of the session's role."""

    @property
    def silence_s(self) -> float:
        """Number of seconds without data in either direction after which ironbench gives up the server. If the server
        answers a new connection, ironbench continues to wait."""
        return _SILENCE_S if self._own is None else _OWN_SILENCE_S

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql, self._limit_s()))

    def asked(self, read: Callable[[Callable[[str], list[Row]]], _T]) -> _T:
        """Calls `read` with a function that sends short queries. Returns the result of `read`. Raises FailureError as
        `questions` does."""
        with self.questions():
            return read(self.query)

    @contextmanager
    def questions(self) -> Iterator[None]:
        """Limits the time of short queries in the `with` block, such as those for settings and counters. There is no
        limit for a server that ironbench started.

        Raises FailureError if a server answers a query too late or in an unreadable form. The error is raised even if
        the caller has handled it in the block.
        """
        if self._own is not None:
            yield
            return
        with self.limited(_ANSWER_S), checked_answers(True):
            yield

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        return self.connect(as_client=True)

    def of_client(self, connection: dict[str, Any]) -> dict[str, Any]:
        """Returns the `connection` section of a drive plan for clients. The section includes the relay, if there is
        one."""
        return connection if self._relay is None else connection | {"relay": self._relay.address}

    @property
    def relay_counters(self) -> str:
        """File with the counters of the running relay, as in `model.session.DelayedSession`."""
        return "" if self._relay is None else self._relay.counters

    @contextmanager
    def delayed(self, latency_s: float, cpus: Sequence[int]) -> Iterator[None]:
        """Adds round-trip time to connections, as in `model.session.DelayedSession`."""
        relay = self._relay = LatencyRelay(latency_s, self.on_socket, cpus)
        try:
            yield
            if (death := relay.death()) is not None:
                raise death
        except IronbenchError as error:
            # A dead relay explains the error better: clients and the workload only see lost connections.
            if (death := relay.death()) is not None and error is not death:
                raise death from error
            raise
        finally:
            self._relay = None
            relay.stop()

    def facts(self) -> dict[str, Any]:
        known = self.known()
        if self._own is None:
            return known | {"server": "running already; neither configured nor stopped by ironbench"}
        return known | {"server": "started by ironbench"} | dict(self._own.facts)

    def processes(self) -> list[int]:
        if self._own is not None:
            return own_processes(self._own.running.process)
        return own_processes(self._local.server)

    def directories(self) -> dict[str, str]:
        return dict(self._local.directories if self._own is None else self._own.directories)

    def within(self) -> tuple[str, ...]:
        return ()

    def alive(self) -> bool:
        if self._stopped:
            return False
        if self._own is not None and not self._own.running.alive():
            return False
        try:
            self.asked(lambda query: query(self.alive_query))
        except IronbenchError as error:
            # A server that refuses the statement is alive, so this counts as an answer.
            return error.sqlstate[:2] not in self.broken
        return True

    def require_answer(self) -> None:
        """Raises FailureError if the server does not answer, as in `model.session.RemoteSession`."""
        self.query(self.alive_query)

    def last_words(self) -> str:
        """Returns the end of the server's log if ironbench started the server. Returns "" for an existing server."""
        return "" if self._own is None else self._own.running.last_words()

    def restart(self) -> None:
        """Restarts a server that ironbench started. The new server has new process ids and sockets, and the same
        settings and files."""
        if self._own is None:
            raise FailureError(self.title, f"ironbench does not restart existing servers ({written('system.dsn')})")
        with self._lock:
            self._drop()
            self._own.running.stop()
            self._own = replace(self._own, running=self._own.again())
            self._address = self.moved(self._own.running.socket_directory)
            self._connection = self.connect()

    def freezer(self) -> Freezer | None:
        """Returns an object that pauses the server, as in `model.session.PausableSession`."""
        return None if self._own is None else self._own.running.freezer()

    def restarted(self, restart: Callable[[], None]) -> None:
        """Reconnects after a restart from outside ironbench, as in `model.session.RestartableSession`."""
        with self._lock:
            self._drop()
            restart()
            self._connection = self._patiently()
        self._local = self.found()

    def reconnect(self) -> None:
        """Replaces a connection that was lost in a restart of the server. Raises FailureError if no server answers."""
        if not self.alive():
            self.query(self.alive_query)

    def _patiently(self) -> _C:
        """Connects, and retries while the server is down. Raises FailureError if the server does not answer in time."""
        began = time.monotonic()
        while True:
            try:
                return self.connect()
            except FailureError as error:
                patience_s = READY_PATIENCE_S if error.sqlstate else DOWN_PATIENCE_S
                if time.monotonic() > began + patience_s:
                    cause = f"no response within {units.span(patience_s)} after the restart: {error.cause}"
                    hint = f"start the server by hand, and read its log; {written('system.restart')} reported success"
                    raise FailureError(self.title, cause, hint) from None
            time.sleep(_AGAIN_S)

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """Simulates a power cut, as in `model.session.PowerCutSession`. Only for a server that ironbench started."""
        if self._own is None:
            raise FailureError(self.title, f"existing servers ({written('system.dsn')}) cannot be power-cut")
        with self._lock:
            self._drop()
            cut()
            self._own.running.kill()
            self._own.running.stop()
            self._stopped = True  # until the server answers again
            self._own.release()
            restore()
            self._own = self._own.claim_again()
            self._address = self.moved(self._own.running.socket_directory)
            self._stopped = False
            self._connection = self.connect()

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        self._drop()
        if self._own is not None:
            try:
                self._own.running.stop()
            finally:
                self._own.release()

    def _attempt(self, use: Callable[[_C], _T]) -> _T:
        """Calls `use` with the connection. A broken connection is replaced at the next call."""
        with self._lock:
            if self._stopped:
                raise FailureError(self.title, "the server was stopped")
            questions = self._questions()
            if questions is not None and questions.unanswered is not None:
                raise questions.unanswered
            if self._connection is None:
                self._connection = self._reconnected()
            try:
                return use(self._connection)
            except FailureError as error:
                # An error response to an invalid statement does not mean that the connection is broken.
                if error.sqlstate[:2] in self.broken and not self._answers():
                    self._drop()
                    if questions is not None:
                        questions.unanswered = error
                    self._explain(error)
                if error.sqlstate == DENIED and not error.hint:
                    error.hint = (
                        f"grant role {self.role} that privilege, or use another role in {written('system.dsn')}"
                    )
                raise

    def _reconnected(self) -> _C:
        try:
            return self.connect()
        except FailureError as error:
            self._explain(error)
            raise

    def _answers(self) -> bool:
        try:
            return self._connection is not None and bool(self._connection.query(self.alive_query, self._limit_s()))
        except IronbenchError:
            return False

    def _explain(self, error: FailureError) -> None:
        """Raises FailureError if a server that ironbench started has died. The error contains the end of the server's
        log."""
        if self._own is not None and self._own.running.ended(0.0 if error.sqlstate else _DYING_S):
            raise FailureError(self.title, f"the server crashed: {self._own.running.last_words()}") from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def version_of(session: ServerSession[Any, Any]) -> dict[str, str]:
    """Returns the version that a running server reports, and ends the session."""
    try:
        return {"version": session.asked(lambda query: query("SELECT version()")[0][0]) or ""}
    finally:
        session.stop()


_CLOSING_S = 1.0
"""How many seconds a server may still count a connection after the client has closed it."""


def free_connections(read: Callable[[], int], needed: int) -> int:
    """Returns the number of free connections that `read` reads from a server. If there are fewer than `needed`, reads
    the number again for `_CLOSING_S`."""
    deadline_s = time.monotonic() + _CLOSING_S
    while (free := read()) < needed and time.monotonic() < deadline_s:
        time.sleep(_AGAIN_S)
    return free


def with_free_connections(session: _S, require_room: Callable[[_S, int], None], clients: int) -> _S:
    """Returns the session if `clients` more connections are possible. Otherwise, ends the session and raises
    InputError."""
    try:
        with session.questions():
            require_room(session, clients)
    except BaseException:
        session.stop()
        raise
    return session
