"""Server statistics of a trial on a real MariaDB: with performance_schema, with userstat only, and with neither."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port
from user import PAUSED, User

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LACKING, reason="mariadbd is not installed"),
    pytest.mark.xdist_group("inside-mariadb"),
]
TRIAL = (*PAUSED, "--clients", "2", "--duration", "2s", "--warmup", "0.5s")
SCRIPT = "\\set i random(1, 100)\nselect b from t where a = :i;\nselect count(*) from t where b = :i;\n"
SCRIPT += "update t set b = b + 1 where a = :i;\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawMysql]:
    one = RawMysql(tmp_path_factory.mktemp("maria"), free_port(), ("--performance-schema-digests-size=40",))
    one.query("create table t (a int primary key, b int); insert into t select seq, seq from seq_1_to_100")
    one.query(f"create user teller identified by '{PASSWORD}'; grant all on d.* to teller")
    one.query("grant select on performance_schema.* to teller")
    yield one
    one.stop()


@pytest.fixture
def user(place: Path) -> User:
    (user := User(place)).environment["MYSQL_PWD"] = PASSWORD
    (user.home / "read.sql").write_text(SCRIPT)
    return user


def dsn(server: RawMysql, name: str = "teller") -> str:
    return f"mysql://{name}@localhost/d?socket={server.socket}"


def last(user: User) -> tuple[dict[str, Any], dict[str, Any]]:
    record = user.records()[-1]
    return record, json.loads((user.results / "trials" / record["id"] / "inside.json").read_text())


def run(
    user: User, server: RawMysql, *words: str, name: str = "teller", trial: tuple[str, ...] = TRIAL
) -> tuple[dict[str, Any], dict[str, Any]]:
    user.measured("run", "script", "read.sql", "--dsn", dsn(server, name), *trial, *words)
    return last(user)


@pytest.mark.parametrize("protocol", [pytest.param("prepared", marks=pytest.mark.long), "simple"])
def test_statements_tables_and_plans_are_told_to_an_ordinary_user(user: User, server: RawMysql, protocol: str) -> None:
    server.query("truncate performance_schema.events_statements_summary_by_digest")
    record, said = run(user, server, "--protocol", protocol)
    count = record["metrics"]["transactions"]
    by_text = {one["text"].replace("`", "").replace(" ", "").lower(): one for one in said["statements"]}
    if protocol == "prepared":
        (one,) = by_text.values()
        assert one["calls"] == pytest.approx(3 * count, rel=0.3) and 0 < one["time_s"] <= said["statements_s"] < 4.0
        assert [missing["what"] for missing in said["missing"]] == ["Cost of each statement"]
        assert "--protocol simple" in said["missing"][0]["remedy"]
        said["missing"] = []
        by_text = {}
    else:
        assert set(by_text) == {
            "selectbfromtwherea=?",
            "selectcount(*)fromtwhereb=?",
            "updatetsetb=b+?wherea=?",
        }
    for one in by_text.values():
        assert one["calls"] == pytest.approx(count, rel=0.3)
        assert 0 < one["time_s"] < said["statements_s"] < 4.0
        assert by_text["selectcount(*)fromtwhereb=?"]["examined"] >= 100 * count * 0.6
    (table,) = said["tables"]
    assert table["name"] == "t" and table["scanned_rows"] > 50 * count and table["bytes"] > 0 and table["time_s"] > 0
    assert 0 < table["updated"] <= 1.3 * count and table["dead_rows"] is None
    (index,) = said["indexes"]
    assert (index["name"], index["table"]) == ("PRIMARY", "t") and index["rows"] > count
    assert said["missing"] == [] and said["notes"] == []
    assert [plan["steps"] for plan in said["plans"]] == [["one row on t"], ["full scan on t"], ["range scan on t"]]
    report = user("report", record["series"], "--format", "text", "-o", "report.txt")
    assert report.code == 0
    text = (user.home / "report.txt").read_text()
    assert "Statement cost in the server" in text and "rows read by table scans" in text


def test_a_user_without_the_right_is_told_what_grants_it(user: User, server: RawMysql) -> None:
    _, said = run(user, server, name="password_user")
    assert said["statements"] == [] and said["tables"] == [] and len(said["plans"]) == 3
    assert {one["remedy"] for one in said["missing"]} == {"GRANT SELECT ON performance_schema.* TO …"}


@pytest.mark.long
def test_where_digests_do_not_fit_or_are_emptied_figures_are_noted_as_incomplete(user: User, server: RawMysql) -> None:
    many = "; ".join(
        f"select {', '.join('ab'[n % 2] for n in range(number))} from t limit 0" for number in range(1, 90)
    )
    for what, code in (
        ("truncate performance_schema.events_statements_summary_by_digest", "statements-since-reset"),
        (many, "statements-not-counted"),
    ):
        server.query("truncate performance_schema.events_statements_summary_by_digest")
        command = ("run", "script", "read.sql", "--dsn", dsn(server), *PAUSED, "--duration", "4s", "--warmup", "0s")
        with user.begun(*command, "--protocol", "simple") as begun:
            begun.wait_for("trial 1")
            time.sleep(2.0)
            server.query(what)
            begun.measured()
        assert code in [one["code"] for one in last(user)[1]["notes"]]


def test_a_command_that_cannot_be_explained_is_said_and_nothing_is_executed(user: User, server: RawMysql) -> None:
    server.query("create sequence if not exists s")
    server.query("create table if not exists empty (a int)")
    (user.home / "read.sql").write_text(
        "insert into empty values (nextval(s));\nselect a as x from t limit 1 \\gset\nselect b from t where a = :x;\n"
        "replace into t values (1, 1);\n"
    )
    _, said = run(user, server, trial=("--transactions", "1", "--warmup", "0s"))
    insert, _, unknown, _ = said["plans"]
    assert insert["steps"] == ["table on empty"]
    assert "come from answers of the server" in unknown["failed"]
    assert server.query("select count(*) from empty") == [("1",)], "the trial's own"


@pytest.mark.long
def test_rows_are_counted_where_userstat_is_on_and_otherwise_it_is_said_how(user: User) -> None:
    words = ("run", "script", "read.sql", "--engine", "mariadb", "--setup", "schema.sql", *TRIAL)
    (user.home / "schema.sql").write_text(
        "create table t (a int primary key, b int);\ninsert into t select seq, seq from seq_1_to_100;\n"
    )
    user.measured(*words)
    _, said = last(user)
    assert said["tables"] == [] and len(said["missing"]) == 2
    assert all("--set performance_schema=ON" in one["remedy"] for one in said["missing"])
    user.measured(*words, "--set", "userstat=ON")
    record, said = last(user)
    count = record["metrics"]["transactions"]
    (table,) = said["tables"]
    assert table["scanned_rows"] > 50 * count and table["time_s"] is None and table["updated"] > 0
    assert [one["name"] for one in said["indexes"]] == ["PRIMARY"]
    assert [one["what"] for one in said["missing"]] == ["Cost of each statement"]
