"""A running server whose processes are frozen (SIGSTOP): no query waits for it without a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from directory_server import BASE, serving
from factories import require_installed
from raw_mysql import RawMysql
from raw_server import RawServer

from ironbench.engines import server_session
from ironbench.engines.mariadb import dsn as mysql_dsn
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.engines.postgres import dsn as postgres_dsn
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import ServerSession
from ironbench.engines.slapd import dsn as ldap_dsn
from ironbench.engines.slapd.session import SlapdSession
from ironbench.errors import FailureError

pytestmark = pytest.mark.live

CONNECTING_S = 10.0
"""The limit of a new connection."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_session, "_SILENCE_S", 0.3)


def family(pid: int) -> list[int]:
    """The process and all below it."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in family(int(child)))]


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    halted = family(pid)
    try:
        for one in halted:
            os.kill(one, signal.SIGSTOP)
        yield
    finally:
        for one in halted:
            os.kill(one, signal.SIGCONT)


def is_given_up(session: ServerSession[Any, Any], pid: int) -> None:
    """And used again when the server runs again."""
    try:
        with frozen(pid):
            began = time.monotonic()
            with pytest.raises(FailureError, match="stopped answering, on this connection and on a new one"):
                session.query(session.lives)
            assert not session.alive()
            assert time.monotonic() - began < 2.5 * CONNECTING_S
        assert session.alive()
    finally:
        session.stop()


def test_a_frozen_postgres_is_given_up(raw_server: RawServer) -> None:
    where = postgres_dsn.parse(f"host={raw_server.host} port={raw_server.port} user=postgres dbname=postgres", {})
    assert raw_server.process is not None
    is_given_up(PostgresSession(*where), raw_server.process.pid)


def test_a_frozen_mariadb_is_given_up(raw_mysql: RawMysql) -> None:
    where = mysql_dsn.parse(f"mysql://root@localhost/d?socket={raw_mysql.socket}", {})
    is_given_up(MariadbSession(*where), raw_mysql.process.pid)


def test_a_frozen_directory_is_given_up(place: Path) -> None:
    require_installed("slapd")
    with serving(place, "slapd") as server:
        pid = server.session._own.running.process.pid  # type: ignore[union-attr]
        is_given_up(SlapdSession(*ldap_dsn.parse(f"ldap://localhost:{server.port}/{BASE}", {})), pid)


def test_a_busy_server_is_waited_for(raw_server: RawServer) -> None:
    where = postgres_dsn.parse(f"host={raw_server.host} port={raw_server.port} user=postgres dbname=postgres", {})
    session = PostgresSession(*where)
    try:
        assert session.query("select pg_sleep(2), 7")[0][1] == "7"
    finally:
        session.stop()
