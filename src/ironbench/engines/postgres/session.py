"""Session with a PostgreSQL server that ironbench started or that exists."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ironbench.engines.postgres import dsn, existing_server, facts
from ironbench.engines.postgres.dsn import PostgresAddress
from ironbench.engines.server_session import LocalServer, OwnedServer, ServerSession
from ironbench.model.secrets import Secrets

if TYPE_CHECKING:
    from ironbench._core import Connection


def _connected(connection: dict[str, Any], silence_s: float | None = None) -> Connection:
    from ironbench import _core

    return _core.Connection(json.dumps(connection).encode(), silence_s)


_ENCODING, _ANY_BYTES = "client_encoding", "SQL_ASCII"
"""Name of the setting for the client's encoding, and the encoding that allows any bytes. Texts of a database with
encoding SQL_ASCII may contain any bytes. If the client used a different encoding, the server would raise an error for
bytes that are invalid in it (PostgreSQL 18 documentation, 23.3.4)."""


class PostgresSession(ServerSession[PostgresAddress, "Connection"]):
    engine = "postgres"
    title = "PostgreSQL"
    broken = ("", "08", "57", "XX")

    def __init__(self, address: PostgresAddress, secrets: Secrets, own: OwnedServer | None = None) -> None:
        self._committed = 0
        """Number of transactions committed by connections that have since been closed."""
        super().__init__(dsn.reached(address, lambda one: _connected(one.connection(secrets))), secrets, own)

    def connect(self, as_client: bool = False) -> Connection:
        connection = self._connected(as_client)
        if connection.parameter("server_encoding") == _ANY_BYTES and _ENCODING not in self._address.options:
            connection.close()
            self._address = replace(self._address, options=self._address.options | {_ENCODING: _ANY_BYTES})
            connection = self._connected(as_client)
        # Only some roles may set lc_messages. Errors are therefore identified by SQLSTATE and not by their messages.
        if connection.parameter("is_superuser") == "on":
            connection.query("SET lc_messages = 'C'")
        return connection

    def _connected(self, as_client: bool) -> Connection:
        connection = self._address.connection(self._secrets)
        return _connected(self.of_client(connection) if as_client else connection, self.silence_s)

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        connection = self.of_client(self._address.connection(self._secrets))
        return {"kind": "postgres", "connection": connection, "protocol": load_protocol, "io": io}

    def known(self) -> dict[str, Any]:
        return self.asked(facts.read)

    def counters(self) -> dict[str, int]:
        return self.asked(facts.read_counters)

    def found(self) -> LocalServer:
        return self.asked(lambda query: existing_server.find(self._address.host, query))

    def moved(self, socket_directory: str) -> PostgresAddress:
        return replace(self._address, host=socket_directory)

    @property
    def on_socket(self) -> bool:
        return self._address.on_socket

    @property
    def role(self) -> str:
        return self._address.user

    @property
    def commits(self) -> int:
        """Number of transactions that the server has committed for this session. The number includes all connections of
        the session."""
        return self._committed + (self._connection.commits if self._connection is not None else 0)

    def _drop(self) -> None:
        self._committed = self.commits
        super()._drop()
