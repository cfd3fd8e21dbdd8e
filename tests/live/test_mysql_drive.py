"""Scripts, loads and samples over MySQL's protocol, against a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest
from raw_mysql import PASSWORD, RawMysql

from ironbench import _core
from ironbench.engines.mariadb.dsn import MysqlAddress
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import FailureError, InputError
from ironbench.model.secrets import Secrets
from ironbench.model.system import Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

pytestmark = pytest.mark.live

POINT = "\\set id random(1, 100)\nSELECT v FROM accounts WHERE id = :id;\n"
PROTOCOLS = ["prepared", "simple"]
DEADLOCK = """\\set a random(1, 2)
\\set b 3 - :a
BEGIN;
UPDATE accounts SET v = v + 1 WHERE id = :a;
UPDATE accounts SET v = v + 1 WHERE id = :b;
COMMIT;
"""


@pytest.fixture
def server(raw_mysql: RawMysql) -> RawMysql:
    raw_mysql.query(
        "CREATE OR REPLACE TABLE accounts (id int PRIMARY KEY, v bigint, f varchar(30)) ENGINE InnoDB;"
        "INSERT INTO accounts SELECT seq, 0, concat('nr-', seq) FROM seq_1_to_100"
    )
    return raw_mysql


def target(server: RawMysql, protocol: str = "prepared", io: str = "auto", **changes: Any) -> dict[str, Any]:
    return {"kind": "mysql", "connection": server.address(**changes), "protocol": protocol, "io": io}


def drive(where: Mapping[str, Any], text: str, defines: Mapping[str, str] | None = None, **load: Any) -> dict[str, Any]:
    wanted = Load(**{"clients": 4, "threads": 2, "transactions": 50, "duration_s": None} | load)
    plan = compiled_plan(where, Tasks([ScriptSource("s.sql", text, 1)], defines or {}), wanted, [])
    summary: dict[str, Any] = json.loads(_core.drive(plan).summary)
    return summary


@pytest.mark.parametrize("io", ["io_uring", "epoll"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_transaction_is_one_of_the_servers_own_count(server: RawMysql, protocol: str, io: str) -> None:
    name = "Com_stmt_execute" if protocol == "prepared" else "Com_select"
    before = server.status(name)
    summary = drive(target(server, protocol, io), POINT)
    assert (summary["transactions"], summary["commits"], summary["errors"]) == (200, 200, {})
    assert summary["io"] == io
    assert server.status(name) - before == 200


def test_a_load_over_tls_and_many_clients_on_an_open_schedule_runs(server: RawMysql) -> None:
    tls = target(server, socket=None, user="tls_user", password=PASSWORD)
    assert drive(tls, POINT)["transactions"] == 200
    open_loop = drive(
        target(server), POINT, clients=100, transactions=None, duration_s=0.5, rate=400.0, arrivals="fixed"
    )
    assert open_loop["transactions"] + open_loop["unfinished"] + open_loop["not_started"] == 200
    assert open_loop["errors"] == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_whole_script_runs_with_conditions_sleeps_and_variables_of_both_forms(
    server: RawMysql, protocol: str
) -> None:
    text = """\\set id random(1, 100)
BEGIN;
UPDATE accounts SET v = v + 1 WHERE id = :id;
SELECT id, f, NULL AS nothing FROM accounts WHERE id = :id \\gset got_
\\if :got_id <> :id
SELECT wrong;
\\endif
\\sleep 1 ms
SELECT id AS last FROM accounts WHERE f = {f} \\aset
\\if :last <> :id
SELECT wrong;
\\endif
COMMIT;
"""
    summary = drive(target(server, protocol), text.format(f="':got_f'" if protocol == "simple" else ":got_f"))
    assert (summary["transactions"], summary["commits"], summary["errors"]) == (200, 200, {})
    assert server.query("SELECT sum(v) FROM accounts") == [("200",)]


def test_values_of_every_kind_come_and_go_as_they_are(server: RawMysql) -> None:
    kinds = {
        "a": "cast(-5 AS signed)",
        "b": "cast(18446744073709551615 AS unsigned)",
        "c": "date '2024-02-03'",
        "d": "cast('-11:12:13.5' AS time(3))",
        "e": "timestamp '2024-02-03 04:05:06'",
        "f": "1.25e0",
        "g": "cast(7 AS decimal(10, 3))",
        "h": "'é''\\t'",
        "i": "''",
    }
    columns = ", ".join(f"{sql} AS {name}" for name, sql in kinds.items())
    same = " AND ".join(f"{sql} = :{name}" for name, sql in kinds.items())
    summary = drive(target(server), f"SELECT {columns} \\gset\nSELECT 1 AS one WHERE {same} \\gset\n")
    assert summary["errors"] == {}, summary["error_messages"]


def test_a_number_given_by_the_user_is_one_to_the_server(server: RawMysql) -> None:
    assert drive(target(server), "SELECT id FROM accounts LIMIT :n;", {"n": "3"})["errors"] == {}


def test_a_deadlock_is_repeated_and_without_tries_left_it_fails(server: RawMysql) -> None:
    repeated = drive(target(server), DEADLOCK, max_tries=0, clients=8)
    assert (repeated["transactions"], repeated["commits"], repeated["failed"]) == (400, 400, 0)
    assert repeated["retries"] == repeated["errors"].get("1213", 0) > 0
    assert server.query("SELECT sum(v) FROM accounts") == [("800",)]
    given_up = drive(target(server), DEADLOCK, clients=8)
    assert given_up["transactions"] + given_up["failed"] == 400
    assert given_up["commits"] == given_up["transactions"]


def test_a_lock_wait_that_timed_out_is_repeated_with_the_whole_transaction(server: RawMysql) -> None:
    holder = server.connect()
    holder.query("BEGIN; UPDATE accounts SET v = 0 WHERE id = 2")
    text = "BEGIN;\nUPDATE accounts SET v = v + 1 WHERE id = 1;\nUPDATE accounts SET v = v + 1 WHERE id = 2;\nCOMMIT;\n"
    summary = drive(target(server), text, clients=1, transactions=1, max_tries=2)
    holder.query("ROLLBACK")
    assert (summary["errors"], summary["retries"], summary["failed"]) == ({"1205": 2}, 1, 1)
    assert server.query("SELECT sum(v) FROM accounts") == [("0",)]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("SELECT 1;\nSELEC 2;", "1064", "script s.sql, line 2, command 2"),
        ("SELECT 1 WHERE false \\gset\n", "script", "\\gset needs one row, but the server returned 0"),
        ("BEGIN;\nSELECT 1;", "script", "the script ends inside a transaction"),
        ("SELECT ?;", "script", "the server found 1 parameters, but the script has 0"),
        ("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE accounts;", "script", "scripts cannot send files"),
    ],
)
def test_a_mistake_of_a_script_is_named_with_its_place(server: RawMysql, text: str, error: str, words: str) -> None:
    summary = drive(target(server), text, transactions=2)
    assert summary["errors"] == {error: 8}
    assert words in summary["error_messages"][error]
    assert server.query("SELECT count(*) FROM accounts") == [("100",)]


def test_a_pipeline_is_refused_with_its_place_before_anything_runs(server: RawMysql) -> None:
    with pytest.raises(InputError, match=r"s\.sql:2: \\startpipeline cannot be used"):
        drive(target(server), "SELECT 1;\n\\startpipeline\nSELECT 2;\n\\endpipeline\n")


def test_a_connection_that_the_server_ends_ends_the_trial_with_its_words(server: RawMysql) -> None:
    summary = drive(target(server), "KILL connection_id();")
    assert summary["aborted"]
    assert "Connection was killed" in json.dumps(summary)


def test_rows_that_nobody_reads_may_have_any_length_and_others_are_refused_by_their_head(server: RawMysql) -> None:
    server.query("SET GLOBAL max_allowed_packet = 64 * 1024 * 1024")
    long = "SELECT repeat('x', 17000000) AS a"
    assert drive(target(server), f"{long};", clients=1, transactions=2)["transactions"] == 2
    summary = drive(target(server), f"{long} \\gset\n", clients=1, transactions=2)
    assert summary["aborted"]
    assert "a packet of 16 MiB or more" in json.dumps(summary)


TABLES = """CREATE OR REPLACE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
CREATE OR REPLACE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE OR REPLACE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84));
CREATE OR REPLACE TABLE notes (name varchar(30), first bigint, past bigint)"""


def load(server: RawMysql, done: list[dict[str, Any]], note: str = "") -> dict[str, Any]:
    plan = {"engine": target(server), "generator": {"rows": "pgbench", "scale": 2}, "connections": 3}
    loaded = _core.load_rows(json.dumps(plan | {"done": done, "note": note}).encode(), _core.LoadProgress())
    told: dict[str, Any] = json.loads(loaded)
    return told


def test_generated_rows_are_loaded_over_several_connections_and_a_load_goes_on_where_it_was(server: RawMysql) -> None:
    server.query(TABLES)
    note = "INSERT INTO notes VALUES (':table', :first, :past)"
    done = [{"table": "pgbench_accounts", "first": 0, "past": 150_000}]
    loaded = load(server, done, note)
    assert (loaded["rows"], loaded["connections"]) == (50_000 + 20 + 2, 3)
    assert server.query("SELECT count(*), sum(aid) FROM pgbench_accounts") == [("50000", "8750025000")]
    assert server.query("SELECT sum(past - first) FROM notes WHERE name = 'pgbench_accounts'") == [("50000",)]
    with pytest.raises(FailureError, match="Duplicate entry"):
        load(server, done)
    assert server.query("SELECT count(*) FROM pgbench_tellers") == [("20",)]


def test_a_load_that_is_stopped_leaves_no_rows_of_an_open_piece(server: RawMysql) -> None:
    server.query(TABLES)
    plan = {"engine": target(server), "generator": {"rows": "pgbench", "scale": 2}, "connections": 1}
    progress = _core.LoadProgress()
    progress.stop()
    with pytest.raises(FailureError, match="stopped before all rows"):
        _core.load_rows(json.dumps(plan).encode(), progress)
    assert server.query("SELECT count(*) FROM pgbench_accounts") == [("0",)]


def test_statements_are_sampled_on_a_connection_that_is_named(server: RawMysql) -> None:
    named = (
        "SELECT count(*), NULL FROM performance_schema.session_connect_attrs WHERE attr_value = 'ironbench observer'"
    )
    sources = [{"name": "s", "kind": "sql", "target": named, "period_s": 0.05}]
    sampler = _core.Sampler(json.dumps(sources).encode(), json.dumps(server.address()).encode())
    sampler.start()
    time.sleep(0.1)
    sampler.mark()
    sampled = sampler.stop()
    assert json.loads(sampled.summary)["observer_backend_pids"] == []
    assert {text for _, text in sampled.samples["s"]} == {b"1\t\\N\n"}


WIDE = """CREATE OR REPLACE TABLE wide_row
(id bigint AUTO_INCREMENT PRIMARY KEY, number bigint, amount int, moment datetime, payload varchar(200))"""


@pytest.mark.parametrize("keys", ["identity", "random"])
@pytest.mark.parametrize("method", ["rows", "batch", "copy"])
def test_a_population_arrives_whole_by_every_method(server: RawMysql, method: str, keys: str) -> None:
    server.query(WIDE)
    table = {"count": 1010, "width": 100, "keys": keys, "seed": 1}
    work = {"kind": "populate", "table": table, "method": method, "commit": 20, "batch": 7}
    plan = compiled_plan(
        target(server), Tasks(work=work), Load(clients=3, threads=2, transactions=None, duration_s=60), []
    )
    summary = json.loads(_core.drive(plan).summary)
    assert (summary["transactions"], summary["commits"], summary["errors"]) == (51, 51, {})
    moments = ("2025-01-01 00:00:01", "2025-01-01 00:16:50")
    found = server.query("SELECT count(*), sum(number), min(moment), max(moment), sum(length(payload)) FROM wide_row")
    assert found == [("1010", str(1010 * 1011 // 2), *moments, "101000")]
    if keys == "random":  # the server's own numbers have gaps where a stream provided rows
        keyed = _core.wide_sums(json.dumps(table).encode())[2]
        assert server.query("SELECT sum(id & 65535) FROM wide_row") == [(str(keyed),)]


def test_a_population_that_the_server_refuses_ends_the_trial_with_its_words(server: RawMysql) -> None:
    server.query(WIDE.replace("varchar(200)", "varchar(20)"))
    for method, words in [("rows", "Data too long"), ("copy", "the server issued")]:
        table = {"count": 100, "width": 100, "keys": "number", "seed": 1}
        work = {"kind": "populate", "table": table, "method": method, "commit": 10, "batch": 5}
        load = Load(clients=1, threads=1, transactions=None, duration_s=60)
        summary = json.loads(_core.drive(compiled_plan(target(server), Tasks(work=work), load, [])).summary)
        assert summary["aborted"]
        assert words in json.dumps(summary)


def test_a_bystander_reads_rows_and_opens_connections(server: RawMysql) -> None:
    work = {"kind": "bystander", "select": "SELECT v FROM accounts WHERE id =", "keys": 100}
    load = Load(clients=2, threads=2, transactions=None, duration_s=0.5, rate=100.0, arrivals="fixed")
    summary = json.loads(_core.drive(compiled_plan(target(server), Tasks(work=work), load, [])).summary)
    assert summary["errors"] == {}
    # The last one is scheduled at the very end of the window, or just after it.
    assert summary["transactions"] + summary["unfinished"] + summary["not_started"] in (49, 50)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_opens_a_new_connection_after_so_many_transactions(server: RawMysql, protocol: str) -> None:
    server.query("CREATE OR REPLACE TABLE seen (client int, id bigint) ENGINE InnoDB")
    script = "INSERT INTO seen SELECT :client_id, connection_id() FROM dual WHERE @@group_concat_max_len = 4321;\n"
    where = target(server, protocol, init=["SET SESSION group_concat_max_len = 4321"]) | {"reconnect": 5}
    opened, lost = server.status("Connections"), server.status("Aborted_clients")
    summary = drive(where, script)
    assert (summary["transactions"], summary["errors"]) == (200, {}), summary["error_messages"]
    assert summary["reconnects"] == 4 * 9 and summary["reconnects_s"] > 0
    used = "SELECT count(*) FROM (SELECT 1 FROM seen GROUP BY id HAVING count(*) = 5 AND min(client) = max(client)) s"
    assert server.query(used) == [("40",)]
    # Three queries use separate connections, including the last one.
    assert server.status("Connections") - opened == 40 + 3
    assert server.status("Aborted_clients") == lost


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_strings_names_and_comments_in_scripts_end_by_the_rules_of_the_server(server: RawMysql, protocol: str) -> None:
    server.query("CREATE OR REPLACE TABLE words (a text, b text, c int, `d;e` int) ENGINE InnoDB")
    script = r"""# no command; and no 'string
-- nor; here
INSERT INTO words (a, b, c, `d;e`) -- it's; a comment
  VALUES ('it\'s; one', "two\";", 5--:n, /*! :n + */ 1) # :n; not here
;
"""
    summary = drive(target(server, protocol), script, {"n": "2"}, transactions=1, clients=1, threads=1)
    assert (summary["transactions"], summary["errors"]) == (1, {}), summary["error_messages"]
    assert server.query("SELECT * FROM words") == [("it's; one", 'two";', "7", "3")]


def test_statements_whose_parameters_do_not_fit_are_not_kept_by_the_server(server: RawMysql) -> None:
    branches = "".join(f"\\elif :r = {n}\nSELECT {n}, :r, ?;\n" for n in range(2, 9))
    script = f"\\set r random(1, 8)\n\\if :r = 1\nSELECT 1, :r, ?;\n{branches}\\endif\n"
    before = server.status("Prepared_stmt_count")
    server.query(f"SET GLOBAL max_prepared_stmt_count = {before + 4}")  # one for each client at a time
    try:
        summary = drive(target(server), script)
    finally:
        server.query("SET GLOBAL max_prepared_stmt_count = 16382")
    assert (summary["transactions"], summary["errors"]) == (0, {"script": 200}), summary["error_messages"]


@pytest.mark.parametrize(
    ("mode", "script"),
    [
        ("NO_BACKSLASH_ESCAPES", "SELECT 'C:\\' AS a; SELECT 2;"),
        ("ANSI_QUOTES", 'SELECT 1 AS "a\\"; SELECT 2;'),
        ("", "SELECT 'it\\'s; one' AS a; SELECT 2;"),
    ],
)
def test_the_servers_sql_mode_decides_where_strings_of_a_script_end(server: RawMysql, mode: str, script: str) -> None:
    before = server.query("select @@global.sql_mode")[0][0]
    server.query(f"set global sql_mode = '{mode}'")
    session = MariadbSession(MysqlAddress("root", "d", socket=str(server.socket), tls="disable"), Secrets())
    try:
        summary = drive(session.target("simple"), script, clients=1, threads=1, transactions=3)
        assert (summary["completed"], summary["errors"]) == (3, {})
    finally:
        session.stop()
        server.query(f"set global sql_mode = '{before}'")
