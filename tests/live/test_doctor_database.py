"""`ironbench doctor --dsn` finds a database's problems on a real server, for any role, and changes nothing."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from raw_mysql import LACKING, RawMysql
from raw_server import RawServer, free_port
from user import User

from ironbench import engines
from ironbench.engines.examination import Examination, ExaminedServer, examine
from ironbench.engines.postgres.probes import EXAMINATION
from ironbench.model.diagnosis import Diagnosis, Severity, ok
from ironbench.model.system import System

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]
DEBIAN = Path("/usr/lib/postgresql/15/bin")
SPOILED = (
    *("full_page_writes=off", "synchronous_commit=off", "autovacuum=off", "enable_hashjoin=off", "log_statement=all"),
    *("track_activities=off", "checkpoint_timeout=1min", "max_prepared_transactions=2", "work_mem=64kB"),
    *("effective_cache_size=16MB", "checkpoint_completion_target=0.5", "max_connections=20"),
)
TABLES = """
    create table parent (id int primary key, label text);
    create table child (id int, parent int references parent, filler text);
    insert into parent select n, 'p' from generate_series(1, 100) n;
    insert into child select n, 1 + n % 100, repeat('x', 200) from generate_series(1, 60000) n;
    delete from parent where id not in (select parent from child);
    insert into parent values (1000, 'p');
    delete from parent where id = 1000;
    create index twice_a on child (id);
    create index twice_b on child (id);
    create table kept (id int) with (autovacuum_enabled = false);
    create table puffed (id int, filler text);
    insert into puffed select n, repeat('x', 1000) from generate_series(1, 20000) n;
    delete from puffed where id % 10 <> 0;
"""


@pytest.fixture(scope="module")
def spoiled() -> Iterator[str]:
    """DSN of a server on which nearly everything is misconfigured."""
    with RawServer(*SPOILED) as server:
        boss = server.connect()
        boss.query(TABLES)
        boss.query("vacuum analyze puffed")
        boss.query("update child set filler = filler where id % 2 = 0")
        for _ in range(55):
            boss.query("set enable_indexscan = off; set enable_bitmapscan = off; select count(*) from child")
        boss.query("select count(*) from (select * from child order by filler, id) t")
        boss.query("update pg_index set indisvalid = false where indexrelid = 'twice_b'::regclass")
        boss.query("select pg_create_physical_replication_slot('forgotten', true)")
        boss.query("select pg_stat_force_next_flush()")
        boss.close()
        yield f"host={server.host} port={server.port} user=postgres dbname=postgres"


def found(dsn: str) -> dict[str, Diagnosis]:
    return {one.name: one for one in examine(dsn).diagnoses}


WRONG = {
    "fsync": Severity.SEVERE,
    "full pages": Severity.SEVERE,
    "autovacuum": Severity.SEVERE,
    "commits": Severity.WARNING,
    "methods": Severity.WARNING,
    "messages": Severity.WARNING,
    "activity": Severity.WARNING,
    "dead tuples": Severity.WARNING,
    "bloat": Severity.WARNING,
    "tables without autovacuum": Severity.WARNING,
    "statistics": Severity.WARNING,
    "missing indexes": Severity.WARNING,
    "invalid indexes": Severity.WARNING,
    "foreign keys without an index": Severity.WARNING,
    "duplicate indexes": Severity.WARNING,
    "unused indexes": Severity.NOTE,
    "temporary files": Severity.NOTE,
    "pace": Severity.NOTE,
    "effective cache size": Severity.NOTE,
    "inactive slots": Severity.NOTE,
    "I/O times": Severity.NOTE,
    "statements": Severity.NOTE,
}


def test_what_is_wrong_is_found_with_meaning_remedy_and_query(spoiled: str) -> None:
    diagnoses = found(spoiled)
    assert {name: diagnoses[name].severity for name in WRONG} == WRONG
    for name in WRONG:
        one = diagnoses[name]
        assert one.visible and one.seen and one.meaning and one.remedy and one.query, name
    assert "child" in diagnoses["foreign keys without an index"].remedy
    assert "puffed" in diagnoses["bloat"].seen and "child" not in diagnoses["bloat"].seen
    assert diagnoses["duplicate indexes"].remedy.startswith("DROP INDEX CONCURRENTLY twice_b")


def test_an_unused_index_of_a_foreign_key_is_kept_and_the_statement_for_others_names_their_schema(
    raw_server: RawServer, database: str, dsn: str
) -> None:
    boss = raw_server.connect(database=database)
    boss.query("create schema app; create table app.parent (id int primary key); insert into app.parent values (1)")
    boss.query("create table app.child (n int, parent int references app.parent)")
    boss.query("insert into app.child select n, 1 from generate_series(1, 60000) n")
    boss.query("create index of_key on app.child (parent, n)")
    boss.query(f"alter database {database} set search_path = app")
    seen = found(dsn)["unused indexes"]
    assert seen.severity is Severity.NOTE and "of_key (" in seen.seen and "supports a foreign key" in seen.seen
    assert "DROP INDEX" not in seen.remedy and "keep" in seen.remedy
    boss.query("create index of_none on app.child (n)")
    boss.close()
    assert "DROP INDEX CONCURRENTLY app.of_none" in found(dsn)["unused indexes"].remedy


def test_every_query_can_be_repeated_by_hand(spoiled: str) -> None:
    system, secrets = engines.get("postgres").validated(System("postgres", "test", dsn=spoiled), 1)
    with engines.running(system, secrets, 1) as session:
        for one in found(spoiled).values():
            session.query(one.query)


def test_nothing_can_be_changed_and_no_setting_stays(postgres) -> None:
    greedy = Examination(EXAMINATION._package, ("tables",), EXAMINATION._server, EXAMINATION._wrapped)
    greedy.probe("tables", "greedy", "create table taken (a int)")(_greedy)
    greedy.probe("tables", "slow", "select pg_sleep(60)")(_greedy)
    diagnoses = {one.name: one for one in greedy.examine(postgres).diagnoses}
    assert "read-only transaction" in diagnoses["greedy"].seen and not diagnoses["greedy"].visible
    assert "statement timeout" in diagnoses["slow"].seen
    assert postgres.query("show statement_timeout") == [("0",)]
    assert postgres.query("show transaction_read_only") == [("off",)]


def _greedy(rows: object, server: object):
    """Tries to change something."""
    return ok("done")


@pytest.fixture(params=[None, DEBIAN], ids=["embedded", "distribution"])
def plain_role(request: pytest.FixtureRequest) -> Iterator[tuple[RawServer, str]]:
    """A server with a role that may only connect, and its DSN."""
    if request.param and not request.param.is_dir():
        pytest.skip(f"there is no PostgreSQL in {request.param}")
    with RawServer(programs=request.param) as server:
        boss = server.connect()
        boss.query("create role plain login")
        boss.close()
        yield server, f"host={server.host} port={server.port} user=plain dbname=postgres"


LATER = {"WAL size", "compilation"}
"""Checks without an immediate result: their counters cover too short a time, or they need an extension."""


def test_an_ordinary_role_sees_most_and_is_told_what_lets_it_see_the_rest(plain_role: tuple[RawServer, str]) -> None:
    server, dsn = plain_role
    hidden = {name: one for name, one in found(dsn).items() if not one.visible and name not in LATER}
    assert hidden.keys() == {"idle in a transaction", "long transactions", "replicas"}
    assert {one.remedy for one in hidden.values()} == {"GRANT pg_monitor TO plain"}
    boss = server.connect()
    boss.query("GRANT pg_monitor TO plain")
    boss.close()
    assert {name for name, one in found(dsn).items() if not one.visible} <= LATER
    assert "ERROR" not in (server.directory / "log").read_text()


def test_a_server_that_takes_no_more_connections_is_examined(spoiled: str) -> None:
    system, secrets = engines.get("postgres").validated(System("postgres", "test", dsn=spoiled), 1)
    with engines.running(system, secrets, 1) as session:
        held = [session.line() for _ in range(18)]
        try:
            one = found(spoiled)["connections"]
        finally:
            for line in held:
                line.close()
    assert one.severity is Severity.SEVERE and "of 17" in one.seen


LONG_AGO = [
    ("idle in a transaction", [("7", "app", "90")], Severity.WARNING),
    ("idle in a transaction", [("7", "app", "7200")], Severity.SEVERE),
    ("long transactions", [("7", "app", "7200")], Severity.WARNING),
    ("prepared transactions", [("it's", "app", "700")], Severity.WARNING),
    ("lock waits", [("2", "30")], Severity.WARNING),
    ("wraparound", [("shop", "1900000000", "5", "200000000", "400000000")], Severity.SEVERE),
    ("wraparound", [("shop", "400000000", "5", "200000000", "400000000")], Severity.WARNING),
    ("wraparound", [("shop", "210000000", "5", "200000000", "400000000")], Severity.OK),
    ("checkpoints", [("2", "98", "3600", "1GB", None, "565e6")], Severity.WARNING),
    ("checkpoints", [("12", "1", "3600", "1GB", "1e7", "565e6")], Severity.OK),
    ("WAL size", [("36e9", "3600", str(1 << 30), "300")], Severity.WARNING),
    ("WAL size", [("36e6", "3600", str(1 << 30), "300")], Severity.OK),
    ("inactive slots", [("old", "2e9", "extended")], Severity.WARNING),
    ("inactive slots", [("old", "2e10", "extended")], Severity.SEVERE),
    ("replicas", [("b", "30", "5", "async")], Severity.WARNING),
    ("archive", [("on", "4", "t", "20")], Severity.SEVERE),
    ("unused indexes", [("i", "5e6", str(8 * 86400), "s.i", "f")], Severity.WARNING),
    ("unused indexes", [("i", "5e6", str(8 * 86400), "s.i", "t")], Severity.NOTE),
    ("damaged pages", [("shop", "3")], Severity.SEVERE),
    ("compilation", [("t", "70", "40", "100")], Severity.WARNING),
    ("build", [("on",)], Severity.SEVERE),
    ("temporary files", [("100", "9e12", "86400", "4MB")], Severity.WARNING),
    ("random page cost", [("4", "1")], Severity.WARNING),
    ("shared buffers", [(str(128 << 20), "9e9")], Severity.WARNING),
    ("shared buffers", [(str(4 << 30), "9e9")], Severity.OK),
    ("shared buffers", [(str(12 << 30), "99e9")], Severity.WARNING),
    ("huge pages", [(str(8 << 30), "off", None)], Severity.NOTE),
]
HERE = ExaminedServer("PostgreSQL", "18.0", 180000, "shop", "bench", memory_bytes=16 << 30, rotates=False)


@pytest.mark.parametrize(("name", "rows", "severity"), LONG_AGO, ids=lambda value: str(value)[:20])
def test_what_takes_long_to_come_about_is_judged_by_what_the_server_would_show(
    name: str, rows: list[tuple[str | None, ...]], severity: Severity
) -> None:
    probe = {one.name: one for one in EXAMINATION.probes()}[name]
    reading = probe.inspect(rows, HERE)
    assert reading.severity is severity
    assert severity is Severity.OK or (reading.meaning and reading.remedy)


def test_memory_is_not_judged_where_the_server_is_elsewhere() -> None:
    probe = {one.name: one for one in EXAMINATION.probes()}["shared buffers"]
    away = replace(HERE, memory_bytes=None)
    assert probe.inspect([(str(1 << 30), "9e9")], away).severity is Severity.OK
    assert probe.inspect([(str(128 << 20), "9e9")], away).severity is Severity.NOTE


def test_every_probe_of_a_database_is_in_the_guide() -> None:
    text = " ".join((ROOT / "docs" / "reference" / "doctor.md").read_text().split())
    every = [one for engine in map(engines.get, engines.names()) if (one := engine.administration.examination)]
    for probe in (probe for one in every for probe in one.probes()):
        assert f"*{probe.name}*" in text, f"{probe.name} is not in the guide"
        assert probe.about.endswith((".", ":")), probe.name


def test_the_commands_of_the_guide_run(place: Path, dsn: str) -> None:
    text = (ROOT / "docs" / "reference" / "doctor.md").read_text()
    commands = [shlex.split(line)[1:] for line in re.findall(r"^ironbench doctor --dsn postgresql:.*$", text, re.M)]
    assert len(commands) == 3
    user = User(place)
    for words in commands:
        told = user(*[dsn if word.startswith("postgresql://") else word for word in words])
        assert told.code == 3, told.stderr  # its fsync is off
        if "--json" in words:
            assert told.document["worst"] == "severe"
            assert all(one["query"] for one in told.document["diagnoses"] if one["visible"])
        else:
            assert told.stdout.startswith("PostgreSQL 18") and "query: show fsync" in told.stdout


@pytest.mark.skipif(LACKING, reason="mariadbd is not on PATH (Debian's package mariadb-server-core)")
def test_a_mariadb_database_is_examined_for_an_ordinary_user_too(place: Path) -> None:
    settings = ("--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--query-cache-type=1")
    server = RawMysql(place, free_port(), settings)
    try:
        server.query(
            "create table d.twice (a int primary key, b int, key x (b), key y (b)); create table d.nokey (a int); "
            "create table d.old (a int primary key) engine = MyISAM; create user plain; grant all on d.* to plain"
        )
        wrong = {"doublewrite": Severity.SEVERE, "commits": Severity.WARNING, "query cache": Severity.WARNING}
        wrong |= {"engines": Severity.WARNING, "duplicate indexes": Severity.WARNING}
        wrong |= {"tables without a key": Severity.NOTE}
        for user in ("root", "plain"):
            diagnoses = found(f"mysql://{user}@localhost/d?socket={server.socket}")
            assert {name: diagnoses[name].severity for name in wrong} == wrong
            assert all(one.query and (one.severity is Severity.OK or one.remedy) for one in diagnoses.values())
            assert diagnoses["redo log size"].seen.startswith("the redo log size is 96.0")
            hidden = [one for one in diagnoses.values() if not one.visible]
            assert [one.name for one in hidden] == ([] if user == "root" else ["long transactions"])
        server.query(hidden[0].remedy)
        assert all(one.visible for one in found(f"mysql://plain@localhost/d?socket={server.socket}").values())
    finally:
        server.stop()


def test_what_has_no_doctor_and_what_is_no_database_is_refused(place: Path) -> None:
    user = User(place)
    for words, cause in (
        (("--dsn", "odbc:Driver={x};Server=y"), "doctor has no checks for the engine `odbc`"),
        (("--dsn", "what://ever"), "no engine supports what://"),
        (("--dsn", "postgresql://h/d", "--data", "."), "--data: cannot be combined with --dsn"),
    ):
        told = user("doctor", *words)
        assert told.code == 2 and cause in told.stderr, told.stderr


def test_a_wrong_password_is_an_error_that_does_not_show_it(place: Path, raw_server: RawServer) -> None:
    address = f"host=127.0.0.1 port={raw_server.port} user=scram_user dbname=postgres password=not-this-one"
    told = User(place)("doctor", "--dsn", address)
    assert told.code in (1, 2) and "not-this-one" not in told.stdout + told.stderr
    assert json.dumps(told.stdout) == '""'
