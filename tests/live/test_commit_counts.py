"""Readings of PostgreSQL's commit counter, beside what the reading session committed itself."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from test_tpch_load import running

from ironbench.workloads.commit_check import Commits

pytestmark = pytest.mark.live


def test_a_reading_includes_every_commit_of_the_session_that_reads(place: Path) -> None:
    with running("postgres", place, 1) as session:
        # Autovacuum would commit, too.
        session.query("alter system set autovacuum = off")
        session.query("select pg_reload_conf()")
        time.sleep(0.2)
        then = Commits.read(session)
        # After a second, the backend reports at the end of a statement, so that nothing but commits is left to report.
        time.sleep(1.1)
        session.query("select count(*) from pg_database")
        now = Commits.read(session)
        assert then.server is not None and now.server is not None
        assert now.server - then.server == now.own - then.own
