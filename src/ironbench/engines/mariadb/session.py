"""Session with a MariaDB server, which ironbench started or which already exists, or with an existing MySQL server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ironbench.engines.administration import DENIED, no_checkpoint
from ironbench.engines.existing_server import checked_answers
from ironbench.engines.mariadb import existing_server, facts, settings
from ironbench.engines.mariadb.dialect import CHECKPOINT
from ironbench.engines.mariadb.dsn import MysqlAddress
from ironbench.engines.server_session import LocalServer, OwnedServer, ServerSession
from ironbench.errors import FailureError
from ironbench.host.child_connection import CANCELLED
from ironbench.model.secrets import Secrets
from ironbench.model.session import Row

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

_T = TypeVar("_T")
_REFUSED = (1044, 1142, 1143, 1227, 1370, 1419)
"""Error numbers for a missing privilege. The SQLSTATE of these errors, 42000, is also used for other errors."""


class MariadbSession(ServerSession[MysqlAddress, "MysqlConnection"]):
    engine = "mariadb"
    title = "MariaDB"
    broken = ("", "08", "70", "HY")

    def __init__(self, address: MysqlAddress, secrets: Secrets, own: OwnedServer | None = None) -> None:
        super().__init__(address, secrets, own)
        with checked_answers(own is None):
            sql_mode, commits, at_connect = self.asked(
                lambda query: query("select @@global.sql_mode, @@global.autocommit, @@global.init_connect")[0]
            )
        self._sql_mode = sql_mode or ""
        """sql_mode of clients. ironbench's own connections use a different sql_mode."""
        off = commits == "0" or "autocommit" in (at_connect or "").lower()
        self._client_init = ["set session autocommit = 1"] if off else []
        """First statements of clients. Scripts expect that a statement outside of BEGIN and COMMIT commits by itself.
        Usually, clients send no such statement, because it would make connecting slower."""

    def connect(self, as_client: bool = False) -> MysqlConnection:
        from ironbench import _core

        connection = self._address.connection(self._secrets, own=True)
        connection = self.of_client(connection) if as_client else connection
        return _core.MysqlConnection(json.dumps(connection).encode(), self.silence_s)

    def as_client(self) -> MysqlConnection:
        """Opens a connection for the user's statements. The connection has the SQL modes that a client usually has. The
        caller closes the connection."""
        from ironbench import _core

        connection = self._address.connection(self._secrets) | {"init": self._client_init}
        return _core.MysqlConnection(json.dumps(connection).encode(), self.silence_s)

    def query(self, sql: str) -> list[Row]:
        if sql == CHECKPOINT and self._own is None:
            # An existing MariaDB server would ignore this statement, and MySQL cannot parse it.
            raise no_checkpoint()
        return super().query(sql)

    def line(self, cpus: Sequence[int] = ()) -> MariadbLine:
        return MariadbLine(self.connect(as_client=True))

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        connection = self.of_client(self._address.connection(self._secrets)) | {"init": self._client_init}
        return {
            "kind": "mysql",
            "connection": connection,
            "protocol": load_protocol,
            "io": io,
            "sql_mode": self._sql_mode,
        }

    def known(self) -> dict[str, Any]:
        return self.asked(facts.read)

    def counters(self) -> dict[str, int]:
        return self.asked(facts.read_counters)

    def found(self) -> LocalServer:
        return self.asked(lambda query: existing_server.find(self._address, query))

    def moved(self, socket_directory: str) -> MysqlAddress:
        return replace(self._address, socket=f"{socket_directory}/{settings.SOCKET}")

    @property
    def on_socket(self) -> bool:
        return self._address.socket is not None

    @property
    def role(self) -> str:
        return self._address.user

    def _attempt(self, use: Callable[[MysqlConnection], _T]) -> _T:
        try:
            return super()._attempt(use)
        except FailureError as error:
            if getattr(error, "number", 0) in _REFUSED:
                error.sqlstate = DENIED
                error.hint = error.hint or f"grant user {self.role} that privilege"
            raise


_INTERRUPTED = (1317, 1969)
"""Error numbers ER_QUERY_INTERRUPTED and ER_STATEMENT_TIMEOUT. The SQLSTATE of these errors is not the standard one for
a cancelled statement."""


class MariadbLine:
    """A separate connection, as described in `model.session.WorkConnection`."""

    def __init__(self, connection: MysqlConnection) -> None:
        self._connection = connection

    def measure(self, sql: str) -> tuple[int, float, float]:
        return _with_standard_state(lambda: self._connection.measure(sql))

    def query(self, sql: str) -> list[Row]:
        return _with_standard_state(lambda: self._connection.query(sql))

    def columns(self) -> list[str]:
        return self._connection.columns()

    def copy_in(self, sql: str, data: bytes) -> int:
        return _with_standard_state(lambda: self._connection.copy_in(sql, data))

    def cancel(self) -> None:
        self._connection.cancel()

    def close(self) -> None:
        self._connection.close()


def _with_standard_state(what: Callable[[], _T]) -> _T:
    try:
        return what()
    except FailureError as error:
        if getattr(error, "number", 0) in _INTERRUPTED:
            error.sqlstate = CANCELLED
        raise
