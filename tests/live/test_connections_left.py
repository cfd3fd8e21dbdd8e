"""The number of free connections of a server is known even to a role that may see nothing else."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest
from raw_server import RawServer

from ironbench.engines.postgres import dsn, existing_server
from ironbench.engines.postgres.session import PostgresSession
from ironbench.errors import InputError

pytestmark = pytest.mark.live


def test_sessions_of_others_count_for_an_ordinary_role_before_anything_starts() -> None:
    with RawServer("max_connections=12", "superuser_reserved_connections=2") as server, ExitStack() as held:
        boss = held.enter_context(closing(server.connect()))
        boss.query("create role plain login")
        for _ in range(5):
            held.enter_context(closing(server.connect()))
        address, secrets = dsn.parse(f"postgresql://plain@/postgres?host={server.host}&port={server.port}", {})
        session = PostgresSession(address, secrets)
        held.callback(session.stop)
        with pytest.raises(InputError, match=r"accepts 12 connections .*, of which 3 are free") as caught:
            existing_server.require_room(session, 4)
        assert "at most 2 clients" in caught.value.hint
        existing_server.require_room(session, 2)
