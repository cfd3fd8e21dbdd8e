"""Statements with literals from digests of MariaDB's performance_schema, for a fake server with four tables."""

from __future__ import annotations

import re
from typing import cast

import pytest

from ironbench.engines.mariadb import digests
from ironbench.model.digest import StatementDigest
from ironbench.model.session import Row, Session

COLUMNS = {
    "item": ["id int", "name varchar", "price decimal", "count int", "at datetime"],
    "Status": ["name varchar", "kind enum", "bytes varbinary"],
    "line": ["sale int", "number int"],
}
UNIQUE = {"item": "id", "Status": "name", "line": "number"}
LEADING = {"item": "id", "Status": "name", "line": "sale"}
VALUES = {"hex(`bytes`)": "00ff", "`name`": "it's", "`kind`": "b'c"}


class FakeSession:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def query(self, sql: str) -> list[Row]:
        text = " ".join(sql.split())
        self.texts.append(text)
        table = next((name for name in COLUMNS if f"'{name}'" in text or f"`{name}`" in text), "")
        if text.startswith("select table_name"):
            return [(name, "BASE TABLE") for name in COLUMNS]
        if "information_schema.columns" in text:
            split = (one.split() for one in COLUMNS.get(table, []))
            return [(name, kind, "9", "enum('a','b''c')") for name, kind in split]
        if "non_unique" in text:
            return [(UNIQUE[table],)] if table else []
        if "BTREE" in text:
            return [(LEADING[table],)] if table else []
        if "PRIMARY" in text:
            return [("id",)] if table == "item" else []
        if text.startswith("select min"):
            return [("1", "100")]
        if text.startswith("select max"):
            return [("100",)]
        if found := re.match(r"\(?select (\S+) from", text):
            return [(VALUES.get(found[1].lower(), "7"),)]
        assert text.startswith(("prepare", "deallocate")), text
        return []


def drawn(digest: str, calls: int = 10, rows: int = 30, values: bool = True, longest: int = 1024) -> StatementDigest:
    drawing = digests._Drawing(cast(Session, FakeSession()), values, longest)
    return drawing.digest(digest, calls, 0.001, rows)


@pytest.mark.parametrize(
    ("digest", "text"),
    [
        ("INSERT INTO `item` VALUES ( ?, ... , NOW ( ) )", "INSERT INTO `item` VALUES (101, 'it''s', 7, 7, NOW())"),
        ("INSERT INTO `line` VALUES (...) /* , ... */", "INSERT INTO `line` VALUES (7, 8), (7, 9), (7, 10)"),
        (
            "SELECT COUNT ( * ) FROM `item` WHERE ID IN (...) AND NAME LIKE ? LIMIT ?, ...",
            "SELECT COUNT(*) FROM `item` WHERE ID IN (7, 7, 7) AND NAME LIKE 'it''s' LIMIT 0, 3",
        ),
        (
            "SELECT `i` . `at` FROM `item` `i` WHERE `i` . `price` BETWEEN ? AND ? ORDER BY ? LIMIT ?",
            "SELECT `i`.`at` FROM `item` `i` WHERE `i`.`price` BETWEEN 7 AND 7 ORDER by 1 LIMIT 3",
        ),
        (
            "UPDATE `item` SET `count` = ? WHERE ID BETWEEN ? AND ?",
            "UPDATE `item` SET `count` = 7 WHERE ID BETWEEN 7 AND 9",
        ),
        ("INSERT INTO `item` SET ID = ? , `price` = ?", "INSERT INTO `item` SET ID = 101, `price` = 7"),
        (
            "SELECT `kind` FROM STATUS WHERE NAME = ? AND `bytes` = (unknown) AND `kind` <> ?",
            "SELECT `kind` FROM `Status` WHERE NAME = 'it''s' AND `bytes` = x'00ff' AND `kind` <> 'b''c'",
        ),
    ],
)
def test_literals_come_from_the_column_that_they_are_compared_with(digest: str, text: str) -> None:
    found = drawn(digest)
    assert found.texts[0] == text
    assert not found.refused and found.made_up == 0
    assert len(found.texts) == 10


def test_a_statement_that_sleeps_lasts_as_long_as_recorded() -> None:
    assert set(drawn("SELECT SLEEP ( ? )").texts) == {"SELECT SLEEP(0.001000)"}


@pytest.mark.parametrize(
    ("statements", "searched"),
    [
        (("INSERT INTO `line` VALUES (...)",), []),
        (("SELECT NAME FROM `item` WHERE ID = ?",), []),
        (
            (
                "SELECT NAME FROM `item` WHERE ID = ?",
                "INSERT INTO `item` SET ID = ?",
                "INSERT INTO `item` VALUES (...)",
            ),
            ["select max(`ID`) from `item`"],
        ),
    ],
)
def test_the_maximum_of_a_column_is_searched_only_for_new_rows_and_in_an_index(
    statements: tuple[str, ...], searched: list[str]
) -> None:
    session = FakeSession()
    drawing = digests._Drawing(cast(Session, session), True, 1024)
    assert not any(drawing.digest(one, 10, 0.001, 10).refused for one in statements)
    assert [text for text in session.texts if text.startswith("select max")] == searched


def test_without_values_literals_have_the_type_of_their_column() -> None:
    found = drawn("SELECT * FROM STATUS WHERE NAME = ? AND `kind` = ?", values=False)
    assert (found.drawn, found.made_up) == (0, 2)
    assert all(re.search(r"NAME = '[a-z]{8}' AND `kind` = '(a|b''c)'$", text) for text in found.texts)


@pytest.mark.parametrize(
    ("digest", "reason"),
    [
        ("SELECT `concat` ( NAME , ?, ... ) FROM `item`", "unknown-arguments"),
        ("SELECT `round` (...) FROM `item`", "unknown-arguments"),
        ("SELECT @?", "unknown-arguments"),
        ("SELECT NAME FROM `d` . `item` WHERE ID = ?", "other-database"),
        ("SELECT ? ; ", "several-statements"),
        ("SELECT NAME INTO OUTFILE ? FROM `item`", "server-wide"),
        ("SET `autocommit` = ?", "utility"),
        ("DELETE FROM `item` WHERE ID = ? ...", "cut-digest"),
        ("SELECT " + " + ".join(["`price`"] * 80), "cut-digest"),
    ],
)
def test_statements_that_a_digest_does_not_describe_are_refused(digest: str, reason: str) -> None:
    found = drawn(digest)
    assert found.refused == reason
    assert not found.texts


def test_a_long_digest_is_complete_if_the_server_stores_longer_ones() -> None:
    assert not drawn("SELECT " + " + ".join(["`price`"] * 80) + " FROM `item`", longest=4096).refused
