"""Statements with parameters from pg_stat_statements, for a fake server without tables."""

from __future__ import annotations

import json
from typing import cast

import pytest

from ironbench.engines.postgres import digests
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
