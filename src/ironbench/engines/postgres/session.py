"""A live PostgreSQL: ours, or one that was running already."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ironbench.engines.postgres import facts, given
from ironbench.engines.postgres.dsn import Address
from ironbench.engines.server_session import Place, ServerSession

if TYPE_CHECKING:
    from ironbench._core import Connection


class PostgresSession(ServerSession[Address, "Connection"]):
    engine = "postgres"
    title = "PostgreSQL"
    broken = ("", "08", "57", "XX")

    def connect(self) -> Connection:
        from ironbench import _core

        return _core.Connection(json.dumps(self._address.connection(self._secrets)).encode())

    def target(self, load_protocol: str = "prepared", io: str = "auto") -> dict[str, Any]:
        connection = self._address.connection(self._secrets)
        return {"kind": "postgres", "connection": connection, "protocol": load_protocol, "io": io}

    def known(self) -> dict[str, Any]:
        return facts.read(self.query)

    def counters(self) -> dict[str, int]:
        return facts.read_counters(self.query)

    def found(self) -> Place:
        return given.find(self._address.host, self.query)

    def moved(self, socket_directory: str) -> Address:
        return replace(self._address, host=socket_directory)

    @property
    def role(self) -> str:
        return self._address.user
