"""pgbench's three workloads: the same tables by both loaders, driven by either tool, with sums checked."""

from __future__ import annotations

import subprocess

import pytest
from raw_server import binary
from workload_trial import Served, Target, Trial, loaded

from ironbench.errors import InputError

pytestmark = pytest.mark.live

KEYS = {"accounts": "aid", "tellers": "tid", "branches": "bid"}


def pgbench(session: Served, *arguments: str) -> str:
    connection = session.target()["connection"]
    where = ["-h", connection["host"], "-p", str(connection["port"]), "-U", "postgres", connection["database"]]
    return subprocess.run([binary("pgbench"), *arguments, *where], capture_output=True, text=True, check=True).stdout


def rows(session: Served) -> dict[str, str | None]:
    """Returns a digest of every row of every table."""
    sql = "select md5(string_agg(t::text, ';' order by {key})) from pgbench_{table} t"
    return {table: session.query(sql.format(key=key, table=table))[0][0] for table, key in KEYS.items()}


def definitions(session: Served) -> list[tuple[str | None, ...]]:
    """Returns columns, options and keys from the system catalogue."""
    return session.query(
        "select relname, attname, format_type(atttypid, atttypmod), attnotnull, reloptions::text from pg_class c "
        "join pg_attribute a on attrelid = c.oid and attnum > 0 where relname like 'pgbench%' and relkind = 'r' "
        "union all select tablename, indexname, indexdef, null, null from pg_indexes where tablename like 'pgbench%' "
        "order by 1, 2"
    )


@pytest.mark.parametrize("fillfactor", [pytest.param("100", marks=pytest.mark.long), "70"])
def test_the_tables_are_those_of_pgbench(served: Served, fillfactor: str) -> None:
    loaded(served, "select-only", scale="2", fillfactor=fillfactor)
    ours = rows(served), definitions(served)
    served.query("drop table pgbench_accounts, pgbench_tellers, pgbench_branches, pgbench_history")
    pgbench(served, "-i", "-s", "2", "-F", fillfactor, "-q")
    assert ours == (rows(served), definitions(served))


def test_a_database_made_by_pgbench_is_used(served: Served) -> None:
    pgbench(served, "-i", "-s", "2", "-q")
    before = served.query("select pg_relation_filenode('pgbench_accounts')")
    assert loaded(served, "tpcb-like", scale="2").reused
    assert served.query("select pg_relation_filenode('pgbench_accounts')") == before
    assert Trial(served, "tpcb-like", scale="2").failed() == set()


@pytest.mark.parametrize("wanted", [{"scale": "1"}, {"scale": "2", "fillfactor": "50"}])
def test_tables_of_strangers_are_refused_and_left_alone(served: Served, wanted: dict[str, str]) -> None:
    pgbench(served, "-i", "-s", "2", "-q")
    with pytest.raises(InputError, match="were not loaded by ironbench") as told:
        loaded(served, "select-only", **wanted)
    assert told.value.hint.startswith("use another database") and "--with scale=…" in told.value.hint
    assert "drop pgbench" not in told.value.hint
    assert served.query("select count(*) from pgbench_accounts") == [("200000",)]


def test_pgbench_drives_what_we_loaded(served: Served) -> None:
    loaded(served, "tpcb-like", scale="2")
    for builtin in ("tpcb-like", "simple-update", "select-only"):
        assert "actually processed: 40/40" in pgbench(served, "-n", "-b", builtin, "-c", "4", "-t", "10")


@pytest.mark.parametrize("name", ["tpcb-like", "simple-update", "select-only"])
def test_all_checks_pass_after_a_trial(target: Target, name: str) -> None:
    loaded(target, name)
    trial = Trial(target, name)
    assert trial.failed() == set()
    if name != "select-only":
        assert "history rows = commits" in trial.checks()


@pytest.mark.parametrize(
    ("check", "sql"),
    [
        ("growth of balances: tellers = accounts", "update pgbench_tellers set tbalance = tbalance + 1 where tid = 3"),
        (
            "growth of balances: branches = accounts",
            "update pgbench_branches set bbalance = bbalance + 1 where bid = 1",
        ),
        (
            "growth of balances: history = accounts",
            "update pgbench_accounts set abalance = abalance + 1 where aid = 77",
        ),
        ("history rows = commits", "insert into pgbench_history (tid, bid, aid, delta) values (1, 1, 1, 0)"),
    ],
)
def test_a_check_fails_when_its_rule_is_broken(target: Target, check: str, sql: str) -> None:
    loaded(target, "tpcb-like")
    trial = Trial(target, "tpcb-like", transactions=10)
    target.query(sql)
    assert check in trial.failed()


def test_workloads_share_one_load(served: Served) -> None:
    assert not loaded(served, "tpcb-like").reused
    assert loaded(served, "simple-update").reused
    assert loaded(served, "select-only").reused
    assert not loaded(served, "select-only", scale="2").reused
