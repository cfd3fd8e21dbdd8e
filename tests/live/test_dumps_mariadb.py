"""User files of SQL, loaded into a MariaDB server as the client mariadb loads them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from brought import CASES, into_mariadb
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port

from ironbench.errors import FailureError, IronbenchError

WHOLE = ("byte-order-mark", "definer-after-a-comment", "delimiter-after-a-comment", "prose-that-looks-like-sql")
PHPMYADMIN = """-- phpMyAdmin SQL Dump
-- version 5.2.1
SET SQL_MODE = "NO_AUTO_VALUE_ON_ZERO";
START TRANSACTION;
SET time_zone = "+00:00";
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
--
-- Database: `shop`
--
CREATE DATABASE IF NOT EXISTS `shop` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci;
USE `shop`;
DELIMITER $$
--
-- Procedures
--
DROP PROCEDURE IF EXISTS `count_items`$$
CREATE DEFINER=`root`@`localhost` PROCEDURE `count_items` ()   BEGIN
SELECT COUNT(*) FROM item; -- ; it's
END$$
DELIMITER ;
CREATE TABLE `item` (`id` int(11) NOT NULL, `name` varchar(50) NOT NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
INSERT INTO `item` (`id`, `name`) VALUES
(1, 'it\\'s; USE shop'),
(2, 'two');
ALTER TABLE `item`
  ADD PRIMARY KEY (`id`);
COMMIT;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
"""
HEIDISQL = """-- --------------------------------------------------------
-- Host:                         127.0.0.1
-- HeidiSQL Version:             12.5.0.6677
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
-- Dumping database structure for shop
CREATE DATABASE IF NOT EXISTS `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
-- Dumping structure for table shop.item
CREATE TABLE IF NOT EXISTS `item` (`id` int(11) NOT NULL, `name` varchar(50), PRIMARY KEY (`id`));
INSERT INTO `item` (`id`, `name`) VALUES
\t(1, 'one'),
\t(2, 'two');
-- Dumping structure for view shop.names
CREATE TABLE `names` (`name` VARCHAR(1) NULL) ENGINE=MyISAM;
DROP TABLE IF EXISTS `names`;
CREATE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `names` AS SELECT `name` FROM `item`;
/*!40014 SET FOREIGN_KEY_CHECKS=IFNULL(@OLD_FOREIGN_KEY_CHECKS, 1) */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
"""
ADMINER = """-- Adminer 4.8.1 MySQL 10.11.6-MariaDB dump
SET NAMES utf8;
SET time_zone = '+00:00';
SET foreign_key_checks = 0;
USE `shop`;
DELIMITER ;;
DROP FUNCTION IF EXISTS `one`;;
CREATE FUNCTION `one`() RETURNS int(11) DETERMINISTIC
BEGIN
  RETURN 1;
END;;
DELIMITER ;
DROP TABLE IF EXISTS `item`;
CREATE TABLE `item` (`id` int(11) NOT NULL) ENGINE=InnoDB;
INSERT INTO `item` (`id`) VALUES
(1),
(2);
-- 2024-05-01 12:00:00
"""
SAKILA = """SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0;
SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='TRADITIONAL';
DROP SCHEMA IF EXISTS shop;
CREATE SCHEMA shop;
USE shop;
CREATE TABLE item (id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(45), PRIMARY KEY (id));
CREATE TABLE words (id SMALLINT NOT NULL PRIMARY KEY, name VARCHAR(45));
DELIMITER ;;
CREATE TRIGGER `ins_item` AFTER INSERT ON `item` FOR EACH ROW BEGIN
    INSERT INTO words (id, name) VALUES (new.id, new.name);
  END;;
DELIMITER ;
CREATE DEFINER=CURRENT_USER SQL SECURITY INVOKER VIEW info AS SELECT i.id,
  (SELECT name FROM shop.words w WHERE w.id = i.id) AS word FROM shop.item i;
DELIMITER //
CREATE PROCEDURE report (IN least TINYINT, OUT found INT) READS SQL DATA COMMENT 'it''s a report'
proc: BEGIN
    IF least = 0 THEN LEAVE proc; END IF;
    CREATE TEMPORARY TABLE tmp (id INT);
    DROP TABLE tmp;
END //
DELIMITER ;
INSERT INTO item VALUES (1, 'one'), (2, 'two');
SET SQL_MODE=@OLD_SQL_MODE;
SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS;
"""
BINARY = (
    b"CREATE TABLE item (id int, data blob);\nINSERT INTO item VALUES (1, _binary '\xff\x00\\'\xfe;\n');\n".replace(
        b"\x00", b"\\0"
    )
)
FILES: dict[str, bytes] = {
    **{name: (CASES / f"{name}.maria.sql").read_bytes() for name in WHOLE},
    **{"phpMyAdmin": PHPMYADMIN.encode(), "HeidiSQL": HEIDISQL.encode(), "Adminer": ADMINER.encode()},
    **{"Sakila": SAKILA.encode(), "binary": BINARY},
    "bom-crlf": b"\xef\xbb\xbf-- c\r\nDELIMITER //\r\nCREATE TABLE item (id int)//\r\nDELIMITER ;\r\n"
    b"INSERT INTO item VALUES (1);\r\n",
}

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LACKING, reason="mariadbd is not installed"),
    pytest.mark.xdist_group("dumps-mariadb"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawMysql]:
    one = RawMysql(tmp_path_factory.mktemp("maria"), free_port())
    one.query(f"create user maker identified by '{PASSWORD}'; grant all on d.* to maker; grant all on shop.* to maker")
    one.query("grant all privileges on `ironbench\\_%`.* to maker")
    yield one
    one.stop()


def loaded(server: RawMysql, file: Path) -> dict[str, list[tuple[str | None, ...]]]:
    """Returns the contents of one of ironbench's databases after a restore."""
    with into_mariadb(server, file) as database:
        return contents(server, database)


def contents(server: RawMysql, database: str) -> dict[str, list[tuple[str | None, ...]]]:
    tables = server.query(
        f"select table_name, table_type from information_schema.tables where table_schema = '{database}'"
    )
    rows = {str(name): server.query(f"select * from `{database}`.`{name}` order by 1") for name, _ in tables}
    routines = (
        f"select routine_name, routine_definition from information_schema.routines where routine_schema = '{database}'"
    )
    triggers = f"select trigger_name from information_schema.triggers where trigger_schema = '{database}'"
    return rows | {" routines": sorted(server.query(routines)), " triggers": sorted(server.query(triggers))}


@pytest.mark.parametrize("name", FILES)
def test_a_file_gives_the_rows_views_and_routines_that_the_client_gives(
    server: RawMysql, tmp_path: Path, name: str
) -> None:
    (file := tmp_path / "file.sql").write_bytes(FILES[name])
    found = loaded(server, file)
    assert found["note" if "prose" in name else "item"]
    server.query("drop database if exists shop; create database shop")
    # With --comments, the client (10.11) mistakes a DELIMITER after a comment for SQL; without it, routines lose
    # comments.
    keeps = [] if name == "delimiter-after-a-comment" else ["--comments"]
    words = ["mariadb", "--no-defaults", *keeps, f"--socket={server.socket}", "-uroot", "shop"]
    text = FILES[name].removeprefix(b"\xef\xbb\xbf").replace(b"`nobody`@`%`", b"root@localhost")
    try:
        subprocess.run(words, input=text, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("the client mariadb is not installed")
    assert found == contents(server, "shop")


def test_a_transaction_that_stays_open_ends_the_load(server: RawMysql, tmp_path: Path) -> None:
    for text in ("START TRANSACTION;\n", "SET autocommit = 0;\n"):
        (file := tmp_path / "file.sql").write_text(f"CREATE TABLE item (id int);\n{text}INSERT INTO item VALUES (1);\n")
        with pytest.raises(FailureError, match="ends with an open transaction"):
            loaded(server, file)


def test_a_collation_that_the_server_lacks_is_named_before_anything_is_loaded(server: RawMysql, tmp_path: Path) -> None:
    head = "-- MySQL dump 10.13  Distrib 8.0.39\n-- Server version\t8.0.39\n"
    table = "CREATE TABLE a (t text) COLLATE utf8mb4_0900_xx_ci;\n-- Dump completed\n"
    (file := tmp_path / "file.sql").write_text(head + table)
    with pytest.raises(IronbenchError, match=r"made by MySQL 8\.0\.39: .* lacks collation utf8mb4_0900_xx_ci"):
        loaded(server, file)


def test_many_rows_of_numbers_are_loaded(server: RawMysql, tmp_path: Path) -> None:
    rows = ",\n".join(f"({n},{n})" for n in range(60_000))
    (file := tmp_path / "file.sql").write_text(f"CREATE TABLE item (a int, b int);\nINSERT INTO item VALUES\n{rows};\n")
    assert len(loaded(server, file)["item"]) == 60_000
