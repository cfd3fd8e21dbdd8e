"""A capture from the digests of a running MariaDB, replayed on its restored data."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from mysql_work import DUMP, loaded
from proxied import recorded
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import free_port
from user import User

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(LACKING, reason="needs mariadbd"),
    pytest.mark.xdist_group("capture-mysql"),
]
MORE = """
CREATE TABLE `Status` (`name` varchar(20) UNIQUE, `at` datetime, `kind` enum('a','b'), `bytes` varbinary(9));
INSERT INTO `Status` VALUES ('secret-name', '2026-01-01 00:00:00', 'a', x'00ff27');
"""
WORK = {
    "select count(*), max(price) from item where id in (1, 2, 3)": 1,
    "select name from item where id = 17 limit 5": 2,
    "select id from sale where id in (11, 12) order by 1 limit 0, 10": 1,
    "insert into sale (item, paid) values (3, now() is null)": 1,
    "insert into line values ({round}, 1), ({round}, 2), ({round}, 3)": 1,
    "update item set price = price + 1 where id between 7 and 9": 1,
    "insert into sale set item = 4": 1,
    "select kind, concat(name, 'a') from Status where name = 'secret-name' and bytes = x'00ff27'": 1,
}
"""Statements of a round, with the number of their calls."""
REFUSED = {
    "select concat(name, 'a', 'b') from item where id = 1": "unknown-arguments",
    "select name from d.item where id = 1": "other-database",
    f"select {' + '.join(['price'] * 200)} from item where id = 1": "cut-digest",
    "show tables": "utility",
}
ROUND_S = 0.03


@pytest.fixture
def server(place: Path) -> Iterator[RawMysql]:
    (place / "server").mkdir()
    server = RawMysql(place / "server", free_port())
    loaded(server, place)
    server.query(MORE)
    (place / "shop.dump").write_text(DUMP + MORE)
    yield server
    server.stop()


@pytest.mark.parametrize("mask", [False, True], ids=["drawn", "masked"])
def test_a_server_is_watched_and_what_ran_is_replayed(place: Path, server: RawMysql, mask: bool) -> None:
    user = User(place)
    dsn = f"mysql://root@/d?socket={server.socket}"
    idle = user("capture", "--from", dsn, "-o", "shop.capture", "--duration", "200ms")
    assert idle.code == 2 and not (place / "shop.capture").exists()
    is_over, is_running = threading.Event(), threading.Event()
    rounds_run = 0

    def work() -> None:
        nonlocal rounds_run
        session = server.connect()
        for number in itertools.count():
            for sql, calls in WORK.items():
                for _ in range(calls):
                    session.query(sql.format(round=number))
            for sql in REFUSED:
                session.query(sql)
            rounds_run += 1
            is_running.set()
            if is_over.wait(ROUND_S):
                break
        session.close()

    load = threading.Thread(target=work)
    load.start()
    try:
        assert is_running.wait(60)
        words = ("--mask",) if mask else ()
        rounds_before = rounds_run
        told = user("capture", "--from", dsn, "-o", "shop.capture", "--duration", "3s", *words)
        most_rounds = rounds_run - rounds_before + 1
    finally:
        is_over.set()
        load.join()
    assert told.code == 0, told.stderr
    rows = recorded(user, "template, count(*), left_out", "true group by template, left_out")
    able = Counter({template: count for template, count, reason in rows if reason is None})
    refused = {template: reason for template, _, reason in rows if reason}
    assert sorted(refused.values()) == sorted(REFUSED.values()), refused
    assert len(able) == len(WORK), able
    rounds = min(able.values())
    assert 0 < rounds <= most_rounds
    assert max(able.values()) == pytest.approx(2 * rounds, abs=2)
    assert (b"secret-name" in str(recorded(user, "text")).encode()) != mask
    if mask:
        return
    shown = user("show", "shop.capture", "--json").document
    assert {one["code"] for one in shown["capture"]["notes"]} >= {"capture-invented", "capture-drawn"}
    # Rows of generated lists have the measured number of rows.
    assert recorded(user, "min(row_count), max(row_count)", "template like '%`line`%'") == [(3, 3)]
    restored = ("--dump", str(place / "shop.dump"), "--with", "file=shop.capture", "--engine", "mariadb")
    rate = ("--with", "mode=rate", "--rate", "100", "--duration", "3s", "--warmup", "0s", "--no-observe")
    user.measured("run", "capture", *restored, *rate)
    user.measured("run", "capture", *restored, "--with", "mode=fast", "--no-observe")
    at_rate, fast = (record["metrics"] for record in user.records())
    assert at_rate["failed"] == fast["failed"] == 0
    # The order of statements is random. Of 300 drawn ones, about 6 ± 2% would have to be others.
    assert at_rate["replay_divergence{of=mix}"] < 0.15 and fast["replay_divergence{of=mix}"] == 0
    assert fast["replayed_statements"] == able.total()
    assert fast["replay_divergence{of=rows}"] < 0.05


def test_prepared_statements_are_counted_and_the_way_to_capture_them_is_named(place: Path, server: RawMysql) -> None:
    user = User(place)
    (place / "work.sql").write_text("select name from item where id = 7;\n")
    dsn = f"mysql://root@/d?socket={server.socket}"
    script = ("run", "script", "work.sql", "--protocol", "prepared", "--duration", "4s", "--warmup", "0s", "--dsn", dsn)
    load = threading.Thread(target=user.measured, args=(*script, "--no-observe", "--think-time", "5ms"))
    load.start()
    time.sleep(1.5)
    told = user("capture", "--from", dsn, "-o", "shop.capture", "--duration", "1s")
    load.join()
    assert told.code == 2 and "--listen" in told.stderr


@pytest.mark.parametrize("setting", ["--performance-schema=off", "--performance-schema-consumer-statements-digest=off"])
def test_a_server_without_digests_is_refused_before_anything_is_written(place: Path, setting: str) -> None:
    (place / "server").mkdir()
    server = RawMysql(place / "server", free_port(), (setting,))
    try:
        user = User(place)
        dsn = f"mysql://root@/d?socket={server.socket}"
        told = user("capture", "--from", dsn, "-o", "shop.capture", "--duration", "5m")
        server.query("grant select on d.* to password_user")
        other = user("capture", "--from", f"mysql://password_user:{PASSWORD}@127.0.0.1:{server.port}/d", "-o", "o")
    finally:
        server.stop()
    assert told.code == other.code == 2
    assert not (place / "shop.capture").exists() and not (place / "o").exists()
    assert "performance_schema" in told.stderr
