"""Statements and sessions of a fake server without tables, from pg_stat_statements and pg_stat_activity."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from ironbench.engines.postgres import digests
from ironbench.engines.postgres.observers import statements
from ironbench.errors import FailureError
from ironbench.model.session import Row, Session


class FakeSession:
    def __init__(self, *types: str) -> None:
        self.types = types

    def query(self, sql: str) -> list[Row]:
        return [(json.dumps(self.types),)] if "pg_prepared_statements" in sql else []


@pytest.mark.parametrize(
    ("text", "types", "values"),
    [
        ("select pg_sleep($1)", ("double precision",), ("0.250000",)),
        ("select PG_SLEEP_FOR( $1 )", ("interval",), ("0.250000",)),
        ("select $1, pg_catalog.pg_sleep($2::float8)", ("boolean", "double precision"), (None, "0.250000")),
    ],
)
def test_a_statement_that_sleeps_lasts_as_long_as_recorded(
    text: str, types: tuple[str, ...], values: tuple[str | None, ...]
) -> None:
    drawing = digests._Drawing(cast(Session, FakeSession(*types)), values=True)
    found = drawing.digest(text, "app", 4, 0.25, 4)
    assert not found.refused
    for drawn in found.values:
        assert all(expected in (None, one) for one, expected in zip(drawn, values, strict=True))


class StrictSession(FakeSession):
    """A server that determines no types of operands and of function arguments."""

    def query(self, sql: str) -> list[Row]:
        error = FailureError("prepare", "operator is not unique: unknown + unknown")
        if sql.startswith("prepare") and re.search(r"\$\d+ [-+%] \$\d+", sql):
            error.sqlstate = "42725"
            raise error
        if sql.startswith("prepare") and (found := re.search(r"concat\([^)]*?(\$\d+)(?!::)\b", sql)):
            error = FailureError("prepare", f"could not determine data type of parameter {found[1]}")
            error.sqlstate = "42P18"
            raise error
        return super().query(sql)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (
            "update t set a = $1 + $12 % $3 where b = $4",
            "update t set a = $1::integer + $12::integer % $3::integer where b = $4",
        ),
        ("select concat($1, $2), $3", "select concat($1::text, $2::text), $3"),
        ("select a + $1, b->>$2 from t", "select a + $1, b->>$2 from t"),
    ],
)
def test_parameters_have_a_type_where_the_server_needs_one(text: str, typed: str) -> None:
    drawing = digests._Drawing(cast(Session, StrictSession("text", "text")), values=True)
    found = drawing.digest(text, "app", 4, 0.25, 4)
    assert (found.text, found.refused) == (typed, "")


class WatchedSession:
    """A server to which more sessions are connected while it is watched than before and afterwards."""

    def __init__(self) -> None:
        self.connected = iter(("1", "3", "9", "2"))

    def counters(self) -> dict[str, int]:
        return {}

    def query(self, sql: str) -> list[Row]:
        if "pg_stat_activity" in sql:
            return [(next(self.connected),)]
        return [("shop",)] if sql == "select current_database()" else []


def test_sessions_are_counted_while_the_server_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    state = SimpleNamespace(loaded=True, schema="public", version=150000, view="pg_stat_statements")
    monkeypatch.setattr(statements, "state", lambda session: state)

    def wait(seconds: float, look: Callable[[], None]) -> None:
        look()
        look()

    assert digests.watch(cast(Session, WatchedSession()), 1.0, False, wait).sessions == 9
