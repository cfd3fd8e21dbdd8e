"""The server ends connections of some clients: the others continue, or all of them with new connections."""

from __future__ import annotations

import time
from typing import Any

import pytest
from raw_mysql import RawMysql
from raw_server import RawServer
from trial import postgres, run, run_and_meanwhile

from ironbench import _core

pytestmark = pytest.mark.live

TRANSPORTS = ["io_uring", "epoll"]
LOST = "connection-lost"
ONE_ENDS_ITSELF = """\\if :client_id = 2
SELECT pg_terminate_backend(pg_backend_pid());
\\endif
SELECT 1;
"""
OPEN = {"schedule": {"kind": "open", "rate": 400.0, "arrivals": "fixed"}, "stop": {"duration_s": 1.0}}


@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_on_postgresql_a_terminated_client_ends_and_the_others_do_all_of_their_work(
    raw_server: RawServer, database: str, protocol: str, io: str
) -> None:
    engine = postgres(raw_server.connection(database=database), protocol, io)
    summary = run(engine, ONE_ENDS_ITSELF, stop={"transactions": 50}).summary
    assert not summary["aborted"]
    assert (summary["transactions"], summary["failed"], summary["errors"]) == (150, 1, {LOST: 1})
    assert (summary["connections_lost"], summary["clients_lost"], summary["commits"]) == (1, 1, 150)
    assert "SQLSTATE 57P01" in summary["loss_cause"]


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_on_mariadb_a_killed_client_ends_and_the_others_do_all_of_their_work(
    raw_mysql: RawMysql, protocol: str
) -> None:
    engine = {"kind": "mysql", "connection": raw_mysql.address(), "protocol": protocol, "io": "auto"}
    script = "\\if :client_id = 2\nKILL connection_id();\n\\endif\nSELECT 1;\n"
    summary = run(engine, script, stop={"transactions": 50}).summary
    assert not summary["aborted"]
    assert (summary["transactions"], summary["failed"], summary["errors"]) == (150, 1, {LOST: 1})
    assert (summary["connections_lost"], summary["clients_lost"]) == (1, 1)
    assert "error 1927" in summary["loss_cause"]


def test_a_trial_that_loses_its_last_client_ends_with_the_first_cause(raw_server: RawServer, database: str) -> None:
    engine = postgres(raw_server.connection(database=database))
    summary = run(engine, "SELECT pg_terminate_backend(pg_backend_pid());\n", stop={"duration_s": 60.0}).summary
    assert summary["aborted"] and summary["elapsed_s"] < 30
    assert (summary["clients_lost"], summary["failed"], summary["transactions"]) == (4, 4, 0)
    assert summary["cause"] == summary["loss_cause"] and "57P01" in summary["cause"]


def test_where_errors_end_the_trial_a_terminated_client_does(raw_server: RawServer, database: str) -> None:
    engine = postgres(raw_server.connection(database=database))
    summary = run(engine, ONE_ENDS_ITSELF, on_error="stop", stop={"duration_s": 60.0}).summary
    assert summary["aborted"] and summary["clients_lost"] == 0
    assert summary["cause"] == summary["loss_cause"]


def terminated(server: RawServer, database: str, which: str) -> None:
    """Ends the sessions of a database that match a condition."""
    server.connect().query(
        f"SELECT pg_terminate_backend(pid) FROM (SELECT pid, row_number() OVER (ORDER BY pid) AS number, state "
        f"FROM pg_stat_activity WHERE datname = '{database}') s WHERE {which}"
    )


@pytest.mark.parametrize("io", TRANSPORTS)
def test_in_an_open_loop_the_clients_that_are_left_do_what_is_due(
    raw_server: RawServer, database: str, io: str
) -> None:
    """The ended clients usually wait for the next scheduled transaction, which another client then takes."""
    engine = postgres(raw_server.connection(database=database), io=io)
    summary = run_and_meanwhile(
        lambda _: terminated(raw_server, database, "number <= 3"), engine, "SELECT 1;\n", **OPEN
    ).summary
    assert (summary["aborted"], summary["clients_lost"], summary["connections_lost"]) == (False, 3, 3)
    assert summary["transactions"] + summary["failed"] + summary["unfinished"] + summary["not_started"] == 400
    assert summary["transactions"] >= 350


@pytest.mark.parametrize("changes", [{}, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_clients_that_reconnect_on_loss_continue_after_each_loss(
    raw_server: RawServer, database: str, protocol: str, io: str, changes: dict[str, Any]
) -> None:
    def twice(_progress: _core.Progress) -> None:
        for _ in range(2):
            terminated(raw_server, database, "number <= 2")
            time.sleep(0.2)

    engine = postgres(raw_server.connection(database=database), protocol, io)
    wanted = {"on_error": "stop", "reconnect_on_loss": True, **changes}
    summary = run_and_meanwhile(twice, engine, "BEGIN;\nSELECT 1;\nEND;\n", **wanted).summary
    assert (summary["aborted"], summary["clients_lost"], summary["connections_lost"]) == (False, 0, 4)
    assert summary["reconnects"] == 4 and summary["reconnects_s"] > 0
    assert summary["failed"] == summary["errors"].get(LOST, 0) <= 4
    assert summary["transactions"] > 50


def test_on_mariadb_clients_that_reconnect_on_loss_continue(raw_mysql: RawMysql) -> None:
    engine = {"kind": "mysql", "connection": raw_mysql.address(), "protocol": "prepared", "io": "auto"}
    script = "\\set r random(1, 10)\n\\if :r = 1\nKILL connection_id();\n\\endif\nSELECT 1;\n"
    summary = run(engine, script, reconnect_on_loss=True, stop={"transactions": 50}).summary
    assert (summary["aborted"], summary["clients_lost"]) == (False, 0)
    assert summary["transactions"] + summary["failed"] == 200
    assert 0 < summary["connections_lost"] == summary["errors"][LOST] == summary["failed"]


def test_clients_connect_again_to_a_server_that_was_restarted() -> None:
    with RawServer() as server:

        def restart(_progress: _core.Progress) -> None:
            server.stop()
            time.sleep(0.5)
            server.start()

        wanted = {"reconnect_on_loss": True, "stop": {"duration_s": 4.0}}
        engine = postgres(server.connection())
        summary = run_and_meanwhile(restart, engine, "SELECT 1;\n", **wanted).summary
        assert (summary["aborted"], summary["clients_lost"], summary["connections_lost"]) == (False, 0, 4)
        assert summary["reconnects"] == 4 and summary["reconnects_s"] > 4 * 0.5
