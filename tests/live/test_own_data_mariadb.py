"""The user's own data on the user's running MariaDB: what is created, dropped, refused and left unchanged."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import eventually
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port
from user import PAUSED, SHORT, User

from ironbench import engines
from ironbench.engines.mariadb.copies import MariadbCopies
from ironbench.engines.own_databases import is_ours
from ironbench.model.system import System

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LACKING, reason="mariadbd is not installed"),
    pytest.mark.xdist_group("own-data-mariadb"),
]
DUMP = """-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB
-- Server version\t10.11.6-MariaDB
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `item` (`id` int NOT NULL AUTO_INCREMENT, `name` varchar(100) COLLATE utf8mb4_bin, `loud` varchar(100)
  AS (upper(`name`)) STORED, PRIMARY KEY (`id`), KEY `by name` (`name`)) AUTO_INCREMENT=5000;
CREATE TABLE `sale` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `item` int NOT NULL,
  CONSTRAINT `of` FOREIGN KEY (`item`) REFERENCES `item` (`id`));
CREATE TABLE `a``b` (`x y` int) PARTITION BY HASH (`x y`) PARTITIONS 3;
CREATE TABLE `price` (`item` int NOT NULL PRIMARY KEY, `euro` int) WITH SYSTEM VERSIONING;
CREATE SEQUENCE `numbers` START WITH 100;
SELECT nextval(`numbers`);
INSERT INTO `item` (`id`, `name`) SELECT seq, concat('it''s "', seq, '"') FROM seq_1_to_1000;
INSERT INTO `item` (`id`, `name`) VALUES (0, 'DEFINER=`x`@`y`');
INSERT INTO `sale` (`item`) SELECT 1 + seq % 1000 FROM seq_1_to_5000;
INSERT INTO `a``b` VALUES (1), (2), (3);
INSERT INTO `price` VALUES (1, 10), (2, 20);
UPDATE `price` SET `euro` = 11 WHERE `item` = 1;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`shopkeeper`@`%`*/ /*!50003 TRIGGER first BEFORE INSERT ON sale FOR EACH ROW
 BEGIN SET @a = 1; SET @b = ';'; END */;;
CREATE DEFINER=`shopkeeper`@`%` PROCEDURE `count sales`() SELECT count(*) FROM sale ;;
DELIMITER ;
CREATE DEFINER=`shopkeeper`@`%` VIEW `a dear` AS SELECT `item`.* FROM `item` WHERE `id` > 500;
CREATE VIEW `0 first` AS SELECT count(*) n FROM `a dear`;
-- Dump completed on 2024-05-01 12:00:00
"""
SUMS = {"item": "id, name, loud", "sale": "id, item", "`a``b`": "`x y`", "`a dear`": "id, name", "`0 first`": "n"}
SUMS |= {"price": "item, euro"}
SCRIPT = "\\set i random(1, 1000)\nselect name from item where id = :i;\ninsert into sale (item) values (:i);\n"
LAB = """question = "More clients?"
system.dsn = "{dsn}"
workload.name = "script"
workload.files = ["one.sql"]
data.dump = "shop.sql"
data.setup = ["more.sql"]
data.check = "select (select count(*) from item) = 1001 and (select count(*) from sale) between 5001 and 90000"
load = {{ think_time = "5ms", duration = "0.5s", warmup = "0s" }}
vary.clients = [1, 2]
measure = {{ repeats = 2, quiet = "0s" }}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawMysql]:
    one = RawMysql(tmp_path_factory.mktemp("maria"), free_port())
    one.query("create table d.precious (a int); insert into d.precious values (42)")
    one.query(f"create user maker identified by '{PASSWORD}'; grant all on d.* to maker")
    one.query("grant all privileges on `ironbench\\_%`.* to maker; create database ironbench_0123456789_01234567")
    yield one
    one.stop()


@pytest.fixture
def user(place: Path) -> User:
    (one := User(place)).environment["MYSQL_PWD"] = PASSWORD
    (one.home / "one.sql").write_text(SCRIPT)
    (one.home / "shop.sql").write_text(DUMP)
    (one.home / "more.sql").write_text(
        'insert into item (name) values ("in double quotes"); delete from item where id > 5000;\n'
    )
    return one


def dsn(server: RawMysql, name: str = "maker") -> str:
    return f"mysql://{name}@localhost/d?socket={server.socket}"


def databases(server: RawMysql) -> set[str]:
    return {str(row[0]) for row in server.query("show databases")}


def made(server: RawMysql) -> set[str]:
    return {name for name in databases(server) if is_ours(name)}


@pytest.mark.long
def test_a_dump_is_loaded_once_each_trial_gets_a_copy_and_cleanup_removes_what_stays(
    user: User, server: RawMysql
) -> None:
    there = databases(server)
    (user.home / "lab.toml").write_text(LAB.format(dsn=dsn(server)))
    told = user("lab", "run", "lab.toml", "--results", "lab")
    assert told.code in (0, 3) and "invalid:" not in told.stderr, told.stderr
    assert told.stderr.count("when loaded") == 1 and "kept on the server: 1 database" in told.stderr
    assert len(made(server)) == 1 and databases(server) - made(server) == there
    words = ("--dump", "shop.sql", "--setup", "more.sql")
    assert "reused from database" in user("run", "script", "one.sql", "--dsn", dsn(server), *words, *SHORT).stderr
    assert len(made(server)) == 1
    cleaned = user("cleanup", "--dsn", dsn(server))
    assert cleaned.code == 0 and "removed: 1 database" in cleaned.stderr, cleaned.stderr
    assert databases(server) == there and server.query("select a from d.precious") == [("42",)]


@pytest.mark.parametrize(
    "text",
    [
        "  use d;\ndrop table precious;\n",
        "select 1; /* all */ drop database d;\n",
        "select 1;  drop table if exists `d`.`precious`;\n",
        "select 1;\ncreate trigger far after insert on sale for each row\n  delete from d.precious;\n",
    ],
)
def test_sql_that_reaches_another_database_is_refused_wherever_it_stands(
    user: User, server: RawMysql, text: str
) -> None:
    there = databases(server)
    (user.home / "far.sql").write_text(text)
    words = ("run", "script", "one.sql", "--dsn", dsn(server), "--dump")
    told = user(*words, "shop.sql", "--setup", "far.sql", *SHORT)
    assert told.code == 2 and "outside the trial's database" in told.stderr, told.stderr
    (user.home / "far.sql").write_text(DUMP + text)
    told = user(*words, "far.sql", *SHORT)
    assert told.code == 2 and "outside the trial's database" in told.stderr, told.stderr
    (user.home / "far.sql").write_text(text)
    told = user("run", "script", "far.sql", "--dsn", dsn(server), "--dump", "shop.sql", *SHORT)
    assert told.code == 2 and "far.sql: command " in told.stderr, told.stderr
    assert databases(server) == there and server.query("select a from d.precious") == [("42",)]


def test_a_copy_has_everything_that_the_first_has(user: User, server: RawMysql) -> None:
    engine = engines.get("mariadb")
    system, secrets = engine.validated(System("mariadb", "t", dsn=dsn(server).replace("maker", f"maker:{PASSWORD}")), 1)
    copies = MariadbCopies(system, secrets)
    try:
        first = copies.new("key")
        with engines.running(copies.with_database(system, first.name), secrets, 1) as session:
            engine.data_import.restored(session, user.home / "shop.sql", 1, lambda *_: None)
        first = copies.complete(first, "key")
        for _ in range(3):
            copy = copies.new("key", first.name)
            for table, columns in SUMS.items():
                sql = f"select count(*), sum(crc32(concat_ws(',', {columns}))) from `{{}}`.{table}"
                assert server.query(sql.format(copy.name)) == server.query(sql.format(first.name)), table
            texts = [
                [server.query(f"show create table `{name}`.{table}")[0][1] for table in ("item", "sale", "`a``b`")]
                for name in (first.name, copy.name)
            ]
            assert texts[0] == texts[1]
            assert server.query(f"select nextval(`{copy.name}`.numbers)") == server.query(
                f"select next_not_cached_value from `{first.name}`.numbers"
            )
            server.query(f"insert into `{copy.name}`.sale (item) values (1)")
            assert server.query(f"call `{copy.name}`.`count sales`()")[0] == ("5001",)
            assert server.query(f"select count(*) from `{first.name}`.sale") == [("5000",)]
            definers = f"select distinct definer from information_schema.triggers where trigger_schema = '{copy.name}'"
            assert server.query(definers) == [("maker@%",)]
            copies.drop(copy.name)
        copies.drop("d")
        assert "d" in databases(server)
    finally:
        for name in made(server):
            copies.drop(name)
        copies.close()


def test_ctrl_c_ends_a_copy_whose_tables_are_being_filled(user: User, server: RawMysql) -> None:
    engine = engines.get("mariadb")
    system, secrets = engine.validated(System("mariadb", "t", dsn=dsn(server).replace("maker", f"maker:{PASSWORD}")), 1)
    filling = "select 1 from information_schema.processlist where info like 'insert into `item`%'"

    def interrupt() -> None:
        if eventually(lambda: bool(server.query(filling)), 30.0):
            os.kill(os.getpid(), signal.SIGINT)

    server.query("set global innodb_lock_wait_timeout = 60")
    copies = MariadbCopies(system, secrets)
    holder = server.connect()
    try:
        first = copies.new("key")
        with engines.running(copies.with_database(system, first.name), secrets, 1) as session:
            engine.data_import.restored(session, user.home / "shop.sql", 1, lambda *_: None)
        copies.complete(first, "key")
        holder.query("begin")
        holder.query(f"select id from `{first.name}`.item for update")
        thread = threading.Thread(target=interrupt)
        thread.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            copies.new("key", first.name)
        assert time.monotonic() - began < 40, "it waited for the tables that were under way"
        thread.join()
        assert made(server) == {first.name}
    finally:
        holder.close()
        server.query("set global innodb_lock_wait_timeout = 1")
        for name in made(server):
            copies.drop(name)
        copies.close()


def test_a_user_who_may_not_make_databases_is_told_what_to_ask_for(user: User, server: RawMysql) -> None:
    there = databases(server)
    told = user("run", "script", "one.sql", "--dsn", dsn(server, "password_user"), "--dump", "shop.sql", *SHORT)
    assert told.code == 2 and "GRANT ALL PRIVILEGES ON `ironbench\\_%`.* TO password_user" in told.stderr, told.stderr
    assert databases(server) == there and not user.records()


def test_a_dump_that_does_not_restore_leaves_no_database(user: User, server: RawMysql) -> None:
    there = databases(server)
    (user.home / "shop.sql").write_text(DUMP.replace("(1), (2), (3)", "(1), ('two')"))
    told = user("run", "script", "one.sql", "--dsn", dsn(server), "--dump", "shop.sql", *SHORT)
    assert told.code == 1 and "two" in told.stderr, told.stderr
    assert databases(server) == there and not user.records()


@pytest.mark.long
def test_cleanup_waits_for_another_ironbench(user: User, server: RawMysql) -> None:
    there = databases(server)
    words = (
        "run",
        "script",
        "one.sql",
        "--dsn",
        dsn(server),
        "--dump",
        "shop.sql",
        *PAUSED,
        "--duration",
        "8s",
        "--warmup",
        "0s",
    )
    with user.begun(*words, "--no-observe") as begun:
        begun.wait_for("trial 1")
        told = user("cleanup", "--dsn", dsn(server))
        assert told.code == 1 and "in use by connection" in told.stderr, told.stderr
        assert begun.end()[0].code in (0, 3)
    assert user("cleanup", "--dsn", dsn(server)).code == 0
    assert databases(server) == there


@pytest.mark.long
def test_whatever_kills_it_cleanup_leaves_what_was_there(user: User, server: RawMysql) -> None:
    """SIGKILL during the load, the copy and the trial, at times spread over the whole run."""
    there = databases(server)
    for number, words in enumerate(("1 trial", "load shop.sql", "load shop.sql", "data: copy", "trial 1")):
        with user.begun(
            "run", "script", "one.sql", "--dsn", dsn(server), "--dump", "shop.sql", "--duration", "5s"
        ) as one:
            one.wait_for(words)
            time.sleep(0.05 * number)
            one.end(signal.SIGKILL)
        assert eventually(lambda: user("cleanup", "--dsn", dsn(server)).code == 0, 30.0)
        assert databases(server) == there
    assert server.query("select a from d.precious") == [("42",)]
    assert user.nothing_runs()
