"""A live server, whatever its make: ours, or one that was running already."""

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
from ironbench.engines.given import understood
from ironbench.engines.limits import Limited
from ironbench.engines.server import READY_PATIENCE_S, Running, own_processes
from ironbench.errors import FailureError, IronbenchError, written
from ironbench.host.freezer import Freezer
from ironbench.host.processes import ProcessId
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row, WorkConnection

_T = TypeVar("_T")
_A = TypeVar("_A")
_L = TypeVar("_L", bound="ServerLine")
_S = TypeVar("_S", bound="ServerSession[Any, Any]")
_AGAIN_S = 0.1
DOWN_PATIENCE_S = 120.0
"""So long nobody may listen where a restart has succeeded: what restarts a service waits for it (pg_ctl, systemd's
notify). A server that replays its log may take longer, and says so."""
_SILENCE_S = 20.0
_OWN_SILENCE_S = 120.0
"""More for a server of ours: its devices may be slow by design, and its death shows at once."""
_ANSWER_S = 30.0
"""Limit of a question about the server itself, such as its settings and counters, which takes milliseconds."""
_DYING_S = 1.0
"""A dying server closes its connections before its process is gone: so long its end is waited for."""


@dataclass(frozen=True, slots=True)
class Own:
    """What comes with a server of ours."""

    running: Running
    again: Callable[[], Running]
    """Starts the stopped server anew."""
    directories: dict[str, str]
    facts: Mapping[str, Any]
    """Installation and identity."""
    release: Callable[[], None]
    """Gives the data directory back."""
    retaken: Callable[[], Own]
    """After `release`: takes the data directory again and starts the server."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server's processes and directories on this machine."""

    server: ProcessId | None = None
    directories: dict[str, str] = field(default_factory=dict)


class ServerLine(WorkConnection, Protocol):
    """A connection that gives a server up which does not answer in time."""

    def query(self, sql: str, limit_s: float | None = None) -> list[Row]: ...


class ServerSession(Limited, ABC, Generic[_A, _L]):
    """Sees and uses one server. A server that was running already is never configured and never stopped.

    `_A`: its address; `_L`: a connection to it.
    """

    engine: str
    title: ClassVar[str]
    broken: ClassVar[tuple[str, ...]]
    """SQLSTATE classes after which the connection may be gone; "": no answer at all."""
    lives: ClassVar[str] = "SELECT 1"
    """A statement that any living server answers."""

    def __init__(self, address: _A, secrets: Secrets, own: Own | None = None) -> None:
        """Connects. InputError for a wrong password or name, FailureError when nobody answers."""
        self._address = address
        self._secrets = secrets
        self._own = own
        self._lock = threading.Lock()
        self._stopped = False
        self._connection: _L | None = self.connect()
        self._local = LocalServer() if own is not None else self.found()

    @abstractmethod
    def connect(self) -> _L:
        """A connection of its own, for work in parallel; the caller closes it."""

    @abstractmethod
    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]: ...

    @abstractmethod
    def known(self) -> dict[str, Any]:
        """Facts that the server itself tells."""

    @abstractmethod
    def counters(self) -> dict[str, int]: ...

    @abstractmethod
    def found(self) -> LocalServer:
        """Where a server runs that is not ours; an empty place: elsewhere."""

    @abstractmethod
    def moved(self, socket_directory: str) -> _A:
        """The address after a restart."""

    @property
    @abstractmethod
    def role(self) -> str:
        """As whom we are connected."""

    @property
    def silence_s(self) -> float:
        """After so long without a byte in either direction, a server that does not answer a new connection either is
        given up."""
        return _SILENCE_S if self._own is None else _OWN_SILENCE_S

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql, self._limit_s()))

    def asked(self, read: Callable[[Callable[[str], list[Row]]], _T]) -> _T:
        """What `read` makes of the server's answers to short questions. FailureError: see `questions`."""
        with self.questions():
            return read(self.query)

    @contextmanager
    def questions(self) -> Iterator[None]:
        """What is asked meanwhile is answered in milliseconds, such as settings and counters. A server that was running
        already is given up when an answer is late or cannot be read: FailureError, whatever became of the first one."""
        if self._own is not None:
            yield
            return
        with self.limited(_ANSWER_S), understood(True):
            yield

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def line(self, cpus: Sequence[int] = ()) -> WorkConnection:
        return self.connect()

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
            self.asked(lambda query: query(self.lives))
        except IronbenchError as error:
            return error.sqlstate[:2] not in self.broken  # who refuses a statement lives
        return True

    def require_answer(self) -> None:
        """See `model.session.Remote`."""
        self.query(self.lives)

    def last_words(self) -> str:
        """The end of our server's messages, "" for a server that is not ours."""
        return "" if self._own is None else self._own.running.last_words()

    def restart(self) -> None:
        """Our server only: another process, other sockets, the same settings and files."""
        if self._own is None:
            raise FailureError(self.title, f"a running server ({written('system.dsn')}) is not restarted by ironbench")
        with self._lock:
            self._drop()
            self._own.running.stop()
            self._own = replace(self._own, running=self._own.again())
            self._address = self.moved(self._own.running.socket_directory)
            self._connection = self.connect()

    def freezer(self) -> Freezer | None:
        """See `model.session.Freezable`."""
        return None if self._own is None else self._own.running.freezer()

    def restarted(self, restart: Callable[[], None]) -> None:
        """See `model.session.Restarted`."""
        with self._lock:
            self._drop()
            restart()
            self._connection = self._patiently()
        self._local = self.found()

    def reconnect(self) -> None:
        """Replaces a connection that a restart of the server has ended. FailureError: nobody answers."""
        if not self.alive():
            self.query(self.lives)

    def _patiently(self) -> _L:
        """FailureError: no answer in time."""
        began = time.monotonic()
        while True:
            try:
                return self.connect()
            except FailureError as error:
                patience_s = READY_PATIENCE_S if error.sqlstate else DOWN_PATIENCE_S
                if time.monotonic() > began + patience_s:
                    cause = f"it did not answer within {units.span(patience_s)} of its restart: {error.cause}"
                    hint = f"start it by hand, and look at its log; {written('system.restart')} said that all was well"
                    raise FailureError(self.title, cause, hint) from None
            time.sleep(_AGAIN_S)

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """See `model.session.Powered`. Our server only."""
        if self._own is None:
            raise FailureError(self.title, f"ironbench cuts no power of a running server ({written('system.dsn')})")
        with self._lock:
            self._drop()
            cut()
            self._own.running.kill()
            self._own.running.stop()
            self._stopped = True  # until one answers again
            self._own.release()
            restore()
            self._own = self._own.retaken()
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

    def _attempt(self, use: Callable[[_L], _T]) -> _T:
        """Uses the connection; one that broke is replaced at the next use."""
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
                # The server's answer to a mistake of ours says nothing about the connection.
                if error.sqlstate[:2] in self.broken and not self._answers():
                    self._drop()
                    if questions is not None:
                        questions.unanswered = error
                    self._explain(error)
                if error.sqlstate == DENIED and not error.hint:
                    error.hint = (
                        f"have role {self.role} granted that right (GRANT), "
                        f"or name another role in {written('system.dsn')}"
                    )
                raise

    def _reconnected(self) -> _L:
        try:
            return self.connect()
        except FailureError as error:
            self._explain(error)
            raise

    def _answers(self) -> bool:
        try:
            return self._connection is not None and bool(self._connection.query(self.lives, self._limit_s()))
        except IronbenchError:
            return False

    def _explain(self, error: FailureError) -> None:
        """A server of ours that has died says why."""
        if self._own is not None and self._own.running.ended(0.0 if error.sqlstate else _DYING_S):
            raise FailureError(self.title, f"the server died: {self._own.running.last_words()}") from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def version_of(session: ServerSession[Any, Any]) -> dict[str, str]:
    """What a running server says that it is. Ends the session."""
    try:
        return {"version": session.asked(lambda query: query("SELECT version()")[0][0]) or ""}
    finally:
        session.stop()


def joined(session: _S, require_room: Callable[[_S, int], None], clients: int) -> _S:
    """The session, where `clients` can connect besides it; else it is ended. InputError."""
    try:
        with session.questions():
            require_room(session, clients)
    except BaseException:
        session.stop()
        raise
    return session
