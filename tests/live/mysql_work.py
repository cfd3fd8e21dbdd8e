"""Work of an application on MariaDB: transactions with generated keys, in several sessions at the same time."""

from __future__ import annotations

import threading
from pathlib import Path

from raw_mysql import RawMysql

from ironbench._core import MysqlConnection

SESSIONS, ROUNDS, ITEMS = 4, 40, 100
SALES = SESSIONS * ROUNDS
DUMP = f"""-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
-- Server version\t10.11.6-MariaDB
CREATE TABLE `item` (`id` int NOT NULL PRIMARY KEY, `name` varchar(20), `price` decimal(8,2)) ENGINE=InnoDB;
INSERT INTO `item` VALUES {",".join(f"({n},'it''s {n}',{n}.50)" for n in range(1, ITEMS + 1))};
CREATE TABLE `sale` (`id` int NOT NULL AUTO_INCREMENT PRIMARY KEY, `item` int, `paid` int DEFAULT 0) ENGINE=InnoDB;
INSERT INTO `sale` (`item`) VALUES {",".join(f"({n})" for n in range(1, 1001))};
CREATE TABLE `line` (`sale` int NOT NULL, `number` int NOT NULL, PRIMARY KEY (`sale`,`number`)) ENGINE=InnoDB;
CREATE TABLE `kept` (`a` int) ENGINE=InnoDB;
-- Dump completed on 2026-11-30 20:00:00
"""
RIGHT = f"""select (select count(*) from sale where paid = 1) = {SALES}
    and (select count(*) from line where number = 1 and sale > 1000) = {SALES}
    and (select count(*) from line) = {SALES} and (select count(*) from kept) = 1"""
"""A query that is true after the work, if every statement found its rows."""


def loaded(server: RawMysql, folder: Path, **place: object) -> None:
    """Loads the data, and writes the dump."""
    (folder / "shop.dump").write_text(DUMP)
    session = server.connect(**place)
    session.query(DUMP)
    session.close()


def ran(server: RawMysql, **place: object) -> None:
    """Runs the work. `place`: where the clients connect, if not to the server itself."""
    failures: list[BaseException] = []

    def client(number: int) -> None:
        session = server.connect(**place)
        try:
            _work(session, number)
        except BaseException as error:
            failures.append(error)
        finally:
            session.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(SESSIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    manual = server.connect(**place)
    for sql in (
        *("set autocommit = 0", "insert into item values (1001, 'a', 1)", "rollback"),
        *("update item set price = price + 1 where id = 7", "create table made (a int)", "insert into kept values (1)"),
        *("commit", "insert into kept values (2)"),
    ):
        manual.query(sql)
    manual.close()  # which rolls back the last row


def _work(session: MysqlConnection, client: int) -> None:
    for number in range(ROUNDS):
        item = 1 + (client * ROUNDS + number) % ITEMS
        session.query("start transaction")
        assert session.query(f"select name, price from item where id = {item}")[0][0] == f"it's {item}"
        session.query(f"insert into sale (item) values ({item})")
        ((key,),) = session.query("select last_insert_id()")
        session.query(f"insert into line values ({key}, 1), ({key}, 2)")
        session.query(f"update sale set paid = 1 where id = {key}")
        session.query("commit")
        session.query(f"delete from line where sale = {key} and number = 2")
        session.query(f'select count(*) from item where name like "it\\\'s {item}%" or price < {number}')
