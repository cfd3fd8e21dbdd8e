"""Statements that are not sent, and names that are not used, if another engine's database is reached through ODBC."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ironbench import engines, workloads
from ironbench.engines.administration import checkpoint
from ironbench.engines.odbc import databases
from ironbench.engines.odbc.session import OdbcSession
from ironbench.errors import InputError
from ironbench.trial.load import tables


@pytest.mark.parametrize(("product", "sent"), [("MySQL", []), ("MariaDB", []), ("PostgreSQL", ["checkpoint"])])
def test_a_checkpoint_that_takes_a_server_of_ours_is_not_sent_through_odbc(product: str, sent: list[str]) -> None:
    session = object.__new__(OdbcSession)
    session.kind = databases.of(product)
    session.engine = f"odbc-{session.kind.title.lower()}"
    asked: list[str] = []
    connection: Any = SimpleNamespace(query=lambda sql, limit_s: asked.append(sql))
    session._attempt = lambda use: use(connection)  # type: ignore[method-assign]
    assert checkpoint(session, engines.get(session.engine).traits.dialect) is bool(sent)
    assert [sql.rpartition("; ")[2] for sql in asked] == sent


@pytest.mark.parametrize(("engine", "cleans"), [("postgres", True), ("odbc-postgresql", False)])
def test_cleanup_is_a_way_out_where_it_knows_the_tables_alone(engine: str, cleans: bool) -> None:
    dataset = workloads.get("tpcb-like").dataset(engine, workloads.get("tpcb-like").validated({}))
    assert dataset is not None
    session: Any = SimpleNamespace(engine=engine)
    with pytest.raises(InputError, match="contains another key, not") as caught:
        tables.refuse_changed(session, dataset, "another key", dataset.tables, own_server=False)
    assert ("ironbench cleanup" in caught.value.hint) is cleans
