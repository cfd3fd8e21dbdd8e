"""sysbench's tests on real engines: by ironbench on its own tables and on sysbench's, and sysbench on ironbench's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from factories import rarely_mariadb
from raw_server import RawServer
from workload_trial import Filed, Served, Target, Trial, loaded

from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import InputError
from ironbench.workloads.sysbench import WORKLOAD, events

pytestmark = pytest.mark.live

SIZE = {"tables": "2", "table_size": "2000"}
on_engines = rarely_mariadb("postgres", "sqlite", argument="target", indirect=True)
with_sysbench = pytest.mark.skipif(shutil.which("sysbench") is None, reason="sysbench is not installed")


def sysbench(session: Served | MariadbSession, test: str, command: str, *more: str) -> str:
    """Runs sysbench on the database of a session, and returns its output."""
    connection = session.target()["connection"]
    if session.engine == "postgres":
        where = ["--db-driver=pgsql", f"--pgsql-host={connection['host']}", f"--pgsql-port={connection['port']}"]
        where += [f"--pgsql-user={connection['user']}", f"--pgsql-db={connection['database']}"]
    else:
        where = [f"--mysql-socket={connection['socket']}", "--mysql-user=root", f"--mysql-db={connection['database']}"]
    words = ["sysbench", test, *where, *(f"--{name}={value}" for name, value in SIZE.items()), *more, command]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout


@on_engines
@pytest.mark.parametrize("test", events.TESTS)
def test_all_checks_pass_after_a_trial(target: Target, test: str) -> None:
    loaded(target, "sysbench", test=test, **SIZE)
    trial = Trial(target, "sysbench", transactions=25, test=test, rand_type="uniform", **SIZE)
    assert trial.failed() == set()
    measured = WORKLOAD.measured(target, WORKLOAD.validated({"test": test, **SIZE}), None, trial.summary)
    each = {"oltp_read_write": 20, "oltp_read_only": 16, "oltp_write_only": 6}.get(test, 1)
    assert measured["queries_per_s"] == pytest.approx(each * trial.summary["transactions"] / trial.summary["elapsed_s"])


@on_engines
@pytest.mark.parametrize(
    ("test", "check", "sql"),
    [
        ("oltp_read_write", "tables without some of their loaded rows", "delete from sbtest2 where id = 17"),
        ("oltp_read_write", "rows added", "insert into sbtest1 (id, k, c, pad) values (5000, 1, '', '')"),
        ("oltp_update_index", "growth of k = updates", "update sbtest2 set k = k + 1 where id = 3"),
        ("oltp_insert", "rows inserted = events", "delete from sbtest2 where id > 2000"),
        ("oltp_delete", "rows deleted, at most one per event", "delete from sbtest1 where id <= 1000"),
    ],
)
def test_a_check_fails_when_its_rule_is_broken(target: Target, test: str, check: str, sql: str) -> None:
    loaded(target, "sysbench", test=test, **SIZE)
    trial = Trial(target, "sysbench", transactions=10, test=test, **SIZE)
    assert trial.failed() == set()
    target.query(sql)
    assert trial.failed() == {check}


@pytest.mark.parametrize("protocol", ["simple", pytest.param("extended", marks=pytest.mark.long)])
def test_texts_are_the_same_in_every_protocol(served: Served, protocol: str) -> None:
    loaded(served, "sysbench", **SIZE)
    for used in ("prepared", protocol):
        assert Trial(served, "sysbench", transactions=20, protocol=used, **SIZE).failed() == set()
        wrong = "c !~ '^([0-9]{11}-){9}[0-9]{11} *$' or pad !~ '^([0-9]{11}-){4}[0-9]{11} *$'"
        assert served.query(f"select count(*) from sbtest1 where {wrong}") == [("0",)]


def test_events_are_restarted_after_deadlocks_and_duplicate_keys(served: Served) -> None:
    few = {"table_size": "12", "rand_type": "uniform"}
    loaded(served, "sysbench", **few)
    trial = Trial(served, "sysbench", clients=8, transactions=20, test="oltp_write_only", **few)
    assert trial.failed() == set()
    assert set(trial.summary["errors"]) <= {"23505", "40P01"} and trial.summary["errors"].get("23505", 0) > 0
    assert trial.summary["retries"] == sum(trial.summary["errors"].values())


@pytest.mark.long
def test_a_session_prepares_each_statement_once(joined: MariadbSession) -> None:
    """Like sysbench: ten selects by id are one statement; with BEGIN and COMMIT there are 11."""
    one = {"table_size": "2000"}
    loaded(joined, "sysbench", **one)
    count = "select variable_value from information_schema.global_status where variable_name = 'com_stmt_prepare'"
    before = int(joined.query(count)[0][0] or 0)
    Trial(joined, "sysbench", clients=1, transactions=3, **one)
    assert int(joined.query(count)[0][0] or 0) - before == 11


@on_engines
def test_a_table_size_of_another_load_is_refused_and_left_alone(target: Target) -> None:
    loaded(target, "sysbench", **SIZE)
    with pytest.raises(InputError, match="contains sysbench version=1 tables=2 table_size=2000, not"):
        loaded(target, "sysbench", own_server=False, tables="2", table_size="3000")
    target.query("delete from sbtest1 where id = 5")
    with pytest.raises(InputError, match="no longer contains what ironbench loaded"):
        loaded(target, "sysbench", own_server=False, **SIZE)


@on_engines
def test_missing_tables_are_named(target: Target) -> None:
    target.query("create table sbtest1 (id integer primary key, k integer, c char(120), pad char(60))")
    missing = r"do not match `sysbench … prepare` with tables=2 table_size=2000 \(missing: sbtest2\)"
    with pytest.raises(InputError, match=missing) as told:
        loaded(target, "sysbench", own_server=False, **SIZE)
    assert "--with tables=… --with table_size=…" in told.value.hint


@on_engines
def test_the_next_insert_gets_the_next_id(target: Target) -> None:
    loaded(target, "sysbench", **SIZE)
    target.query("insert into sbtest1 (k, c, pad) values (1, 'a', 'b')")
    assert target.query("select max(id) from sbtest1") == [("2001",)]
    assert loaded(target, "sysbench", **SIZE).reused


@pytest.mark.long
def test_connections_wait_for_each_other_where_a_load_locks_the_table(joined: MariadbSession) -> None:
    """The server's limit for waits is 1 s, and a piece of this table takes longer on a slow machine."""
    assert loaded(joined, "sysbench", connections=4, table_size="200000").rows == 200_000
    many = {"tables": "3", "table_size": "20000"}
    assert loaded(joined, "sysbench", connections=4, **many).rows == 60_000


@on_engines
def test_deletes_start_from_all_rows(target: Target) -> None:
    loaded(target, "sysbench", test="oltp_delete", **SIZE)
    chosen = WORKLOAD.validated({"test": "oltp_delete", **SIZE})
    assert not WORKLOAD.needs_untouched(target, chosen)
    Trial(target, "sysbench", transactions=5, test="oltp_delete", **SIZE)
    assert WORKLOAD.needs_untouched(target, chosen)


@with_sysbench
@pytest.mark.long
@pytest.mark.parametrize("engine", ["served", "joined"])
def test_either_tool_runs_on_the_tables_of_the_other(engine: str, request: pytest.FixtureRequest) -> None:
    session: Served | MariadbSession = request.getfixturevalue(engine)
    sysbench(session, "oltp_read_write", "prepare")
    theirs, share = definitions(session), hot_share(session)
    assert 0.7 < share < 0.83
    assert loaded(session, "sysbench", own_server=False, **SIZE).reused
    for test in events.TESTS:
        if test != "oltp_delete":
            trial = Trial(session, "sysbench", transactions=25, test=test, **SIZE)
            assert trial.failed() == set(), test
    sysbench(session, "oltp_read_write", "cleanup")
    assert not loaded(session, "sysbench", **SIZE).reused
    assert definitions(session) == theirs
    # Five standard deviations of the difference between two shares of 4,000 rows.
    assert abs(hot_share(session) - share) < 0.05
    for test in events.TESTS:
        out = sysbench(session, test, "run", "--threads=4", "--events=100", "--time=0")
        assert re.search(r"transactions: +100 ", out), out


def hot_share(session: Served | MariadbSession) -> float:
    """Returns the share of rows whose `k` is in the middle of its range, where `special` draws three quarters of all
    numbers."""
    hot = [session.query(f"select count(*) from sbtest{n} where k between 995 and 1011")[0][0] for n in (1, 2)]
    return sum(map(int, filter(None, hot))) / 4000


def definitions(session: Served | MariadbSession) -> list[tuple[str | None, ...]]:
    """Returns columns and keys of both tables from the system catalogue."""
    if session.engine == "mariadb":
        columns = "table_name, column_name, column_type, column_default, extra"
        return session.query(
            f"select {columns} from information_schema.columns where table_schema = database() and "
            "table_name like 'sbtest%' union all select table_name, index_name, column_name, non_unique, '' "
            "from information_schema.statistics where table_schema = database() and table_name like 'sbtest%' "
            "order by 1, 2, 3"
        )
    return session.query(
        "select relname, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid) "
        "from pg_class c join pg_attribute a on attrelid = c.oid and attnum > 0 "
        "left join pg_attrdef on adrelid = attrelid and adnum = attnum where relname ~ '^sbtest.$' "
        "union all select tablename, indexname, indexdef, null, null from pg_indexes where tablename like 'sbtest%' "
        "order by 1, 2"
    )


@with_sysbench
@pytest.mark.long
def test_both_tools_send_the_same_statements() -> None:
    """Compares the distinct statements in the server's log."""
    with RawServer("log_statement=all", "log_line_prefix=%a|") as server:
        session = Served(server, "postgres")
        loaded(session, "sysbench", **SIZE)
        for test in (test for test in events.TESTS if test != "oltp_insert"):
            start = (server.directory / "log").stat().st_size
            sysbench(session, test, "run", "--threads=1", "--events=60", "--time=0")
            middle = (server.directory / "log").stat().st_size
            Trial(session, "sysbench", clients=1, transactions=60, test=test, **SIZE)
            log = (server.directory / "log").read_text()
            assert prepared(log[start:middle]) == prepared(log[middle:]) != set(), test


def prepared(log: str) -> set[str]:
    """Returns the prepared statements that a log shows."""
    texts = re.findall(r"LOG:  execute \S+: ((?:.+\n)(?:\t.*\n)*)", log)
    return {" ".join(text.split()).removesuffix(";") for text in texts}


def test_many_tables_fit_into_one_expression_of_sqlite(place: Path) -> None:
    session = Filed(place)
    many = {"tables": "400", "table_size": "3"}
    assert not loaded(session, "sysbench", **many).reused
    assert loaded(session, "sysbench", **many).reused
    session.close()
