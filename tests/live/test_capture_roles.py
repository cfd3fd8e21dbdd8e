"""Captures whose statements set roles that the server lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_mysql import LACKING, RawMysql
from raw_server import RawServer, free_port
from user import User
from written_log import write_csvlog

from ironbench import engines
from ironbench.model.note import note
from ironbench.report import wording
from ironbench.workloads.capture import file, roles

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture")]

SETS = ("set role keeper", "select current_user::text::regrole", "reset role")
CALLS = ("select set_config('role', 'web', false)", "reset role")
REPLAY = ("--with", "mode=fast", "--no-observe", "--with")


@pytest.fixture
def user(place: Path) -> User:
    user = User(place)
    for name, texts in (("sets", SETS), ("shop", SETS + CALLS), ("reserved", (*SETS, "set role pg_archivist"))):
        write_csvlog(place / "server.csv", *((second, text) for second, text in enumerate(texts, 1)))
        assert user("capture", "server.csv", "-o", f"{name}.capture").code == 0
    return user


@pytest.fixture
def server() -> Iterator[RawServer]:
    with RawServer() as server:
        yield server


def dsn(server: RawServer, name: str = "postgres") -> str:
    return f"postgresql://{name}@/postgres?host={server.host}&port={server.port}"


def test_missing_roles_are_created_on_the_server_that_ironbench_starts(user: User) -> None:
    user.measured("run", "capture", *REPLAY, "file=shop.capture")
    (record,) = user.records()
    metrics = record["metrics"]
    expected = (len(SETS + CALLS), 0, 0)
    assert (metrics["transactions"], metrics["failed"], metrics["errors"]) == expected, record["warnings"]


def test_roles_with_reserved_names_are_not_created(user: User) -> None:
    told = user("run", "capture", *REPLAY, "file=reserved.capture")
    assert told.code == 1 and 'role "pg_archivist" does not exist' in told.stderr, told
    assert "in: set role pg_archivist" in told.stderr, told.stderr


def test_missing_roles_on_another_server_are_refused_before_anything_is_measured(user: User, server: RawServer) -> None:
    session = server.connect()
    session.query("create role web")
    told = user("run", "capture", "--dsn", dsn(server), *REPLAY, "file=shop.capture")
    assert (told.code, user.records()) == (2, []), told
    cause = (
        "statements set a role that does not exist on the server, or that the user may not set: "
        "keeper (1 of 5 statements, 20%)"
    )
    assert f"error: shop.capture: {cause}\n" in told.stderr, told.stderr
    assert "hint: create the role, or leave out these transactions: --with except='statement:set *role*'" in told.stderr
    assert session.query("select count(*) from pg_roles where rolname = 'keeper'") == [("0",)]
    without = ("--with", "except=statement:set *role*")
    user.measured("run", "capture", "--dsn", dsn(server), *REPLAY, "file=shop.capture", *without)
    session.query("create role keeper")
    session.query("drop role web")
    told = user("run", "capture", "--dsn", dsn(server), *REPLAY, "file=shop.capture")
    assert told.code == 2 and "may not set: web (1 of 5" in told.stderr, told
    assert "hint: create the role\n" in told.stderr, told.stderr
    session.query("create role web")
    user.measured("run", "capture", "--dsn", dsn(server), *REPLAY, "file=shop.capture")
    session.close()
    assert [record["metrics"]["failed"] for record in user.records()] == [0, 0]


def test_labs_on_another_server_refuse_missing_roles_before_they_start(user: User, server: RawServer) -> None:
    (user.home / "roles.toml").write_text(
        f'question = "?"\n[system]\ndsn = "{dsn(server)}"\n'
        '[workload]\nname = "capture"\nwith = { file = "sets.capture" }\n'
        '[vary.mode]\nfast = { with = { mode = "fast" } }\nthink = { with = { mode = "think" } }\n'
    )
    told = user("lab", "run", "roles.toml")
    assert told.code == 2 and "may not set: keeper (1 of" in told.stderr, told
    assert "workload.with.except='statement:set *role*'" in told.stderr, told.stderr


def test_a_plan_states_without_connecting_that_roles_are_checked_at_the_start(user: User) -> None:
    told = user("run", "capture", "--plan", "--dsn", "postgresql://app@127.0.0.1:1/shop", *REPLAY, "file=shop.capture")
    checked = note("capture-needs-roles", roles=["keeper", "web"])
    assert told.code == 0 and wording.text(checked) in told.stdout.splitlines(), told
    told = user("run", "capture", "--plan", *REPLAY, "file=shop.capture")
    assert told.code == 0 and wording.text(checked) not in told.stdout, told
    (user.home / "roles.toml").write_text(
        'question = "?"\n[system]\ndsn = "postgresql://app@127.0.0.1:1/shop"\n'
        '[workload]\nname = "capture"\nwith = { file = "shop.capture" }\n'
        '[vary.mode]\nfast = { with = { mode = "fast" } }\nthink = { with = { mode = "think" } }\n'
    )
    told = user("lab", "plan", "roles.toml")
    assert told.code == 0 and f"  - {wording.text(checked)}" in told.stdout.splitlines(), told


def test_membership_without_the_option_set_does_not_make_a_role_usable(server: RawServer) -> None:
    session = server.connect()
    for text in ("create role app login", "create role shown", "create role usable"):
        session.query(text)
    session.query("grant shown to app with set false")
    session.query("grant usable to app")
    session.query("set session authorization app")
    usable = {name for (name,) in session.query(engines.capturing("").usable_roles)}
    session.close()
    assert usable == {"app", "usable"}


GENERAL_LOG = """/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-0+deb12u1 (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
261130  2:03:11\t     31 Connect\tapp@localhost on d using Socket
\t\t     31 Query\tset role `Keeper`
\t\t     31 Query\tselect 1 from dual
\t\t     31 Query\tset role none
\t\t     31 Query\tset default role keeper
"""


@pytest.mark.skipif(LACKING, reason="needs mariadbd")
def test_roles_of_mariadb_are_created_on_the_server_that_ironbench_starts_and_required_elsewhere(
    user: User, fast_directory: Path
) -> None:
    (user.home / "general.log").write_text(GENERAL_LOG)
    assert user("capture", "general.log", "-o", "mysql.capture").code == 0
    assert user("show", "mysql.capture", "--json").document["left_out"] == [["server-wide", 1]]
    user.measured("run", "capture", "--engine", "mariadb", *REPLAY, "file=mysql.capture")
    folder = fast_directory / "mysql-with-roles"
    folder.mkdir()
    existing = RawMysql(folder, free_port())
    try:
        words = ("--dsn", f"mysql://root@/d?socket={existing.socket}", *REPLAY, "file=mysql.capture")
        told = user("run", "capture", *words)
        assert told.code == 2 and "may not set: Keeper (1 of 3 statements, 33%)\n" in told.stderr, told
        existing.query("create role `Keeper`")
        user.measured("run", "capture", *words)
    finally:
        existing.stop()
    metrics = [record["metrics"] for record in user.records()]
    assert [(one["replayed_statements"], one["failed"]) for one in metrics] == [(3, 0), (3, 0)]


@pytest.mark.parametrize(
    ("text", "folds", "expected"),
    [
        ("set role Keeper", True, ["keeper"]),
        ("set role Keeper", False, ["Keeper"]),
        ('set local role to "a ""b"""', True, ['a "b"']),
        ("set role 'web'@'%', `read``er`@localhost, third", False, ["web", "read`er", "third"]),
    ],
)
def test_names_of_roles_are_read_as_the_server_reads_them(text: str, folds: bool, expected: list[str]) -> None:
    with file.database() as opened:
        opened.execute(
            "CREATE TABLE chosen AS "
            "SELECT ? AS text, lower(?) AS template, NULL AS error, NULL::VARCHAR[] AS parameters",
            [text, text],
        )
        assert sorted(roles.read(opened, folds)) == sorted(expected)
