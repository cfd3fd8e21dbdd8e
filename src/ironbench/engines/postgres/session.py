"""A live PostgreSQL: ours, or one that was running already."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.engines.administration import DENIED
from ironbench.engines.postgres import facts, given
from ironbench.engines.postgres.dsn import Address
from ironbench.engines.postgres.server import Running, own_processes
from ironbench.errors import FailureError, IronbenchError, written
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row

if TYPE_CHECKING:
    from ironbench._core import Connection

_T = TypeVar("_T")
_BROKEN = ("", "08", "57", "XX")
"""No answer at all, or an SQLSTATE class after which the connection may be gone."""


@dataclass(frozen=True, slots=True)
class Own:
    """What comes with a server of ours."""

    running: Running
    again: Callable[[], Running]
    """Starts the stopped server anew."""
    directories: dict[str, str]
    facts: dict[str, Any]
    """Installation and identity."""
    release: Callable[[], None]
    """Gives the data directory back."""
    retaken: Callable[[], Own]
    """After `release`: takes the data directory again and starts the server."""


class PostgresSession:
    """Sees and uses one server. A server that was running already is never configured and never stopped."""

    engine = "postgres"

    def __init__(self, address: Address, secrets: Secrets, own: Own | None = None) -> None:
        """Connects. InputError for a wrong password or name, FailureError when nobody answers."""
        self._address = address
        self._secrets = secrets
        self._own = own
        self._lock = threading.Lock()
        self._stopped = False
        self._connection: Connection | None = self.connect()
        self._local = given.Place() if own is not None else given.find(address.host, self.query)

    def connect(self) -> Connection:
        """A connection of its own, for work in parallel; the caller closes it."""
        from ironbench import _core

        return _core.Connection(json.dumps(self._address.connection(self._secrets)).encode())

    def query(self, sql: str) -> list[Row]:
        return self._attempt(lambda connection: connection.query(sql))

    def copy_in(self, sql: str, data: bytes) -> int:
        return self._attempt(lambda connection: connection.copy_in(sql, data))

    def line(self, cpus: Sequence[int] = ()) -> Connection:
        return self.connect()

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        connection = self._address.connection(self._secrets)
        return {"kind": "postgres", "connection": connection, "protocol": load_protocol, "io": io}

    def facts(self) -> dict[str, Any]:
        known = facts.read(self.query)
        if self._own is None:
            return known | {"server": "running already; neither configured nor stopped by ironbench"}
        return known | {"server": "started by ironbench"} | self._own.facts

    def counters(self) -> dict[str, int]:
        return facts.read_counters(self.query)

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
            self.query("SELECT 1")
        except IronbenchError:
            return False
        return True

    def last_words(self) -> str:
        """The end of our server's messages, "" for a server that is not ours."""
        return "" if self._own is None else self._own.running.last_words()

    def restart(self) -> None:
        """Our server only: another process, other sockets, the same settings and files."""
        if self._own is None:
            raise FailureError(
                "PostgreSQL", f"a running server ({written('system.dsn')}) is not restarted by ironbench"
            )
        with self._lock:
            self._drop()
            self._own.running.stop()
            self._own = replace(self._own, running=self._own.again())
            self._address = replace(self._address, host=self._own.running.socket_directory)
            self._connection = self.connect()

    def lose_power(self, cut: Callable[[], None], restore: Callable[[], None]) -> None:
        """See `model.session.Powered`. Our server only."""
        if self._own is None:
            raise FailureError("PostgreSQL", f"a running server ({written('system.dsn')}) loses no power by ironbench")
        with self._lock:
            self._drop()
            cut()
            self._own.running.kill()
            self._own.running.stop()
            self._stopped = True  # until one answers again
            self._own.release()
            restore()
            self._own = self._own.retaken()
            self._address = replace(self._address, host=self._own.running.socket_directory)
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

    def _attempt(self, use: Callable[[Connection], _T]) -> _T:
        """Uses the connection; one that broke is replaced at the next use."""
        with self._lock:
            if self._stopped:
                raise FailureError("PostgreSQL", "the server was stopped")
            if self._connection is None:
                self._connection = self.connect()
            try:
                return use(self._connection)
            except FailureError as error:
                # The server's answer to a mistake of ours says nothing about the connection.
                if error.sqlstate[:2] in _BROKEN and not self._answers():
                    self._drop()
                    self._explain(error)
                if error.sqlstate == DENIED and not error.hint:
                    role = self._address.user
                    error.hint = (
                        f"have role {role} granted that right (GRANT), or name another role in {written('system.dsn')}"
                    )
                raise

    def _answers(self) -> bool:
        try:
            return self._connection is not None and bool(self._connection.query("SELECT 1"))
        except IronbenchError:
            return False

    def _explain(self, error: FailureError) -> None:
        """A server of ours that has died says why."""
        if self._own is not None and not self._own.running.alive():
            raise FailureError("PostgreSQL", f"the server died: {self._own.running.last_words()}") from error

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
