"""ODBC: real drivers on real databases, refusals, and crashes of a driver."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from odbc_drivers import DRIVERS, needs
from raw_mysql import PASSWORD as MYSQL_PASSWORD
from raw_mysql import RawMysql
from raw_server import PASSWORD, RawServer
from user import User

from ironbench import _core, engines
from ironbench.errors import FailureError
from ironbench.host import processes
from ironbench.host.job import ChildPlacement
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.trial.drive.run import Tasks, compiled_plan, drive_in_child
from ironbench.workloads import ScriptSource

pytestmark = pytest.mark.live

ENGINE = engines.get("odbc")
RUN = ("--duration", "0.5s", "--warmup", "0s", "--no-observe", "--clients", "2")


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.fixture
def file(place: Path) -> str:
    return f"odbc:Driver=SQLite3;Database={place}/x.db"


@pytest.fixture
def served(raw_server: RawServer, database: str) -> str:
    server = f"Server={raw_server.host};Port={raw_server.port};Database={database}"
    return f"odbc:Driver={{PostgreSQL Unicode}};{server};UID=postgres"


@pytest.fixture
def mysql(raw_mysql: RawMysql) -> Iterator[str]:
    raw_mysql.query("create database through_odbc; grant all on through_odbc.* to password_user")
    here = f"Server=127.0.0.1;Port={raw_mysql.port};Database=through_odbc"
    yield f"odbc:Driver={{MariaDB Unicode}};{here};UID=password_user;PWD={{{MYSQL_PASSWORD}}}"
    raw_mysql.query("drop database through_odbc")


@pytest.fixture(
    params=[
        pytest.param("file", marks=needs["SQLite3"]),
        pytest.param("served", marks=needs["PostgreSQL Unicode"]),
        pytest.param("mysql", marks=[needs["MariaDB Unicode"], pytest.mark.long]),
    ]
)
def dsn(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def session(dsn: str) -> Session:
    engine = ENGINE.engine_for(dsn)
    return engine.start(*engine.validated(System(engine.name, "test", dsn=dsn), 2), 2)


def test_tpcb_like_runs_and_its_checks_hold_whatever_the_driver(user: User, dsn: str) -> None:
    user.measured("run", "tpcb-like", "--dsn", dsn, *RUN, "--max-tries", "10")
    [record] = user.records()
    assert record["status"] in ("ok", "suspect") and all(check["passed"] for check in record["checks"])
    assert record["system"]["engine"].startswith("odbc-") and record["metrics"]["throughput"] > 0
    assert record["metrics"]["client_cpu_per_transaction_s"] > 0
    assert "UID" not in str(record) and "PWD" not in str(record)
    for path in user.results.rglob("*"):
        assert path.is_dir() or MYSQL_PASSWORD.encode() not in path.read_bytes(), path


def test_a_session_answers_as_those_of_other_engines_do(dsn: str) -> None:
    running = session(dsn)
    try:
        assert running.query("select 1 as a, 'x' as b, null as c; select 2 as d")[-1] == ("2",)
        line = running.line()
        assert line.query("select 1 as a, 'x' as b, null as c") == [("1", "x", None)]
        assert line.columns() == ["a", "b", "c"]
        rows, begun_s, ended_s = line.measure("select 1 union all select 2")
        assert rows == 2 and begun_s < ended_s
        with pytest.raises(FailureError, match="no_such_table"):
            line.query("select * from no_such_table")
        assert line.query("select 3") == [("3",)]
        line.close()
        facts = running.facts()
        assert facts["version"] and facts["driver"] and facts["settings"] and "untried" not in facts["dialect"]
    finally:
        running.stop()


def test_a_statement_that_fails_at_the_start_of_a_connection_is_named(dsn: str) -> None:
    from ironbench.engines.odbc.dsn import parse
    from ironbench.engines.odbc.process import OdbcLine

    address, secrets = parse(dsn)
    with pytest.raises(FailureError, match="connection setup failed at 'set no such': ") as told:
        OdbcLine(address.whole(secrets), ("set no such",))
    assert "exit" not in told.value.cause and "signal" not in told.value.cause


def _counted(user: User, dsn: str, read: Callable[[], list[int]]) -> tuple[dict[str, object], list[int]]:
    """Returns the record of a run on existing data, and the increase of the server's counters in the meantime."""
    assert user("run", "tpcb-like", "--dsn", dsn, *RUN, "--max-tries", "10").code in (0, 3)
    before = read()
    user.measured("run", "tpcb-like", "--dsn", dsn, *RUN[2:], "--transactions", "200", "--max-tries", "10")
    return user.records()[-1], [now - then for then, now in zip(before, read(), strict=True)]


@needs["PostgreSQL Unicode"]
def test_commits_and_rows_are_those_that_postgres_counted(user: User, raw_server: RawServer, served: str) -> None:
    database = served.partition("Database=")[2].partition(";")[0]

    def read() -> list[int]:
        time.sleep(1.2)  # a backend reports its counters once a second (PostgreSQL 18 documentation, 27.2.2)
        boss = raw_server.connect(database=database)
        [rows] = boss.query(
            f"select xact_commit, (select n_tup_ins from pg_stat_user_tables where relname = 'pgbench_history'), "
            f"(select sum(n_tup_upd) from pg_stat_user_tables where relname like 'pgbench_%') "
            f"from pg_stat_database where datname = '{database}'"
        )
        boss.close()
        return [int(value or 0) for value in rows]

    record, (commits, inserted, updated) = _counted(user, served, read)
    assert (inserted, updated) == (400, 1200), record["cause"]
    assert 400 <= commits < 400 + 150, "the rest is what both sides ask around a trial"


@pytest.mark.long
@needs["MariaDB Unicode"]
def test_commits_and_rows_are_those_that_mariadb_counted(user: User, raw_mysql: RawMysql, mysql: str) -> None:
    def read() -> list[int]:
        found = (raw_mysql.status(name) for name in ("Com_commit", "Com_rollback", "Handler_update"))
        return [*found, int(raw_mysql.query("select count(*) from through_odbc.pgbench_history")[0][0] or 0)]

    record, (commits, rollbacks, updated, inserted) = _counted(user, mysql, read)
    assert (commits, rollbacks, inserted) == (400, 0, 400), record["cause"]
    assert 1200 - 20 <= updated <= 1200 + 20, "an update that changes nothing is not counted"


def test_gset_gives_variables_and_a_failed_statement_stops(user: User, dsn: str, tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(
        "begin;\nselect 7 as seven, 'a b' as text \\gset p_\n"
        "\\if :p_seven = 7\ninsert into made values (:p_seven, :p_text);\n\\endif\ncommit;\n"
    )
    running = session(dsn)
    running.query("create table made (n integer, t varchar(9))")
    user.measured("run", "script", str(script), "--dsn", dsn, *RUN[2:-1], "1", "--transactions", "5")
    assert running.query("select n, t, count(*) from made group by 1, 2") == [("7", "a b", "5")]
    running.stop()
    script.write_text("select * from no_such_table;\n")
    told = user("run", "script", str(script), "--dsn", dsn, *RUN)
    assert told.code == 1 and "no_such_table" in told.stderr + told.stdout


@needs["MariaDB Unicode"]
@pytest.mark.parametrize(
    ("mode", "script"),
    [
        ("", r"SELECT 'it\'s; one' AS a; # don't" + "\nSELECT 2;"),
        ("NO_BACKSLASH_ESCAPES", r"SELECT 'C:\' AS a; SELECT 2;"),
        ("ANSI_QUOTES", r"""SELECT 1 AS "a\"; SELECT 2;"""),
    ],
)
def test_scripts_for_mariadb_are_cut_by_its_own_rules_for_strings(
    raw_mysql: RawMysql, mysql: str, mode: str, script: str
) -> None:
    before = raw_mysql.query("select @@global.sql_mode")[0][0]
    raw_mysql.query(f"set global sql_mode = '{mode}'")
    running = session(mysql)
    try:
        assert str(running.target()["core"]["sql_mode"]) == mode
        tasks = Tasks([ScriptSource("s", script, 1)])
        plan = compiled_plan(running.target(), tasks, Load(clients=1, duration_s=None, transactions=3), ())
        summary = json.loads(drive_in_child(plan, _core.Progress(), ChildPlacement()).summary)
        assert (summary["completed"], summary["errors"]) == (3, {})
    finally:
        running.stop()
        raw_mysql.query(f"set global sql_mode = '{before}'")


def test_combined_commands_run_with_every_driver_and_are_rolled_back(dsn: str) -> None:
    from ironbench.engines.odbc import databases, driver, trial_child
    from ironbench.engines.odbc.dsn import parse

    address, secrets = parse(dsn)
    connection = driver.connect(address.whole(secrets), 15)
    connection.cursor().execute("create table combined (n integer, t varchar(9))")
    commands = [
        ("begin; insert into combined values (?, '?;')", "", True),
        ("insert into nowhere values (2, '')", "", False),
        ("insert into combined values (?, ?); select count(*) as c from combined where n > ?", "gset", True),
        ("insert into combined values (5, ''); commit", "", True),
        ("select 5 as a; select 6 as b", "gset", True),
        ("select 5 as a; select 6 as b", "aset", True),
    ]
    client = trial_child.OdbcClient(connection, commands, databases.of(driver.identification(connection)["product"]))
    begin, fail, count, end, last, each = client.steps
    for _ in range(2):
        assert begin((1,)) is True
        with pytest.raises(driver.package().Error, match="nowhere"):
            fail(())
        client.rollback()
    assert connection.cursor().execute("select count(*) from combined").fetchval() == 0
    assert (begin((1,)), count((7, "x", 6)), end(())) == (True, (True, 1, [("c", "1")]), False)
    assert connection.cursor().execute("select count(*) from combined").fetchval() == 3
    assert (last(()), each(())) == ((False, 1, [("b", "6")]), (False, 1, [("a", "5"), ("b", "6")]))
    connection.cursor().execute("drop table combined")
    connection.close()


@needs["SQLite3"]
def test_a_transaction_of_combined_commands_is_one_of_odbcs_calls_where_there_is_no_statement_for_it(file: str) -> None:
    from dataclasses import replace

    from ironbench.engines.odbc import databases, driver, trial_child
    from ironbench.engines.odbc.dsn import parse

    connection = driver.connect(parse(file)[0].whole(Secrets()), 15)
    connection.cursor().execute("create table called (n integer)")
    kind = replace(databases.of("SQLite"), calls=True, splits=False)
    client = trial_child.OdbcClient(connection, [("begin; insert into called values (?)", "", True)], kind)
    assert client.steps[0]((1,)) is True and not connection.autocommit
    client.rollback()
    assert connection.autocommit and connection.cursor().execute("select count(*) from called").fetchval() == 0
    connection.close()


def test_a_missing_driver_is_refused_by_naming_those_that_are_there(user: User) -> None:
    if not DRIVERS:
        pytest.skip("pyodbc or libodbc is not installed")
    told = user("run", "select-only", "--dsn", "odbc:Driver={No Such};Server=h;PWD=geheim")
    assert told.code == 2 and "geheim" not in told.stderr
    assert all(name in told.stderr for name in DRIVERS)
    told = user("run", "select-only", "--dsn", "odbc:nowhere")
    assert told.code == 2 and "data sources:" in told.stderr


@needs["SQLite3"]
def test_an_engine_that_is_named_and_is_not_the_one_behind_the_driver_is_refused(user: User, file: str) -> None:
    told = user("run", "select-only", "--engine", "odbc-mariadb", "--dsn", file, *RUN)
    assert told.code == 2 and "odbc-sqlite" in told.stderr
    assert user("run", "select-only", "--engine", "odbc-sqlite", "--dsn", file, "--plan").code == 0


@needs["PostgreSQL Unicode"]
def test_a_wrong_password_is_refused_and_shown_nowhere(user: User, raw_server: RawServer) -> None:
    wrong = "w r0ng;{pw"
    here = f"Driver={{PostgreSQL Unicode}};Server=127.0.0.1;Port={raw_server.port};Database=postgres;UID=scram_user"
    told = user("run", "select-only", "--dsn", f"odbc:{here};PWD={{{wrong}}}", *RUN)
    assert told.code == 2 and "password" in told.stderr and wrong not in told.stderr + told.stdout
    assert session(f"odbc:{here};PWD={{{PASSWORD}}}").query("select current_user") == [("scram_user",)]


def _children(of: int) -> list[int]:
    direct = processes.children(of)
    return [*direct, *(deeper for one in direct for deeper in _children(one))]


def _when_driving(pid: int, what: Callable[[int], None]) -> None:
    """Calls `what` on the driving process once it drives."""
    for _ in range(600):
        for child in _children(pid):
            try:
                if b"ironbench.host.job" in Path(f"/proc/{child}/cmdline").read_bytes() and _busy(child):
                    return what(child)
            except OSError:
                continue
        time.sleep(0.05)
    return None


def _busy(pid: int) -> bool:
    """Returns whether the process has connected: then it has threads for its clients."""
    return any((task / "comm").read_text().startswith("drive-") for task in Path(f"/proc/{pid}/task").iterdir())


@needs["SQLite3"]
def test_a_driver_that_crashes_its_process_voids_the_trial(user: User, file: str) -> None:
    crash = threading.Thread(target=_when_driving, args=(os.getpid(), lambda pid: os.kill(pid, signal.SIGSEGV)))
    crash.start()
    told = user("run", "select-only", "--dsn", file, "--duration", "15s", "--warmup", "0s", "--no-observe")
    crash.join()
    record = user.records()[-1]
    assert told.code != 0 and record["status"] == "voided" and "SIGSEGV" in record["cause"]


@needs["SQLite3"]
def test_transactions_by_calls_keep_what_was_committed_alone(file: str) -> None:
    import pyodbc

    from ironbench.engines.odbc.databases import KINDS
    from ironbench.engines.odbc.trial_child import OdbcClient

    [kind] = [one for one in KINDS if one.title == "SQLite"]
    connection = pyodbc.connect(file.removeprefix("odbc:"), autocommit=True)
    connection.execute("create table t (n integer)")
    texts = ("begin", "insert into t values (?)", "commit", "rollback", "end transaction;")
    client = OdbcClient(connection, [(text, "", False) for text in texts], replace(kind, calls=True))
    begin, insert, commit, roll_back, end = range(len(texts))
    assert [client.steps[begin](()), client.steps[insert]((1,)), client.steps[commit](())] == [True, True, False]
    assert [client.steps[begin](()), client.steps[insert]((2,)), client.steps[roll_back](())] == [True, True, False]
    client.steps[begin](())
    client.steps[insert]((3,))
    client.rollback()
    assert [client.steps[begin](()), client.steps[insert]((4,)), client.steps[end](())] == [True, True, False]
    client.steps[insert]((5,))
    seen = pyodbc.connect(file.removeprefix("odbc:"), autocommit=True).execute("select n from t order by n").fetchall()
    assert [row[0] for row in seen] == [1, 4, 5]


@pytest.mark.long
@pytest.mark.parametrize("weight", ["light", "heavy"])
def test_the_order_system_runs_and_its_checks_hold_whatever_the_driver(user: User, dsn: str, weight: str) -> None:
    words = ("run", "igen-oltp", "--dsn", dsn, "--with", f"weight={weight}", "--max-tries", "50")
    user.measured(*words, *RUN)
    [record] = user.records()
    assert record["checks"] and all(check["passed"] for check in record["checks"])


@pytest.mark.long
def test_all_22_answers_are_right_whatever_the_driver_and_refreshed_rows_are_gone(user: User, dsn: str) -> None:
    user.measured("run", "tpch", "--dsn", dsn, "--with", "sf=0.01", "--no-observe")
    [record] = user.records()
    assert [(check["passed"], check["actual"]) for check in record["checks"]] == [(True, "22 right")]


def test_a_workload_whose_ability_is_missing_is_refused_before_anything_starts(user: User, place: Path) -> None:
    if "SQLite3" not in DRIVERS:
        pytest.skip("there is no driver to ask")
    told = user("run", "populate", "--dsn", f"odbc:Driver=SQLite3;Database={place}/x.db")
    assert told.code == 2 and "lacks" in told.stderr and user.records() == []


@needs["SQLite3"]
def test_a_data_source_of_odbc_ini_is_named_alone(user: User, place: Path) -> None:
    sources = place / "odbc.ini"
    sources.write_text(f"[shelf]\nDriver = SQLite3\nDatabase = {place}/x.db\n")
    user.measured("run", "select-only", "--dsn", "odbc:shelf", *RUN, ODBCINI=str(sources))
    [record] = user.records()
    assert record["system"]["dsn"] == "odbc:DSN=shelf" and record["system"]["engine"].endswith("sqlite")


@pytest.mark.long
@needs["PostgreSQL Unicode"]
def test_a_server_that_hangs_for_good_voids_the_trial_and_nothing_waits_for_its_driver(user: User) -> None:
    with RawServer() as server:
        assert server.process is not None
        here = f"Server={server.host};Port={server.port};Database=postgres;UID=postgres"
        dsn = f"odbc:Driver={{PostgreSQL Unicode}};{here}"
        hung: list[int] = []

        def hang(_: int) -> None:
            time.sleep(1.0)
            assert server.process is not None
            hung.extend(_children(server.process.pid))
            for pid in hung:
                os.kill(pid, signal.SIGSTOP)

        watching = threading.Thread(target=_when_driving, args=(os.getpid(), hang))
        watching.start()
        try:
            told = user("run", "tpcb-like", "--dsn", dsn, "--duration", "3s", "--warmup", "0s", "--no-observe")
        finally:
            watching.join()
            for pid in hung:
                os.kill(pid, signal.SIGCONT)
    [record] = user.records()
    assert told.code == 1 and record["status"] == "voided" and user.nothing_runs()
