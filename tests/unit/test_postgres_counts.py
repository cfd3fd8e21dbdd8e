"""Asking a server to flush its statistics, in every version."""

from __future__ import annotations

import pytest

from ironbench.engines.administration import MARK, REQUEST
from ironbench.engines.postgres import facts
from ironbench.engines.postgres.administration import PostgresAdministration
from ironbench.engines.postgres.insight import PostgresInsight
from ironbench.engines.postgres.observers.statements import COLUMNS, SOURCE
from ironbench.model.inside import ServerStatistics
from ironbench.model.observation import Sample
from ironbench.model.session import Row


class Server:
    """Records its statements."""

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
    last = "select pg_stat_force_next_flush() from " if flushes else "select 1"
    assert "pg_proc" in server.asked[0] and len(server.asked) == 3
    assert all(sql.startswith(last) for sql in server.asked[1:])
    assert slept == ([] if flushes else [facts.REPORTED_S] * 2)


def test_a_routine_is_marked_in_the_statement_that_makes_it() -> None:
    text = "create or replace procedure batch_age() language plpgsql as 'begin end'"
    assert PostgresAdministration().marked(text) == f"{text}; comment on routine batch_age is '{MARK}'"
    assert PostgresAdministration().marked("create table t (n int)") == "create table t (n int)"


class Told:
    """Reports that pg_stat_statements is installed, with its two texts."""

    def query(self, sql: str) -> list[Row]:
        if "pg_available_extensions" in sql:
            return [("t", "public", "t", "180000", "off")]
        return [("1", "CHECKPOINT"), ("2", "select 1")]


@pytest.mark.parametrize("requested", [True, False])
def test_a_checkpoint_that_ironbench_requested_is_no_statement_of_the_users(requested: bool) -> None:
    def read(t_s: float, calls: int) -> Sample:
        lines = ["\t".join([id, *[str(calls)] * len(COLUMNS)]) for id in ("1", "2")]
        return Sample(t_s, "\n".join(lines).encode())

    samples = {SOURCE: [read(0.0, 1), read(10.0, 5)]} | ({REQUEST: []} if requested else {})
    seen = PostgresInsight().end(Told(), ServerStatistics(), samples, 10.0)  # type: ignore[arg-type]
    assert sorted(one.text for one in seen.statements) == ["CHECKPOINT", "select 1"][requested:]
    assert seen.statements_s == (0.004 if requested else 0.008)
