"""Readings of PostgreSQL's commit counter, beside what the reading session committed itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from patience import eventually
from test_tpch_load import running

from ironbench.workloads.commit_check import PER_TABLE, Commits, commits_check

pytestmark = pytest.mark.live


def test_a_reading_includes_every_commit_of_the_session_that_reads(place: Path) -> None:
    with running("postgres", place, 1) as session:
        # Autovacuum would also commit.
        session.query("alter system set autovacuum = off")
        session.query("select pg_reload_conf()")
        time.sleep(0.2)
        then = Commits.read(session)
        # A backend reports its counters at most once a second, at the end of a statement. After this statement, only
        # commits remain to be reported.
        time.sleep(1.1)
        session.query("select count(*) from pg_database")
        now = Commits.read(session)
        assert then.server is not None and now.server is not None
        assert now.server - then.server == now.own - then.own


SLOW = {
    "autovacuum_naptime": "1s",
    "autovacuum_max_workers": "1",
    "autovacuum_vacuum_cost_delay": "100ms",
    "autovacuum_vacuum_cost_limit": "20",
}
WORKERS = "select count(*) from pg_stat_activity where backend_type = 'autovacuum worker'"


@pytest.mark.long
@pytest.mark.timeout(240)
def test_commits_that_a_running_autovacuum_worker_reports_at_its_end_are_allowed(place: Path) -> None:
    with running("postgres", place, 1) as session:
        for number in range(6):
            session.query(f"create table t{number} as select generate_series(1, 2000) as n")
        for name, value in SLOW.items():
            session.query(f"alter system set {name} = '{value}'")
        session.query("select pg_reload_conf()")
        seen: list[Commits] = []

        def has_processed_tables() -> bool:
            seen.append(Commits.read(session))
            return seen[-1].unreported >= 6

        assert eventually(has_processed_tables, 90.0)
        session.query("alter system set autovacuum = off")
        for name in SLOW:
            session.query(f"alter system reset {name}")
        session.query("select pg_reload_conf()")
        assert eventually(lambda: session.query(WORKERS) == [("0",)], 60.0)
        (check,) = commits_check(session, seen[-1], {"commits": 0, "observer_commits": 0, "clients": 1, "elapsed_s": 1})
        assert check.passed, check
        assert int(check.expected.rpartition(" to ")[2]) >= 6 * PER_TABLE
        assert Commits.read(session).unreported == 0
