"""MariaDB: the life cycle of a server that ironbench starts, its files, and refusals before anything starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import own_server
import pytest
from factories import require_installed
from raw_mysql import CERTIFICATES, PASSWORD, RawMysql
from user import SHORT, User
from workload_trial import loaded

from ironbench import engines
from ironbench.engines import ideal
from ironbench.engines.administration import checkpoint
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import FailureError, InputError
from ironbench.host import copies, register
from ironbench.model.system import Layout, System
from ironbench.workloads import tpch_tables

pytestmark = pytest.mark.live

ENGINE = engines.get("mariadb")
Start = Callable[..., MariadbSession]


def system(place: Path, **told: object) -> System:
    return own_server.system(place / "d", "mariadb", **told)


@pytest.fixture
def start(place: Path, own_register: Path) -> Iterator[Start]:
    require_installed("mariadb")
    started: list[MariadbSession] = []

    def start(**told: object) -> MariadbSession:
        started.append(own_server.start(system(place, **told)))
        return started[-1]

    yield start
    for session in started:
        session.stop()
    assert register.entries() == []


def kept(session: MariadbSession) -> list[tuple[str | None, ...]]:
    try:
        return session.query("select n from kept order by n")
    finally:
        session.stop()


def test_data_stay_wherever_the_layout_puts_log_and_temporary_files(start: Start, place: Path) -> None:
    session = start()
    session.query("create table kept (n int primary key); insert into kept values (7)")
    assert session.directories()["log"] == str(place / "d" / "log")
    session.stop()
    apart = Layout(log=str(place / "l"), temp=str(place / "t"))
    session = start(layout=apart, memory_bytes=64 << 20, settings={"innodb_log_file_size": "32M"})
    assert session.query("select @@innodb_buffer_pool_size, @@innodb_log_file_size, @@tmpdir") == [
        (str(64 << 20), str(32 << 20), str(place / "t" / "temp"))
    ]
    assert (place / "l" / "log" / "ib_logfile0").is_file() and not (place / "d" / "log" / "ib_logfile0").exists()
    assert kept(session) == [("7",)]
    assert kept(start()) == [("7",)]


def test_facts_tell_what_a_commit_survives_and_what_was_chosen(start: Start) -> None:
    facts = start(settings={"innodb_flush_log_at_trx_commit": "2"}).facts()
    assert facts["durability"]["innodb_flush_log_at_trx_commit"] == "2"
    assert facts["durability"]["innodb_doublewrite"] == "ON"
    assert facts["changed"]["max_connections"] == "config" and facts["isolation"] == "READ-COMMITTED"
    assert "socket" not in facts["settings"] and len(facts["settings"]) > 500
    assert facts["runs_as"] == ("user namespace" if os.geteuid() == 0 else "own user")


def test_what_was_committed_is_there_after_a_kill_and_a_restart(start: Start) -> None:
    session = start()
    session.query("create table kept (n int primary key); insert into kept values (7)")
    session.lose_power(lambda: None, lambda: None)
    session.query("insert into kept values (8)")
    first = session.processes()
    session.restart()
    assert session.processes() != first
    assert kept(session) == [("7",), ("8",)]


@pytest.mark.parametrize(
    ("flush", "survives"), [("1", True), pytest.param("2", True, marks=pytest.mark.long), ("0", False)]
)
def test_a_kill_of_the_server_takes_only_commits_that_were_not_even_written(
    start: Start, tmp_path_factory: pytest.TempPathFactory, flush: str, survives: bool
) -> None:
    """A flush setting of 2 differs from 1 only if the machine itself stops (test_power_cut). A redo log in tmpfs would
    be mapped into memory, so that every commit would be written there."""
    lazy = {"innodb_flush_log_at_trx_commit": flush, "innodb_flush_log_at_timeout": "600"}
    session = start(layout=Layout(log=str(tmp_path_factory.mktemp("log") / "l")), settings=lazy)
    session.query("create table kept (n int primary key)")
    for number in range(500):
        session.query(f"insert into kept values ({number})")
    os.kill(session.processes()[0], signal.SIGKILL)
    session.lose_power(lambda: None, lambda: None)
    try:
        rows = session.query("select count(*) from kept")
    except FailureError:
        rows = []  # not even the table
    assert (rows == [("500",)]) == survives


def test_free_temporary_files_lie_in_memory_and_go_with_the_server(start: Start, place: Path) -> None:
    root = ideal.root(str(place / "d"))
    for _ in range(2):
        session = start(ideal=("temp",))
        assert session.query("select @@tmpdir") == [(str(root / "temp" / "temp"),)]
        session.query("set sort_buffer_size = 32768")
        session.query("select seq from seq_1_to_200000 order by concat(-seq) limit 1 offset 199999")
        assert session.counters()["temp_files"] > 0
        session.stop()
        assert not root.exists()
    assert start().query("select @@tmpdir") == [(str(place / "d" / "temp"),)]


@pytest.mark.long
def test_a_free_cache_is_larger_than_the_data(start: Start, place: Path) -> None:
    session = start()
    session.query("create table large as select seq, repeat('x', 1000) filler from seq_1_to_50000")
    session.stop()
    data_bytes = copies.size(place / "d" / "files")
    session = start(ideal=("data",), settings={"innodb_buffer_pool_size": "16M"})
    [(cache,)] = session.query("select @@innodb_buffer_pool_size")
    assert data_bytes > 50e6
    assert int(cache) > ideal.ROOM_BYTES + data_bytes
    assert ENGINE.cache_bytes(session.facts()["settings"], 4) == int(cache)


def test_a_free_log_is_refused_with_the_reason(place: Path) -> None:
    require_installed("mariadb")
    with pytest.raises(InputError, match="cannot open data files without their redo log"):
        ENGINE.validated(system(place, ideal=("log",)), 4)


def test_a_table_that_is_to_be_compressed_takes_less_room(start: Start, place: Path) -> None:
    session, taken = start(), {}
    for tables in ("plain", "compressed"):
        for statement in tpch_tables.dataset("mariadb", {"sf": "0.01", "tables": tables}).schema:
            session.query(statement)
        session.query("insert into region select seq, 'x', repeat('much alike ', 13) from seq_1_to_20000")
        session.query(ENGINE.traits.dialect.checkpoint())
        taken[tables] = (place / "d" / "files" / "ironbench" / "region.ibd").stat().st_blocks * 512
        for table in tpch_tables.TABLES:
            session.query(f"drop table {table}")
    assert taken["compressed"] < 0.7 * taken["plain"]


@pytest.mark.long
def test_compressed_tables_take_less_room_than_raw_ones(start: Start, place: Path) -> None:
    def stored(session: MariadbSession, tables: str) -> int:
        loaded(session, "tpch", sf="0.01", tables=tables)
        session.query(ENGINE.traits.dialect.checkpoint())
        file = place / "d" / "files" / "ironbench" / "lineitem.ibd"
        stored = file.stat().st_blocks * 512
        session.query("drop database ironbench")
        return stored

    session = start()
    raw = stored(session, "plain")
    session.stop()
    session = start()
    assert stored(session, "compressed") < 0.7 * raw
    session.stop()
    assert stored(start(settings={"innodb_compression_default": "ON"}), "plain") < 0.7 * raw


def test_a_checkpoint_leaves_no_log_to_replay(start: Start) -> None:
    session = start()
    session.query("create table kept (n int primary key, filler char(200))")
    session.query("insert into kept select seq, 'x' from seq_1_to_20000")
    administration = ENGINE.administration
    owed = administration.log_since_checkpoint(session, administration.written(session).log_bytes)
    assert owed > 1_000_000
    before = session.query("select @@innodb_io_capacity, @@innodb_max_dirty_pages_pct")
    session.query(ENGINE.traits.dialect.checkpoint())
    assert administration.log_since_checkpoint(session, administration.written(session).log_bytes) < 10_000
    assert session.query("select @@innodb_io_capacity, @@innodb_max_dirty_pages_pct") == before


def test_a_snapshot_brings_back_what_was_there_and_keeps_what_no_snapshot_made(start: Start, place: Path) -> None:
    session = start()
    session.query("create table kept (n int primary key); insert into kept values (7)")
    session.stop()
    checked, _ = ENGINE.validated(system(place), 4)
    ENGINE.snapshot(checked, place / "snapshot")
    ENGINE.restore(checked, place / "snapshot")
    assert (place / "d" / "files.kept-1" / "ib_logfile0").is_file()
    session = start()
    session.query("insert into kept values (8)")
    session.stop()
    elsewhere = replace(checked, layout=replace(checked.layout, log=str(place / "l")))
    ENGINE.restore(elsewhere, place / "snapshot")
    assert kept(start(layout=elsewhere.layout)) == [("7",)]
    assert not (place / "d" / "files.kept-2").exists()


@pytest.mark.parametrize(
    ("setting", "cause"),
    [
        ("nosuch=1", "has no such setting"),
        ("innodb_buffer_pool=1G", "has no such setting"),
        ("innodb_buffer_pool_size=abc", "Unknown suffix"),
        ("innodb-flush-method=none", "Error while setting value 'none'"),
        ("innodb_flush_log_at_trx_commit=9", "adjusted to 3"),
        ("innodb_file_per_table=maybe", "invalid value 'maybe'"),
        ("port=1", "private socket"),
    ],
)
def test_a_setting_that_the_server_does_not_take_is_refused(place: Path, setting: str, cause: str) -> None:
    require_installed("mariadb")
    name, _, value = setting.partition("=")
    with pytest.raises(InputError, match=cause):
        ENGINE.validated(system(place, settings={name: value}), 4)


def test_no_checkpoint_is_asked_of_a_server_of_others(joined: MariadbSession) -> None:
    """A requested checkpoint has no effect there, and MySQL cannot parse the statement."""

    def asked() -> int:
        return int(joined.query("show session status like 'Questions'")[0][1] or 0)

    before = asked()
    assert not checkpoint(joined, ENGINE.traits.dialect)
    assert asked() == before + 1


@pytest.mark.parametrize("name", ["innodb_buffer_pool_size", "innodb-buffer-pool-size", "INNODB_Buffer_Pool_Size"])
def test_an_ideal_cache_is_that_of_no_setting_however_it_is_written(place: Path, name: str) -> None:
    require_installed("mariadb")
    wanted = {name: "64M", "innodb-doublewrite": "OFF"}
    checked, _ = ENGINE.validated(system(place, settings=wanted, ideal=("data",)), 4)
    assert checked.settings == {"innodb_doublewrite": "OFF"}


@pytest.mark.parametrize(("told", "hint"), [({}, "apt install"), ({"settings": {"bin": "/nowhere"}}, "mariadbd")])
def test_where_it_is_not_installed_the_refusal_says_how_to_get_it(place, monkeypatch, told, hint: str) -> None:
    monkeypatch.setenv("PATH", str(place))
    with pytest.raises(InputError, match="there is no mariadbd or mysqld") as caught:
        ENGINE.validated(system(place, **told), 4)
    assert hint in caught.value.hint


def test_a_running_server_is_used_and_neither_configured_nor_stopped(start: Start) -> None:
    own = start()
    connection = own.target()["connection"]
    own.query("create user ann@localhost identified by 'secret'; grant all on ironbench.* to ann@localhost")
    dsn = f"mysql://ann:secret@localhost/ironbench?socket={connection['socket']}"
    with pytest.raises(InputError, match="does not configure existing servers"):
        ENGINE.validated(System("mariadb", "t", dsn=dsn, memory_bytes=1 << 30), 4)
    given, secrets = ENGINE.validated(System("mariadb", "t", dsn=dsn), 4)
    assert ENGINE.identity(given, secrets)["version"] == own.facts()["version"]
    session = ENGINE.start(given, secrets, 4)
    assert session.processes() == own.processes() and session.directories() == own.directories()
    session.query("create table kept (n int)")
    ENGINE.administration.mark(session, ["kept"])
    session.query("create table theirs (n int)")
    assert list(ENGINE.administration.remove_made(session).tables) == ["kept"]
    session.stop()
    assert own.query("select count(*) from theirs") == [("0",)]
    with pytest.raises(InputError, match="connections"):
        ENGINE.start(given, secrets, 200)


def test_a_trial_over_tls_verifies_the_server_and_a_user_who_needs_tls_is_let_in_no_other_way(
    raw_mysql: RawMysql, tmp_path: Path
) -> None:
    user = User(tmp_path / "home")
    (user.home / "one.sql").write_text("SELECT 1;\n")
    at = f"mysql://tls_user:{PASSWORD}@localhost:{raw_mysql.port}/d"
    verified = f"{at}?tls=verify-full&tls_ca={CERTIFICATES / 'root.crt'}"
    told = user.measured("run", "script", "one.sql", "--dsn", verified, *SHORT, "--json")
    assert told.document["trials"][0]["metrics"]["transactions"] > 0
    for wrong, words in (
        (f"{at}?tls=disable", "tls_user"),
        (f"{at}?tls=verify-full&tls_ca={CERTIFICATES / 'other_root.crt'}", "UnknownIssuer"),
    ):
        told = user("run", "script", "one.sql", "--dsn", wrong, *SHORT)
        assert told.code == 2 and words in told.stderr, told
        assert PASSWORD not in told.stderr
