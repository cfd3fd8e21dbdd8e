"""Server statistics of a trial on real servers: a distribution's with contrib modules, and one without."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import eventually
from raw_mysql import LACKING
from raw_server import RawServer
from user import PAUSED, User

from ironbench import engines
from ironbench._core import Connection
from ironbench.model.inside import ScriptCommand
from ironbench.model.system import System

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
DEBIAN = Path("/usr/lib/postgresql/15/bin")
LIBRARIES = ("shared_preload_libraries=pg_stat_statements,auto_explain", "auto_explain.log_min_duration=60000")
FEW = "pg_stat_statements.max=100"
"""The minimum setting."""
TRIAL = (*PAUSED, "--clients", "2", "--duration", "2s", "--warmup", "0.5s")
ROLE = "plain"


@pytest.fixture
def user(place: Path) -> User:
    user = User(place)
    (place / "read.sql").write_text("\\set a random(1, 100)\nselect b from t where a = :a;\n")
    return user


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    if not DEBIAN.is_dir():
        pytest.skip(f"there is no PostgreSQL with contrib modules in {DEBIAN}")
    with RawServer(*LIBRARIES, FEW, programs=DEBIAN) as server:
        boss = server.connect()
        boss.query(f"create role {ROLE} login")
        boss.close()
        yield server


@pytest.fixture
def shop(server: RawServer) -> Iterator[Callable[[str], str]]:
    """A database with a table. The yielded function completes it with SQL and returns the DSN of an ordinary role."""
    boss = server.connect()
    boss.query("create database shop")
    own = server.connect(database="shop")
    own.query("create table t (a int primary key, b int); insert into t select n, n from generate_series(1, 100) n")
    own.query(f"grant select, insert, update, delete on t to {ROLE}; grant create on schema public to {ROLE}")

    def made(sql: str) -> str:
        if sql:
            own.query(sql)
        return f"host={server.host} port={server.port} user={ROLE} dbname=shop"

    yield made
    own.close()
    boss.query("drop database shop with (force)")
    boss.close()


EXTENSION = "create extension pg_stat_statements"


def inside(user: User, record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((user.results / "trials" / record["id"] / "inside.json").read_text())
    return found


def observed(boss: Connection) -> None:
    """Waits until a trial is about to start."""
    sql = "select count(*) from pg_stat_activity where application_name = 'ironbench observer'"
    assert eventually(lambda: boss.query(sql) != [("0",)], 60.0)


def last(user: User) -> tuple[dict[str, Any], dict[str, Any]]:
    record = user.records()[-1]
    return record, inside(user, record)


def test_statements_are_counted_over_the_window_for_an_ordinary_role(user: User, shop: Callable[[str], str]) -> None:
    dsn = shop(EXTENSION)
    for _ in range(2):  # the second trial counts from its own start
        user.measured("run", "script", "read.sql", "--dsn", dsn, *TRIAL)
        record, said = last(user)
        (read,) = [one for one in said["statements"] if one["text"].startswith("select b from t")]
        assert read["text"] == "select b from t where a = $1"
        assert read["calls"] == pytest.approx(record["metrics"]["transactions"], rel=0.3)
        assert read["rows"] == read["calls"] and 0 < read["time_s"] < said["statements_s"] + 1e-6 < 4.0
        assert not [one for one in said["statements"] if "ironbench" in one["text"] or "pg_stat" in one["text"]]
        (plan,) = said["plans"]
        assert plan["steps"] and not plan["generic"] and not plan["failed"]
        assert [one["name"] for one in said["tables"]] == ["t"]
        assert [one["what"] for one in said["missing"]] == ["Executed plans"]
        assert said["notes"] == []
    assert user("report", record["series"], "--format", "text", "-o", "report.txt").code == 0
    report = (user.home / "report.txt").read_text()
    assert "Statement cost in the server" in report and "no command of the scripts took 60000 ms" in report


def test_a_table_that_is_only_read_does_not_grow_whenever_its_use_began(
    user: User, dsn: str, raw_server: RawServer, database: str
) -> None:
    own = raw_server.connect(database=database)
    own.query("create table t (a int primary key, b int); insert into t select n, n from generate_series(1, 5000) n")
    own.close()
    # The table of a copy has not been used yet.
    words = ("--dsn", dsn.replace(f"dbname={database}", "dbname=postgres"), "--template", database)
    user.measured("run", "script", "read.sql", *words, *PAUSED, "--duration", "1s", "--warmup", "0s")
    (table,) = last(user)[1]["tables"]
    assert table["bytes"] == table["bytes_before"] > 100_000, table


@pytest.mark.parametrize(
    ("sql", "why", "remedy"),
    [
        pytest.param(
            "",
            "is loaded, but not created in this database",
            "CREATE EXTENSION pg_stat_statements",
            marks=pytest.mark.long,
        ),
        (f"{EXTENSION}; revoke all on pg_stat_statements from public", "the role lacks SELECT on", "GRANT SELECT ON"),
    ],
    ids=["not made", "not readable"],
)
def test_what_keeps_statements_from_being_read_is_said_with_the_remedy(
    user: User, shop: Callable[[str], str], server: RawServer, sql: str, why: str, remedy: str
) -> None:
    before = (server.directory / "log").read_text().count("ERROR")
    user.measured("run", "script", "read.sql", "--dsn", shop(sql), *TRIAL)
    _, said = last(user)
    assert said["statements"] == []
    missing = next(one for one in said["missing"] if one["what"] == "Cost of each statement")
    assert why in missing["why"] and remedy in missing["remedy"]
    assert (server.directory / "log").read_text().count("ERROR") == before


def test_the_server_that_comes_with_ironbench_says_that_it_has_no_contrib_modules(user: User, dsn: str) -> None:
    user.measured("run", "tpcb-like", "--dsn", dsn, *TRIAL)
    _, said = last(user)
    (missing,) = said["missing"]
    assert "not installed" in missing["why"] and "--set bin=" in missing["remedy"]
    assert {one["name"] for one in said["tables"]} >= {"pgbench_accounts", "pgbench_history"}
    assert len(said["plans"]) == 5 and all(one["steps"] for one in said["plans"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("select pg_stat_statements_reset()", "statements-since-reset"),
        pytest.param(
            "; ".join(f"select {', '.join('1' * n)}" for n in range(1, 250)),
            "statements-evicted",
            marks=pytest.mark.long,
        ),
    ],
    ids=["reset", "evicted"],
)
def test_counters_that_are_disturbed_in_a_trial_are_noted_as_incomplete(
    user: User, shop: Callable[[str], str], server: RawServer, what: str, code: str
) -> None:
    dsn = shop(EXTENSION)
    boss = server.connect(database="shop")
    with user.begun("run", "script", "read.sql", "--dsn", dsn, *PAUSED, "--duration", "5s", "--warmup", "0s") as begun:
        observed(boss)
        time.sleep(2.0)
        boss.query(what)
        told, _ = begun.end()
    boss.close()
    assert told.code in (0, 3), told.stderr
    _, said = last(user)
    assert code in [one["code"] for one in said["notes"]]


@pytest.mark.timeout(120)
def test_a_server_that_somebody_restarts_in_a_trial_ends_it_and_leaves_its_record(user: User) -> None:
    if not DEBIAN.is_dir():
        pytest.skip(f"there is no PostgreSQL with contrib modules in {DEBIAN}")
    with RawServer(*LIBRARIES, programs=DEBIAN) as own:
        boss = own.connect()
        boss.query(f"{EXTENSION}; create table t (a int primary key, b int)")
        boss.close()
        dsn = f"host={own.host} port={own.port} user=postgres dbname=postgres"
        with user.begun("run", "script", "read.sql", "--dsn", dsn, *PAUSED, "--duration", "20s") as begun:
            boss = own.connect()
            observed(boss)
            boss.close()
            time.sleep(2.0)
            own.stop()
            own.start()
            told, took_s = begun.end()
        assert told.code == 1 and took_s < 90, told.stderr
        (record,) = user.records()
        assert record["status"] in ("voided", "failed")
        assert inside(user, record)["plans"], "what was known before stays"


def test_a_command_that_cannot_be_explained_is_said_and_nothing_is_executed(dsn: str) -> None:
    system, secrets = engines.get("postgres").validated(System("postgres", "test", dsn=dsn), 1)
    with engines.running(system, secrets, 1) as session:
        session.query("create table t (a int); create table day (on_day date); create sequence s")
        texts = (
            ("insert into t values ($1)", "insert into t values (nextval('s'))"),
            ("select * from gone where a = $1", "select * from gone where a = 1"),
            ("delete from t where a = $1", ""),
            ("truncate t", "truncate t"),
            ("select 1; drop table t", "select 1; drop table t"),
            ("select * from day where on_day = $1", "select * from day where on_day = 0"),
        )
        asked = [ScriptCommand("a.sql", number, *pair) for number, pair in enumerate(texts, 1)]
        said = engines.get("postgres").administration.insight.begin(session, asked, own=False)
        insert, gone, delete, several, day = said.plans
        assert insert.steps == ("Insert on t", "Result")
        assert 'relation "gone" does not exist' in gone.failed
        assert delete.generic and delete.steps[0] == "Delete on t"
        assert "several statements" in several.failed
        # The value 0 is not a date, so the plan is generic.
        assert day.generic and not day.failed and day.steps == ("Seq Scan on day",)
        assert session.query("select count(*) from t") == [("0",)]
        assert session.query("select last_value, is_called from s") == [("1", "f")]
        assert session.query("show statement_timeout") == [("0",)]


def test_a_command_of_a_branch_that_is_not_taken_has_that_as_its_reason(user: User, shop: Callable[[str], str]) -> None:
    (user.home / "branch.sql").write_text(
        "\\set c random(1, 100)\n\\if :c < 0\nselect b from t where a = :c;\n\\endif\nselect 1 as x \\gset\n"
        "select b from t where b = :x;\n"
    )
    user.measured("run", "script", "branch.sql", "--dsn", shop(""), *PAUSED, "--duration", "0.5s", "--warmup", "0s")
    branch, _, answer = (one["failed"] for one in last(user)[1]["plans"])
    assert "first transaction does not send it" in branch and "answers" not in branch
    assert "answers of the server" in answer


@pytest.mark.long
def test_a_statement_that_fails_only_in_the_second_trial_is_said_there(user: User, dsn: str) -> None:
    (user.home / "once.sql").write_text("select count(*) from pass_by;\n")
    (user.home / "lab.toml").write_text(
        f"""question = "Once?"
system.dsn = "{dsn}"
workload.name = "script"
workload.files = ["once.sql"]
[load]
think_time = "5ms"
duration = "0.5s"
warmup = "0s"
on_error = "continue"
[measure]
repeats = 2
quiet = "0s"
[vary]
clients = [1, 2]
"""
    )
    boss_dsn = dict(pair.split("=") for pair in dsn.split())
    server = RawServer.__new__(RawServer)
    server.directory, server.port = Path(boss_dsn["host"]), int(boss_dsn["port"])
    boss = server.connect(database=boss_dsn["dbname"])
    boss.query("create table pass_by (a int)")
    with user.begun("lab", "run", "lab.toml") as begun:
        while not list(user.results.glob("**/trials/*/record.json")) and begun.process.poll() is None:
            if list(user.home.glob("**/trials/*/record.json")):
                break
            time.sleep(0.05)
        boss.query("drop table pass_by")
        begun.end()
    boss.close()
    files = sorted(user.home.glob("**/trials/*/inside.json"), key=lambda path: path.stat().st_mtime)
    plans = [json.loads(path.read_text())["plans"][0] for path in files]
    assert plans[0]["steps"] and "does not exist" in plans[-1]["failed"]


@pytest.mark.parametrize("protocol", ["prepared", pytest.param("simple", marks=pytest.mark.long)])
def test_plans_as_they_were_executed_are_read_from_a_log_that_can_be_read(user: User, protocol: str) -> None:
    if not DEBIAN.is_dir():
        pytest.skip(f"there is no PostgreSQL with contrib modules in {DEBIAN}")
    (user.home / "schema.sql").write_text(
        "create table t (a int primary key, b int); insert into t select n, n from generate_series(0, 20000) n;\n"
    )
    (user.home / "read.sql").write_text(
        "select b\n  from t where a = :client_id;\nselect count(*)\nfrom t;\nbegin;\nend;\n"
    )
    libraries = ("shared_preload_libraries=auto_explain", "auto_explain.log_min_duration=0", f"bin={DEBIAN}")
    words = [word for one in libraries for word in ("--set", one)]
    user.measured(
        *("run", "script", "read.sql", "--setup", "schema.sql", "--protocol", protocol, "--transactions", "20"),
        *("--warmup", "0s", *words),
    )
    record, said = last(user)
    by_key, whole = said["executed"]
    assert by_key["steps"] == ["Index Scan using t_pkey on t"] and by_key["count"] == whole["count"] == 20
    assert whole["steps"] == ["Aggregate", "Seq Scan on t"] and 0 < whole["slowest_s"] < 10
    assert "Executed plans" not in [one["what"] for one in said["missing"]]
    assert user("report", record["series"], "--format", "md", "-o", "report.md").code == 0
    assert "Executed plans (auto_explain)" in (user.home / "report.md").read_text().replace("\\", "")


@pytest.mark.long
def test_the_commands_of_the_page_run(user: User, shop: Callable[[str], str]) -> None:
    page = (ROOT / "docs" / "understand" / "inside-the-server.md").read_text()
    dsn = shop(EXTENSION)
    (user.home / "shop.sql").write_text("select count(*) from t;\n")
    commands = [shlex.split(line)[1:] for line in re.findall(r"^ironbench (?:run|report) .*$", page, re.M)]
    assert len(commands) == 4
    for words in commands:
        if "mariadb" in words and LACKING:
            continue
        words = [dsn if word.startswith("postgresql://") else word for word in words]
        user.measured(*words, *(("--duration", "2s", "--warmup", "0s") if words[0] == "run" else ()))
    own = [one for one in user.records() if one["system"]["dsn"] is None]
    assert inside(user, own[0])["statements"], "on a server of its own ironbench makes the extension"
    assert len(own) == 1 or len(inside(user, own[1])["statements"]) > 3
    assert "Statement cost in the server" in (user.home / "report.html").read_text()
