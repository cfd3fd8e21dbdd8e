"""The drive loop on a real PostgreSQL: counts, protocols, transports, errors, retries."""

from __future__ import annotations

import time
from typing import Any

import pytest
from patience import eventually
from raw_server import PASSWORD, RawServer
from tls_proxy import TlsProxy
from trial import Trial, postgres, run

from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live

PROTOCOLS = ["simple", "extended", "prepared"]
TRANSPORTS = ["io_uring", "epoll"]
N = 50
"""Number of transactions of each client."""
SESSIONS = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"


@pytest.fixture
def engine(raw_server: RawServer, database: str) -> dict[str, Any]:
    """A table `t(id, v)` of 100 rows in a separate database."""
    session = raw_server.connect(database=database)
    session.query("CREATE TABLE t(id int PRIMARY KEY, v int NOT NULL)")
    session.query("INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i")
    session.query("CREATE TABLE log(client int, v int)")
    session.close()
    return postgres(raw_server.connection(database=database))


def ask(raw_server: RawServer, engine: dict[str, Any], sql: str) -> str | None:
    session = raw_server.connect(database=engine["connection"]["database"])
    try:
        return session.query(sql)[0][0]
    finally:
        session.close()


def count(raw_server: RawServer, engine: dict[str, Any], sql: str) -> int:
    return int(ask(raw_server, engine, sql) or 0)


def planned(trial: Trial, clients: int = 4) -> None:
    """Checks that every transaction of the plan succeeded and that all counts agree."""
    summary = trial.summary
    assert summary["errors"] == {}, summary["error_messages"]
    assert summary["transactions"] == summary["completed"] == N * clients
    assert trial.histograms["response_time"].count == N * clients
    assert sum(trial.column("transactions")) == N * clients
    assert (summary["failed"], summary["unfinished"], summary["cause"]) == (0, 0, "")


@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_on_every_transport_does_exactly_the_planned_transactions(
    raw_server: RawServer, engine: dict[str, Any], protocol: str, io: str
) -> None:
    script = (
        "\\set id random(1, 100)\n"
        "BEGIN;\n"
        "UPDATE t SET v = v + 1 WHERE id = :id;\n"
        "INSERT INTO log VALUES (:client_id, :id);\n"
        "END;\n"
    )
    engine = engine | {"protocol": protocol, "io": io}
    trial = run(engine, script, stop={"transactions": N}, threads=2, max_tries=0)
    planned(trial)
    assert trial.summary["io"] == io
    assert trial.summary["commits"] == N * 4
    assert count(raw_server, engine, "SELECT count(*) FROM log") == N * 4
    assert count(raw_server, engine, "SELECT sum(v) FROM t") == N * 4
    assert (
        count(raw_server, engine, "SELECT count(*) FROM (SELECT client FROM log GROUP BY 1 HAVING count(*) = 50)") == 4
    )


def test_both_transports_and_all_protocols_draw_and_compute_the_same(
    raw_server: RawServer, engine: dict[str, Any]
) -> None:
    script = "\\set a random(1, 1000000)\n\\set b :a * 2 + :client_id\nINSERT INTO log VALUES (:client_id, :b);\n"
    sums = set()
    for protocol in PROTOCOLS:
        for io in TRANSPORTS:
            ask(raw_server, engine, "TRUNCATE log; SELECT 1")
            planned(run(engine | {"protocol": protocol, "io": io}, script, stop={"transactions": N}, seed=7))
            sums.add(ask(raw_server, engine, "SELECT md5(string_agg(v::text, ' ' ORDER BY client, v)) FROM log"))
    assert len(sums) == 1


def test_commits_agree_with_the_server(raw_server: RawServer, engine: dict[str, Any]) -> None:
    scripts = [
        "BEGIN;\nUPDATE t SET v = v + 1 WHERE id = 1 + :client_id;\nEND;\n",
        "SELECT 1;\nSELECT 2;\nSELECT 3;\n",
        "BEGIN;\nUPDATE t SET v = 0 WHERE id = 50 + :client_id;\nROLLBACK;\n",
    ]
    name = engine["connection"]["database"]
    watcher = raw_server.connect()

    def commits() -> int:
        while watcher.query(f"SELECT 1 FROM pg_stat_activity WHERE datname = '{name}'"):
            time.sleep(0.02)
        watcher.query("SELECT pg_stat_clear_snapshot()")
        return int(watcher.query(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{name}'")[0][0] or 0)

    for protocol in PROTOCOLS:
        before = commits()
        idle = run(engine | {"protocol": protocol}, "\\set a 1\n", stop={"transactions": 1})
        entering = commits() - before
        trial = run(engine | {"protocol": protocol}, *scripts, stop={"duration_s": 0.5}, warmup_s=0.1)
        assert idle.summary["commits"] == 0
        assert commits() - before - 2 * entering == trial.summary["commits"]
        assert trial.summary["server_commits_uncertain"] == 0
        assert trial.summary["completed"] > trial.summary["transactions"] > 0
    watcher.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_gset_takes_the_one_row_into_variables(raw_server: RawServer, engine: dict[str, Any], protocol: str) -> None:
    script = (
        "SELECT 40 + :client_id AS n, NULL AS nothing, 'ignored' AS unused \\gset my_\n"
        "INSERT INTO log VALUES (:client_id, :my_n + 2);\n"
    )
    planned(run(engine | {"protocol": protocol}, script, stop={"transactions": N}))
    assert count(raw_server, engine, "SELECT count(*) FROM log WHERE v = 42 + client") == N * 4


def test_aset_takes_the_last_row_of_every_combined_statement(raw_server: RawServer, engine: dict[str, Any]) -> None:
    script = (
        "\\set b 5\n"
        "SELECT g AS a FROM generate_series(1, 3) g \\; SELECT 9 AS b WHERE false \\; SELECT 7 AS c \\aset\n"
        "INSERT INTO log VALUES (:client_id, :a * 100 + :b * 10 + :c);\n"
    )
    planned(run(engine | {"protocol": "simple"}, script, stop={"transactions": N}))
    assert count(raw_server, engine, "SELECT count(*) FROM log WHERE v = 357") == N * 4


def test_gset_of_no_row_fails_the_transaction_and_the_client_goes_on(engine: dict[str, Any]) -> None:
    script = "BEGIN;\nSELECT v AS a FROM t WHERE id = -1 \\gset\nEND;\n"
    summary = run(engine, script, stop={"transactions": N}).summary
    assert (summary["transactions"], summary["failed"], summary["errors"]) == (0, N * 4, {"script": N * 4})
    assert "\\gset needs one row, but the server returned 0" in summary["error_messages"]["script"]


@pytest.mark.parametrize("io", TRANSPORTS)
@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_a_pipeline_is_sent_at_once_and_every_sync_ends_a_transaction(
    raw_server: RawServer, engine: dict[str, Any], protocol: str, io: str
) -> None:
    script = (
        "\\startpipeline\n"
        + "INSERT INTO log VALUES (:client_id, 1);\n" * 3
        + "\\syncpipeline\n"
        + "INSERT INTO log VALUES (:client_id, 2);\n"
        + "\\endpipeline\n"
        + "SELECT 1;\n"
    )
    trial = run(engine | {"protocol": protocol, "io": io}, script, stop={"transactions": N})
    planned(trial)
    assert count(raw_server, engine, "SELECT count(*) FROM log") == 4 * N * 4
    assert trial.summary["commits"] == 3 * N * 4


@pytest.mark.parametrize("protocol", ["extended", "prepared"])
def test_an_error_in_a_pipeline_undoes_its_part_and_fails_the_transaction(
    raw_server: RawServer, engine: dict[str, Any], protocol: str
) -> None:
    script = (
        "\\startpipeline\n"
        "INSERT INTO log VALUES (:client_id, 1);\n"
        "SELECT 1 / 0;\n"
        "INSERT INTO log VALUES (:client_id, 2);\n"
        "\\syncpipeline\n"
        "INSERT INTO log VALUES (:client_id, 3);\n"
        "\\endpipeline\n"
    )
    summary = run(engine | {"protocol": protocol}, script, stop={"transactions": N}).summary
    assert (summary["transactions"], summary["failed"], summary["errors"]) == (0, N * 4, {"22012": N * 4})
    assert count(raw_server, engine, "SELECT count(*) FROM log WHERE v = 3") == N * 4
    assert count(raw_server, engine, "SELECT count(*) FROM log") == N * 4


def test_pipelines_are_refused_with_the_simple_protocol(engine: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"startpipeline cannot be used with the simple protocol"):
        run(engine | {"protocol": "simple"}, "\\startpipeline\nSELECT 1;\n\\endpipeline\n")


@pytest.mark.parametrize("io", TRANSPORTS)
def test_messages_larger_than_any_buffer_pass_in_both_directions(engine: dict[str, Any], io: str) -> None:
    long = "x" * 300_000
    scripts = [
        f"SELECT length('{long}');\n",
        "SELECT repeat('y', 3000000), generate_series(1, 3);\n",
        "SELECT repeat('z', 100000) AS z \\gset\nSELECT length(:z::text);\n",
        "\\startpipeline\n" + f"SELECT repeat('y', 100000), '{long}';\n" * 10 + "\\endpipeline\n",
    ]
    for script in scripts:
        trial = run(engine | {"io": io}, script, stop={"transactions": 5})
        assert (trial.summary["transactions"], trial.summary["errors"]) == (20, {}), trial.summary["error_messages"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_serialization_failures_are_repeated_until_every_transaction_has_ended_well(
    raw_server: RawServer, engine: dict[str, Any], protocol: str
) -> None:
    script = (
        "\\set n random(1, 1000)\n"
        "BEGIN ISOLATION LEVEL SERIALIZABLE;\n"
        "SELECT sum(v) FROM t;\n"
        "UPDATE t SET v = v + 1 WHERE id = 1;\n"
        "INSERT INTO log VALUES (:client_id, :n);\n"
        "END;\n"
    )
    trial = run(engine | {"protocol": protocol}, script, stop={"transactions": N}, max_tries=0)
    summary = trial.summary
    assert (summary["transactions"], summary["failed"]) == (N * 4, 0)
    assert summary["retries"] >= summary["retried"] > 0
    assert summary["errors"] == {"40001": summary["retries"]}
    assert sum(trial.column("retries")) == summary["retries"]
    assert count(raw_server, engine, "SELECT v FROM t WHERE id = 1") == N * 4
    # A repeated attempt draws the same numbers: the log equals that of a run without contention.
    drawn = ask(raw_server, engine, "SELECT md5(string_agg(v::text, ' ' ORDER BY client, v)) FROM log")
    ask(raw_server, engine, "TRUNCATE log; SELECT 1")
    alone = "\\set n random(1, 1000)\nINSERT INTO log VALUES (:client_id, :n);\n"
    planned(run(engine, alone, stop={"transactions": N}))
    assert ask(raw_server, engine, "SELECT md5(string_agg(v::text, ' ' ORDER BY client, v)) FROM log") == drawn


def test_without_tries_left_a_serialization_failure_gives_the_transaction_up(engine: dict[str, Any]) -> None:
    script = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT v FROM t WHERE id = 1;\n"
        "UPDATE t SET v = v + 1 WHERE id = 1;\nEND;\n"
    )
    summary = run(engine, script, stop={"transactions": N}, max_tries=2).summary
    assert summary["transactions"] + summary["failed"] == N * 4
    assert summary["errors"]["40001"] == summary["retries"] + summary["failed"]
    assert summary["failed"] < summary["retries"]


def test_deadlocks_are_repeated(raw_server: RawServer, engine: dict[str, Any]) -> None:
    script = (
        "\\set a random(1, 2)\n\\set b 3 - :a\nBEGIN;\nSET LOCAL deadlock_timeout = '10ms';\n"
        "UPDATE t SET v = v + 1 WHERE id = :a;\n\\sleep 1 ms\nUPDATE t SET v = v + 1 WHERE id = :b;\nEND;\n"
    )
    summary = run(engine, script, stop={"transactions": N}, max_tries=0).summary
    assert (summary["transactions"], summary["failed"]) == (N * 4, 0)
    assert summary["errors"].get("40P01", 0) == summary["retries"] > 0
    assert count(raw_server, engine, "SELECT sum(v) FROM t") == 2 * N * 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_error_fails_the_transaction_rolls_back_and_the_client_goes_on(
    raw_server: RawServer, engine: dict[str, Any], protocol: str
) -> None:
    broken = "BEGIN;\nINSERT INTO log VALUES (:client_id, 0);\nINSERT INTO t VALUES (1, 1);\nEND;\n"
    missing = "SELECT * FROM no_such_table;\n"
    good = "INSERT INTO log VALUES (:client_id, 1);\n"
    trial = run(engine | {"protocol": protocol}, broken, missing, good, stop={"transactions": N})
    summary = trial.summary
    by_script = {script["name"]: script for script in summary["scripts"]}
    assert summary["errors"] == {"23505": by_script["s0"]["failed"], "42P01": by_script["s1"]["failed"]}
    assert summary["failed"] + summary["transactions"] == N * 4
    assert sum(trial.column("errors")) == summary["failed"]
    assert "no_such_table" in summary["error_messages"]["42P01"]
    written = count(raw_server, engine, "SELECT count(*) FROM log")
    assert written == by_script["s2"]["transactions"] == summary["commits"]
    assert count(raw_server, engine, "SELECT count(*) FROM log WHERE v = 0") == 0


def test_a_script_that_leaves_its_transaction_open_fails_and_is_rolled_back(
    raw_server: RawServer, engine: dict[str, Any]
) -> None:
    script = "BEGIN;\nINSERT INTO log VALUES (:client_id, 0);\n"
    summary = run(engine, script, stop={"transactions": N}).summary
    assert (summary["transactions"], summary["failed"]) == (0, N * 4)
    assert "ends inside a transaction block" in summary["error_messages"]["script"]
    assert count(raw_server, engine, "SELECT count(*) FROM log") == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_copy_that_wants_data_fails_and_the_client_goes_on(engine: dict[str, Any], protocol: str) -> None:
    summary = run(engine | {"protocol": protocol}, "COPY log FROM STDIN;\n", stop={"transactions": N}).summary
    assert (summary["failed"], summary["errors"]) == (N * 4, {"57014": N * 4})
    assert "a script cannot copy" in summary["error_messages"]["57014"]


@pytest.mark.parametrize("user", ["postgres", "scram_user", "md5_user"])
def test_tcp_lets_in_by_password_and_drives(raw_server: RawServer, engine: dict[str, Any], user: str) -> None:
    connection = engine["connection"] | {"host": "127.0.0.1", "user": user, "password": PASSWORD}
    planned(run(engine | {"connection": connection}, "SELECT 1;\n", stop={"transactions": N}))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tls_goes_through_epoll(
    raw_server: RawServer, tls_proxy: TlsProxy, engine: dict[str, Any], protocol: str
) -> None:
    connection = engine["connection"] | {"host": "127.0.0.1", "port": tls_proxy.port, "sslmode": "require"}
    scripts = ["SELECT repeat('y', 200000);\n", f"SELECT length('{'x' * 200_000}');\n", "SELECT 1;\n"]
    trial = run(engine | {"connection": connection, "protocol": protocol}, *scripts, stop={"transactions": N})
    planned(trial)
    assert trial.summary["io"] == "epoll"
    assert tls_proxy.handshakes == 4


def test_more_clients_than_the_server_takes_is_a_failure_before_the_start(engine: dict[str, Any]) -> None:
    with pytest.raises((FailureError, InputError), match=r"clients|connections"):
        run(engine, "SELECT 1;\n", clients=200)


def test_a_wrong_password_is_an_input_error(engine: dict[str, Any]) -> None:
    connection = engine["connection"] | {"user": "scram_user", "password": "wrong"}
    with pytest.raises(InputError, match="password"):
        run(engine | {"connection": connection}, "SELECT 1;\n")


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_a_client_opens_a_new_connection_after_so_many_transactions(
    raw_server: RawServer, engine: dict[str, Any], protocol: str
) -> None:
    script = "INSERT INTO log SELECT :client_id, pg_backend_pid() WHERE current_setting('work_mem') = '1234kB';\n"
    connection = engine["connection"] | {"options": [["work_mem", "1234kB"]]}
    before = count(raw_server, engine, SESSIONS)
    trial = run(
        engine | {"protocol": protocol, "connection": connection, "reconnect": 5},
        script,
        stop={"transactions": N},
        threads=2,
    )
    planned(trial)
    assert trial.summary["reconnects"] == 4 * (N // 5 - 1) and trial.summary["reconnects_s"] > 0
    assert count(raw_server, engine, "SELECT count(*) FROM log") == N * 4, "settings of the session are sent again"
    used = "SELECT count(*) FROM (SELECT v FROM log GROUP BY v HAVING count(*) = 5 AND min(client) = max(client))"
    assert count(raw_server, engine, used) == 4 * N // 5
    # The server counts a session after its end, and separately if it ended without a Terminate message.
    assert eventually(lambda: count(raw_server, engine, SESSIONS) - before >= 4 * N // 5, 10.0)
    assert count(raw_server, engine, SESSIONS.replace("sessions", "sessions_abandoned")) == 0
