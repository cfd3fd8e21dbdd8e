"""Captures whose statements set roles that the server lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_server import RawServer
from user import User
from written_log import write_csvlog

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture")]

TEXTS = (
    *("set role keeper", "select current_user::text::regrole", "reset role"),
    "select set_config('role', 'web', false)",
    "reset role",
)
REPLAY = ("--with", "file=shop.capture", "--with", "mode=fast", "--no-observe")


@pytest.fixture
def user(place: Path) -> User:
    user = User(place)
    write_csvlog(place / "server.csv", *((second, text) for second, text in enumerate(TEXTS, 1)))
    assert user("capture", "server.csv", "-o", "shop.capture").code == 0
    return user


def test_missing_roles_are_created_on_the_server_that_ironbench_starts(user: User) -> None:
    user.measured("run", "capture", *REPLAY)
    (record,) = user.records()
    metrics = record["metrics"]
    assert (metrics["transactions"], metrics["failed"], metrics["errors"]) == (len(TEXTS), 0, 0), record["warnings"]


def test_missing_roles_on_another_server_are_refused_before_a_statement_is_sent(user: User) -> None:
    with RawServer() as server:
        dsn = f"postgresql://postgres@/postgres?host={server.host}&port={server.port}"
        session = server.connect()
        session.query("create role web")
        told = user("run", "capture", "--dsn", dsn, *REPLAY)
        assert told.code not in (0, 3), told
        assert "1 of 5 statements (20%) sets a role that does not exist" in told.stderr, told.stderr
        assert "keeper" in told.stderr and "web" not in told.stderr.partition("error")[2].partition("hint")[0]
        assert session.query("select count(*) from pg_roles where rolname = 'keeper'") == [("0",)]
        session.query("create role keeper")
        user.measured("run", "capture", "--dsn", dsn, *REPLAY)
        session.close()
    assert user.records()[-1]["metrics"]["failed"] == 0
