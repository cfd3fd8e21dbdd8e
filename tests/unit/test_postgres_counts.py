"""Counting of a server that is asked to count now, in every version."""

from __future__ import annotations

import pytest

from ironbench.engines.postgres import facts
from ironbench.engines.postgres.administration import MARK, PostgresAdministration
from ironbench.model.session import Row


class Server:
    """Notes what it is asked."""

    def __init__(self, flushes: bool) -> None:
        self.flushes = flushes
        self.asked: list[str] = []

    def query(self, sql: str) -> list[Row]:
        self.asked.append(sql)
        return [("1",)] if "pg_proc" not in sql or self.flushes else []


@pytest.mark.parametrize("flushes", [True, False])
def test_the_function_that_counts_at_once_is_looked_for_once_and_done_without(
    flushes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(facts.time, "sleep", slept.append)
    server = Server(flushes)
    for _ in range(2):
        facts.flush_counts(server)  # type: ignore[arg-type]
    last = "select pg_stat_force_next_flush()" if flushes else "select 1"
    assert server.asked[1:] == [last, last] and "pg_proc" in server.asked[0]
    assert slept == ([] if flushes else [facts.REPORTED_S] * 2)


def test_a_routine_is_marked_in_the_statement_that_makes_it() -> None:
    text = "create or replace procedure batch_age() language plpgsql as 'begin end'"
    assert PostgresAdministration().marked(text) == f"{text}; comment on routine batch_age is '{MARK}'"
    assert PostgresAdministration().marked("create table t (n int)") == "create table t (n int)"
