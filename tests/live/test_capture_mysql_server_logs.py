"""A capture of the logs that a real MariaDB writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from patience import eventually
from raw_mysql import LACKING, RawMysql
from raw_server import free_port
from user import User

pytestmark = [pytest.mark.live, pytest.mark.skipif(LACKING, reason="needs mariadbd")]


def test_both_logs_contain_the_statements_of_the_server(place: Path) -> None:
    user, folder = User(place), place / "server"
    folder.mkdir()
    files = {name: folder / f"{name}.log" for name in ("general", "slow")}
    settings = (
        *("--general-log=1", f"--general-log-file={files['general']}"),
        *("--slow-query-log=1", f"--slow-query-log-file={files['slow']}", "--long-query-time=0"),
        "--log-slow-verbosity=query_plan",
    )
    server = RawMysql(folder, free_port(), settings)
    try:
        session = server.connect()
        session.query("create table item (id int primary key, name text)")
        for number in range(20):
            session.query(f"insert into item values ({number}, 'it''s; \\' {number}')")
        session.query("start transaction")
        session.query("update item\nset name = 'x' where id < 10")
        session.query("commit")
        for number in range(30):
            session.query(f"select name from item where id = {number}")
        session.close()
        # The server writes a statement to its slow log after it has sent the result.
        eventually(lambda: all("id = 29" in log.read_text() for log in files.values()))
    finally:
        server.stop()
    for name, log in files.items():
        assert user("capture", str(log), "-o", f"{name}.capture").code == 0
        shown = user("show", f"{name}.capture", "--json").document
        calls = {one["template"]: one["calls"] for one in shown["top"]}
        assert calls["insert into item values (?, ?)"] == 20
        assert calls["select name from item where id = ?"] == 30
        assert calls["update item set name = ? where id < ?"] == 1
        assert shown["capture"]["format"] == f"{name} log"
        assert (shown["busy_s"] > 0) == (name == "slow")
        planned = user("run", "capture", "--with", f"file={name}.capture", "--engine", "mariadb", "--plan")
        assert planned.code == 0, planned.stderr
