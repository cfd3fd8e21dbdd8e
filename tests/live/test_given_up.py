"""Statements that a trial gives up at its end do not continue on the server beside the next trial."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from patience import eventually
from raw_mysql import RawMysql
from raw_server import RawServer
from trial import postgres, run, run_and_meanwhile

from ironbench import _core

pytestmark = pytest.mark.live

TRANSPORTS = ["io_uring", "epoll"]
PATIENCE_S = 2.0


def stopping(asleep: Callable[[], int]) -> Callable[[_core.Progress], None]:
    """Stops the trial when both clients sleep in the server."""

    def stop(progress: _core.Progress) -> None:
        assert eventually(lambda: asleep() == 2, 20.0)
        progress.stop()

    return stop


@pytest.fixture
def sleepers(raw_server: RawServer, database: str) -> Callable[[], int]:
    """Counts backends that sleep in a query."""

    def asleep() -> int:
        session = raw_server.connect()
        try:
            where = f"datname = '{database}' AND wait_event = 'PgSleep'"
            [(count,)] = session.query(f"SELECT count(*) FROM pg_stat_activity WHERE {where}")
            return int(count or 0)
        finally:
            session.close()

    return asleep


@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("reconnect", [0, 1])
def test_queries_that_a_stopped_trial_gives_up_end_in_postgresql(
    raw_server: RawServer, database: str, sleepers: Callable[[], int], io: str, reconnect: int
) -> None:
    raw_server.connect(database=database).query("CREATE SEQUENCE calls")
    engine = postgres(raw_server.connection(database=database), io=io) | {"reconnect": reconnect}
    # The first two end immediately; then each client, possibly reconnected, has one that does not end.
    script = "SELECT pg_sleep(CASE WHEN nextval('calls') > 2 THEN 60 ELSE 0 END);\n"
    long = {"clients": 2, "stop": {"duration_s": 60.0}}
    summary = run_and_meanwhile(stopping(sleepers), engine, script, **long).summary
    assert summary["cut_short"] and summary["server_commits_uncertain"] == 2
    assert eventually(lambda: sleepers() == 0, PATIENCE_S)


@pytest.mark.long
def test_queries_that_have_not_ended_long_after_the_window_end_in_postgresql(
    raw_server: RawServer, database: str, sleepers: Callable[[], int]
) -> None:
    engine = postgres(raw_server.connection(database=database))
    summary = run(engine, "SELECT pg_sleep(30);\n", clients=2, stop={"duration_s": 0.5}).summary
    assert summary["server_commits_uncertain"] == 2
    assert eventually(lambda: sleepers() == 0, PATIENCE_S)


@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("reconnect", [0, 1])
def test_queries_that_a_stopped_trial_gives_up_end_in_mariadb(raw_mysql: RawMysql, io: str, reconnect: int) -> None:
    raw_mysql.query("CREATE OR REPLACE SEQUENCE calls NOCACHE")

    def asleep() -> int:
        [(count,)] = raw_mysql.query("SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'")
        return int(count or 0)

    engine = {"kind": "mysql", "connection": raw_mysql.address(), "protocol": "prepared", "io": io}
    script = "SELECT sleep(CASE WHEN nextval(calls) > 2 THEN 60 ELSE 0 END);\n"
    long = {"clients": 2, "stop": {"duration_s": 60.0}}
    summary = run_and_meanwhile(stopping(asleep), engine | {"reconnect": reconnect}, script, **long).summary
    assert summary["cut_short"] and summary["server_commits_uncertain"] == 2
    assert eventually(lambda: asleep() == 0, PATIENCE_S)
