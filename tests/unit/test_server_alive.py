"""A server that answers is alive, whatever it answers."""

from __future__ import annotations

from typing import Any

import pytest

from ironbench.engines.postgres.dsn import PostgresAddress
from ironbench.engines.postgres.session import PostgresSession
from ironbench.engines.server_session import LocalServer
from ironbench.errors import FailureError
from ironbench.model.secrets import Secrets


class Refusing(PostgresSession):
    """A session on a server that gives the same answer to every statement."""

    sqlstate = ""

    def connect(self, as_client: bool = False) -> Any:
        return self

    def close(self) -> None:
        pass

    def query(self, sql: str) -> Any:
        error = FailureError("PostgreSQL", "refused")
        error.sqlstate = self.sqlstate
        raise error

    def found(self) -> LocalServer:
        return LocalServer()


@pytest.mark.parametrize(("sqlstate", "lives"), [("25P02", True), ("53300", True), ("57P01", False), ("", False)])
def test_a_server_that_refuses_a_statement_lives_and_one_that_shuts_down_or_is_silent_does_not(
    sqlstate: str, lives: bool
) -> None:
    session = Refusing(PostgresAddress("h", 5432, "ann", "shop"), Secrets())
    session.sqlstate = sqlstate
    assert session.alive() is lives
