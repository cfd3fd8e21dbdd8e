"""The user's own data on engines besides PostgreSQL: an SQLite file, SQL for MariaDB."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from factories import lacking
from own_data import SCRIPT
from user import SHORT, User

from ironbench.engines.mariadb.data_import import statements

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


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("mariadb", marks=MARIADB)])
def test_setup_files_make_data_and_their_failure_names_the_statement(user: User, engine: str) -> None:
    words = ("run", "script", "one.sql", "--engine", engine, "--setup", "schema.sql", "--setup")
    told = user(*words, "rows.sql", "--check", HOLDS, *SHORT)
    assert told.code in (0, 3) and user.records()[0]["checks"][0]["passed"], told.stderr
    (user.home / "wrong.sql").write_text("insert into itme values (1);\n")
    told = user(*words, "wrong.sql", *SHORT)
    assert told.code == 1 and "wrong.sql" in told.stderr and "itme" in told.stderr, told.stderr
    assert len(user.records()) == 1


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
    assert told.code == 2 and "not the file of an SQLite database" in told.stderr
    assert not user.records()


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
"""


@MARIADB
def test_a_dump_of_mariadb_is_restored_with_its_triggers(user: User) -> None:
    rows = ",".join(f"({n},'it\\'s; -- item {n}')" for n in range(1, 1001))
    (user.home / "shop.sql").write_text(DUMP.format(rows=rows))
    told = user("run", "script", "one.sql", "--engine", "mariadb", "--dump", "shop.sql", "--check", HOLDS, *SHORT)
    assert told.code in (0, 3), told.stderr
    (record,) = user.records()
    assert record["checks"][0]["passed"] and record["choice"]["data"]["kind"] == "SQL dump of version 10.11.6-MariaDB"
    (user.home / "far.sql").write_text("USE `shop`;\n")
    told = user("run", "script", "one.sql", "--engine", "mariadb", "--dump", "far.sql", *SHORT)
    assert told.code == 2 and "beyond the database" in told.stderr, told.stderr


def test_statements_end_where_the_client_ends_them() -> None:
    text = "a ';' \"x;\" `y;` /* ; */ -- ;\n# ;\nb; c\nd;\nDELIMITER //\ne; f//\nDELIMITER ;\ng 'it\\'s;''\n;'"
    found = [" ".join(sql.split()) for _, sql in statements(text.splitlines(keepends=True))]
    assert found == ["a ';' \"x;\" `y;` /* ; */ -- ; # ; b", "c d", "e; f", "g 'it\\'s;'' ;'"]


def test_a_template_is_refused_where_the_engine_copies_no_databases(user: User) -> None:
    told = user("run", "script", "one.sql", "--dsn", "mysql://me@127.0.0.1/shop", "--template", "shop", *SHORT)
    assert told.code == 2 and "no statement that copies a database" in told.stderr, told.stderr
    shutil.rmtree(user.home / "results", ignore_errors=True)
