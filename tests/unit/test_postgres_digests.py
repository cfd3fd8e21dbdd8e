"""Statements and sessions of a fake server without tables, from pg_stat_statements and pg_stat_activity."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from ironbench.engines.postgres import digests
from ironbench.engines.postgres.observers import statements
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
