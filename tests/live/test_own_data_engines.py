"""The user's own data on engines other than PostgreSQL: files of SQLite and DuckDB, SQL for MariaDB."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from factories import lacking
from own_data import SCRIPT
from patience import eventually
from user import SHORT, User

pytestmark = pytest.mark.live
ROWS = "".join(f"insert into item values ({n}, 'it''s; item {n}');\n" for n in range(1, 1001))
SCHEMA = "create table item (id integer primary key, name varchar(100));\ncreate table sale (item integer);\n"
HOLDS = "select (select count(*) from item) = 1000 and (select count(*) from sale) > 0"
MARIADB = pytest.mark.skipif(bool(lacking("mariadb")), reason="mariadbd is not installed")


@pytest.fixture
def user(place: Path) -> User:
    (one := User(place)).home.joinpath("one.sql").write_text(SCRIPT)
    (one.home / "schema.sql").write_text(SCHEMA)
    (one.home / "rows.sql").write_text(ROWS)
    return one


@pytest.fixture
def shop(user: User) -> Path:
    connection = sqlite3.connect(user.home / "shop.sqlite")
    connection.executescript(SCHEMA + ROWS)
    connection.close()
    return user.home / "shop.sqlite"


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", pytest.param("mariadb", marks=[MARIADB, pytest.mark.long])])
def test_setup_files_make_data_and_their_failure_names_the_statement(user: User, engine: str) -> None:
    words = ("run", "script", "one.sql", "--engine", engine, "--setup", "schema.sql", "--setup")
    told = user(*words, "rows.sql", "--check", HOLDS, *SHORT)
    assert told.code in (0, 3) and user.records()[0]["checks"][0]["passed"], told.stderr
    (user.home / "wrong.sql").write_text("insert into itme values (1);\n")
    told = user(*words, "wrong.sql", *SHORT)
    assert told.code == 1 and "wrong.sql" in told.stderr and "itme" in told.stderr, told.stderr
    assert len(user.records()) == 1


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("duckdb", marks=pytest.mark.long)])
def test_a_check_that_cannot_be_understood_ends_the_run_before_a_trial_without_a_server_too(
    user: User, engine: str
) -> None:
    words = ("run", "script", "one.sql", "--engine", engine, "--setup", "schema.sql", "--check")
    told = user(*words, "select missing from sale", *SHORT)
    assert told.code == 2 and "--check" in told.stderr and "missing" in told.stderr, told.stderr
    assert not user.records()


@pytest.mark.parametrize(
    ("engine", "quote", "way"),
    [
        ("sqlite", '"', "files read"),
        pytest.param("duckdb", '"', "every column of 3 tables was read", marks=pytest.mark.long),
        pytest.param("mariadb", "`", "3 indexes read in key order", marks=[MARIADB, pytest.mark.long]),
    ],
)
def test_warm_caches_hold_all_tables_of_the_user_whatever_their_names(
    user: User, engine: str, quote: str, way: str
) -> None:
    name = f"{quote}order{quote}"
    (user.home / "order.sql").write_text(
        f"create table {name} (id integer primary key, item integer);\ncreate index sold on {name} (item);\n"
    )
    words = ("run", "script", "one.sql", "--engine", engine, "--setup", "schema.sql", "--setup", "rows.sql")
    user.measured(*words, "--setup", "order.sql", "--cache", "warm", *SHORT)
    assert way in user.records()[0]["conditions"]["cache"]


def test_an_sqlite_file_is_copied_and_stays_as_it_is(user: User, shop: Path) -> None:
    before = shop.read_bytes()
    shop.chmod(0o400)
    told = user("run", "script", "one.sql", "--engine", "sqlite", "--dump", "shop.sqlite", "--check", HOLDS, *SHORT)
    assert told.code in (0, 3) and user.records()[0]["checks"][0]["passed"], told.stderr
    assert shop.read_bytes() == before and sorted(path.name for path in user.home.glob("shop*")) == ["shop.sqlite"]


def test_an_sqlite_file_that_is_damaged_in_use_or_none_is_refused(user: User, shop: Path) -> None:
    words = ("run", "script", "one.sql", "--engine", "sqlite", "--dump")
    damaged = bytearray(shop.read_bytes())
    damaged[4096 * 3 : 4096 * 5] = b"\xff" * 8192
    (user.home / "damaged.sqlite").write_bytes(damaged)
    told = user(*words, "damaged.sqlite", *SHORT)
    assert told.code == 1 and ("damaged" in told.stderr or "malformed" in told.stderr), told.stderr
    using = sqlite3.connect(shop)
    using.execute("pragma journal_mode = wal")
    using.execute("insert into sale values (1)")
    using.commit()
    told = user(*words, "shop.sqlite", *SHORT)
    using.close()
    assert told.code == 2 and "shop.sqlite-wal" in told.stderr, told.stderr
    told = user(*words, "rows.sql", *SHORT)
    assert told.code == 2 and "not an SQLite database" in told.stderr
    assert not user.records()


@pytest.fixture
def warehouse(user: User) -> Path:
    with duckdb.connect(str(user.home / "shop.duckdb")) as connection:
        connection.execute(SCHEMA + ROWS + 'create schema "of old"; create table "of old"."a ""b" as from range(50000)')
    return user.home / "shop.duckdb"


def test_scripts_run_on_copies_of_a_duckdb_file_which_stays_as_it_is(user: User, warehouse: Path) -> None:
    before = warehouse.read_bytes()
    words = ("run", "script", "one.sql", "--engine", "duckdb", "--clients", "2", "--dump")
    user.measured(*words, "shop.duckdb", "--check", f"{HOLDS} and (select count(*) < 20000 from sale)", *SHORT[:-1])
    (record,) = user.records()
    assert record["checks"][0]["passed"] and record["choice"]["data"]["kind"] == "DuckDB database file"
    assert record["metrics"]["throughput"] > 0 and record["budget"]["server"] > 0 == record["budget"]["client"]
    assert warehouse.read_bytes() == before and sorted(path.name for path in user.home.glob("shop*")) == ["shop.duckdb"]
    shutil.copy(warehouse, user.home / "renamed.db")
    told = user(*words, "renamed.db", *SHORT)
    assert told.code in (0, 3) and "snapshot of" in told.stderr, told.stderr  # found by its contents


@pytest.mark.long
def test_of_two_duckdb_writers_the_later_one_tries_again_and_errors_are_counted(user: User, warehouse: Path) -> None:
    (user.home / "two.sql").write_text(
        "\\set i random(1, 3)\nbegin;\nupdate item set name = name || '.' where id = :i;\n"
        "select length(name) as long from item where id = :i \\gset\ninsert into sale values (:long) \\;\n"
        "select :i;\nend;\n"
    )
    words = ("run", "script", "two.sql", "--engine", "duckdb", "--dump", "shop.duckdb", "--clients", "4")
    user.measured(*words, "--max-tries", "100", "--check", "select max(length(name)) > 16 from item", *SHORT)
    (record,) = user.records()
    assert record["metrics"]["failed"] == 0 < record["metrics"]["retries"] and record["checks"][0]["passed"]
    (user.home / "wrong.sql").write_text("insert into item values (1, 'again');\n")
    words = ("run", "script", "wrong.sql", "--engine", "duckdb", "--dump", "shop.duckdb")
    told = user(*words, "--on-error", "continue", *SHORT)
    assert "Duplicate key" in told.stdout + told.stderr, told
    assert user.records()[-1]["status"] == "voided"


def test_a_duckdb_file_that_is_damaged_newer_in_use_or_none_is_refused(user: User, warehouse: Path) -> None:
    words = ("run", "script", "one.sql", "--engine", "duckdb", "--dump")
    rows = warehouse.read_bytes().index(b"it's; item 500")
    for name, at, junk in (("newer", 12, (9999).to_bytes(8, "little")), ("damaged", rows, b"\xff" * 64)):
        changed = bytearray(warehouse.read_bytes())
        changed[at : at + len(junk)] = junk
        changed[:8] = _checksum(changed[8:4096]).to_bytes(8, "little")
        (user.home / f"{name}.duckdb").write_bytes(changed)
    told = user(*words, "newer.duckdb", *SHORT)
    assert told.code == 2 and "by another version of DuckDB" in told.stderr and "9999" in told.stderr, told.stderr
    told = user(*words, "damaged.duckdb", *SHORT)
    assert told.code == 1 and "is damaged" in told.stderr, told.stderr
    told = user(*words, "rows.sql", *SHORT)
    assert told.code == 2 and "not a DuckDB database" in told.stderr, told.stderr
    holder = f"import duckdb; d = duckdb.connect({str(warehouse)!r}); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holder], stdin=-1, stdout=-1) as other:
        assert other.stdout is not None and other.stdin is not None
        other.stdout.readline()
        told = user(*words, "shop.duckdb", *SHORT)
        assert told.code == 2 and "the file is in use" in told.stderr and str(other.pid) in told.stderr, told.stderr
        other.stdin.write(b"\n")
    (user.home / "shop.duckdb.wal").write_bytes(b"x")
    told = user(*words, "shop.duckdb", *SHORT)
    assert told.code == 2 and "shop.duckdb.wal contains changes" in told.stderr, told.stderr
    assert not user.records()


def _checksum(header: bytes) -> int:
    """Computes the checksum as DuckDB's src/common/checksum.cpp does."""
    found = 5381
    for (word,) in struct.iter_unpack("<Q", header):
        found ^= word * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    return found


def test_a_setup_file_of_duckdb_does_not_reach_beyond_the_database(user: User, warehouse: Path) -> None:
    (user.home / "far.sql").write_text(f"copy item to '{user.home}/out.csv';\n")
    words = ("run", "script", "one.sql", "--engine", "duckdb", "--dump", "shop.duckdb", "--setup", "far.sql")
    told = user(*words, *SHORT)
    assert told.code == 1 and "accesses data outside the database" in told.stderr, told.stderr
    assert not (user.home / "out.csv").exists() and not user.records()


@pytest.mark.parametrize(
    "sql",
    [
        "create table copied (i int); /* ; */ Attach '{home}/far.sqlite' as far;\n",
        "-- attach nothing\nvacuum main into '{home}/far.sqlite';\n",
    ],
)
def test_a_setup_file_of_sqlite_does_not_reach_beyond_the_database(user: User, shop: Path, sql: str) -> None:
    (user.home / "far.sql").write_text(sql.format(home=user.home))
    words = ("run", "script", "one.sql", "--engine", "sqlite", "--dump", "shop.sqlite", "--setup", "far.sql")
    told = user(*words, *SHORT)
    assert told.code == 1 and "accesses data outside the database" in told.stderr, told.stderr
    assert not (user.home / "far.sqlite").exists() and not user.records()
    (user.home / "far.sql").write_text("-- attach it; vacuum\ninsert into item values (1001, '; attach 2');\nvacuum;\n")
    user.measured(*words, *SHORT)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_whatever_kills_it_the_file_stays_and_nothing_of_ours_is_left(
    user: User, shop: Path, warehouse: Path, engine: str
) -> None:
    dump = {"sqlite": shop, "duckdb": warehouse}[engine]
    before = dump.read_bytes()
    words = ("run", "script", "one.sql", "--engine", engine, "--dump", dump.name, "--warmup", "0s", "--duration")
    for said, delay_s in (*(("load shop", 0.1 * step) for step in range(4)), ("trial 1", 0.0), ("trial 1", 0.7)):
        with user.begun(*words, "3s") as begun:
            begun.wait_for(said)
            time.sleep(delay_s)
            begun.end(signal.SIGKILL)
        assert eventually(lambda: user("cleanup").code == 0) and user.nothing_runs()
        if said.startswith("load"):
            assert user("cleanup", "--data").code == 0
    assert dump.read_bytes() == before
    told = user(*words, "0.5s", "--check", HOLDS)
    assert told.code in (0, 3) and user.records()[-1]["checks"][0]["passed"], told.stderr


def test_workers_are_refused_where_the_engine_is_a_library(user: User, warehouse: Path) -> None:
    words = ("run", "script", "one.sql", "--engine", "duckdb", "--dump", "shop.duckdb", "--workers", "2")
    told = user(*words, "--clients", "2", "--plan")
    assert told.code == 2 and "is an embedded engine" in told.stderr, told.stderr


DUMP = """-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB
-- Server version\t10.11.6-MariaDB
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS `item`;
CREATE TABLE `item` (`id` int NOT NULL, `name` varchar(100), PRIMARY KEY (`id`)) ENGINE=InnoDB;
CREATE TABLE `sale` (`item` int) ENGINE=InnoDB;
LOCK TABLES `item` WRITE;
INSERT INTO `item` VALUES {rows};
UNLOCK TABLES;
DELIMITER ;;
CREATE TRIGGER first BEFORE INSERT ON sale FOR EACH ROW BEGIN SET @a = 1; SET @b = ';'; END ;;
DELIMITER ;
-- Dump completed on 2024-05-01 12:00:00
"""


@pytest.mark.long
@MARIADB
def test_a_dump_of_mariadb_is_restored_with_its_triggers(user: User) -> None:
    rows = ",".join(f"({n},'it\\'s; -- item {n}')" for n in range(1, 1001))
    (user.home / "shop.sql").write_text(DUMP.format(rows=rows))
    user.measured("run", "script", "one.sql", "--engine", "mariadb", "--dump", "shop.sql", "--check", HOLDS, *SHORT)
    (record,) = user.records()
    assert record["checks"][0]["passed"] and record["choice"]["data"]["kind"] == "SQL dump of MariaDB 10.11.6"
    (user.home / "far.sql").write_text("CREATE TABLE a (id int);\nUSE `shop`;\nDROP TABLE item;\n")
    told = user("run", "script", "one.sql", "--engine", "mariadb", "--dump", "far.sql", *SHORT)
    assert told.code == 2 and "outside the trial's database" in told.stderr, told.stderr


def test_a_template_is_refused_where_the_engine_copies_no_databases(user: User) -> None:
    told = user("run", "script", "one.sql", "--dsn", "mysql://me@127.0.0.1/shop", "--template", "shop", *SHORT)
    assert told.code == 2 and "no statement that copies a database" in told.stderr, told.stderr
    shutil.rmtree(user.home / "results", ignore_errors=True)
