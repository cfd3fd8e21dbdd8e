"""User files of SQL and dumps, loaded into PostgreSQL as psql and pg_restore load them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from brought import CASES, into_postgres
from own_data import dumped, shop
from raw_server import RawServer, binary

from ironbench import engines
from ironbench._core import Connection
from ironbench.engines.postgres import dump_contents
from ironbench.errors import FailureError, InputError
from ironbench.model.system import System

DEBIAN = Path("/usr/lib/postgresql/15/bin")
LEFT_OUT = {
    "clean.pg": {"drop": 2},
    "create-schema-public.pg": {"schema": 1},
    "policy-for-a-missing-role.pg": {"policy": 1},
    "session-authorization.pg": {"role": 1},
    "prose-that-looks-like-sql.pg": {},
}

pytestmark = pytest.mark.live


@pytest.fixture
def brought(raw_server: RawServer) -> Iterator[Connection]:
    """A connection to the database that a test loads; both end with the test."""
    boss = raw_server.connect()
    boss.query("drop database if exists brought")
    boss.query("create database brought template template0")
    yield boss
    boss.query("drop database if exists brought with (force)")
    boss.close()


@pytest.mark.parametrize("name", LEFT_OUT)
@pytest.mark.parametrize("setup", [False, True])
def test_what_psql_loads_in_spite_of_errors_is_loaded_and_what_was_left_out_is_counted(
    raw_server: RawServer, brought: Connection, name: str, setup: bool
) -> None:
    assert into_postgres(raw_server, CASES / f"{name}.sql", setup=setup).left_out == LEFT_OUT[name]
    inside = raw_server.connect(database="brought")
    table = "note" if "prose" in name else "item"
    rows = 2 if name.startswith(("create", "policy", "prose")) else 1
    assert inside.query(f"select count(*) from {table}") == [(str(rows),)]
    inside.close()


@pytest.mark.parametrize(
    "text",
    [
        "begin;\ncreate table item (id int);\n",
        "\\set AUTOCOMMIT off\ncreate table item (id int);\n",
        "create table item (id int);\n\\if notabool\n\\endif\n",
        "\\bogus\n",
        "create table item (id int);\n\\if true\n",
        "create table item (id int); insert into item values (1), (1);\ncreate unique index on item (id);\n",
        "drop index misspelled;\n",
        "\\set ON_ERROR_STOP on\ncomment on role nobody_there is 'x';\ncreate table item (id int);\n",
    ],
)
def test_errors_of_psql_and_of_the_server_and_open_transactions_end_a_load(
    raw_server: RawServer, brought: Connection, tmp_path: Path, text: str
) -> None:
    (file := tmp_path / "setup.sql").write_text(text)
    with pytest.raises(FailureError):
        into_postgres(raw_server, file, setup=True)


@pytest.mark.parametrize("words", [("--create",), ("--clean", "--create"), ("--clean",), ("--inserts",)])
def test_a_plain_dump_has_what_its_table_of_contents_lists_however_it_was_made(
    raw_server: RawServer, brought: Connection, tmp_path: Path, words: tuple[str, ...]
) -> None:
    shop(raw_server, "bought")
    try:
        file = dumped(raw_server, tmp_path / "shop.sql", "plain", "bought", *words)
    finally:
        brought.query("drop database bought")
    found = into_postgres(raw_server, file).objects
    rows = {} if "--inserts" in words else {"rows": 6000}
    kinds = {"tables": 2, "views": 1, "sequences": 1, "constraints": 2, "foreign keys": 1}
    assert found == kinds | rows


def test_a_database_that_lacks_what_the_dump_lists_is_refused(raw_server: RawServer, brought: Connection) -> None:
    dsn = f"postgresql://postgres@/brought?host={raw_server.host}&port={raw_server.port}"
    system, secrets = engines.get("postgres").validated(System("postgres", "t", dsn=dsn), 1)
    with engines.running(system, secrets, 1) as session:
        session.query("create table item (id int); insert into item values (1)")
        assert dump_contents.compared(session, "dump", {"TABLE": 1}, {"item": 1}) == {"tables": 1, "rows": 1}
        for entries, rows in (({"TABLE": 1, "INDEX": 1}, {}), (Counter(TABLE=2), {}), ({}, {"item": 2})):
            with pytest.raises(FailureError):
                dump_contents.compared(session, "dump", entries, rows)


@pytest.mark.skipif(
    not DEBIAN.is_dir() or "de_DE.utf8" not in subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout,
    reason="no PostgreSQL with German messages is installed",
)
def test_a_server_whose_messages_are_german_is_understood(tmp_path: Path) -> None:
    with RawServer("lc_messages=de_DE.UTF-8", programs=DEBIAN) as server:
        shop(server)
        file = tmp_path / "shop.custom"
        program = [binary("pg_dump"), "-h", str(server.host), "-p", str(server.port), "-U", "postgres", "-Fc"]
        subprocess.run([*program, "-f", str(file), "shop"], check=True, capture_output=True)
        restored = into_postgres(server, file)
        assert (restored.objects["tables"], restored.left_out) == (2, {"setting": 1})
        assert into_postgres(server, CASES / "clean.pg.sql").left_out == {"drop": 2}
        (broken := tmp_path / "setup.sql").write_text(
            "create table item (id int); insert into item values (1), (1);\ncreate unique index on item (id);\n"
        )
        with pytest.raises(FailureError, match="line 2"):
            into_postgres(server, broken, setup=True)


GERMAN = "de_DE.utf8"


@pytest.mark.skipif(
    GERMAN not in subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout,
    reason="the locale de_DE.utf8 is not installed",
)
def test_the_language_that_a_role_has_set_decides_nothing(raw_server: RawServer, database: str, tmp_path: Path) -> None:
    boss = raw_server.connect(database=database)
    for role, kind in (("german_boss", "superuser"), ("german_worker", "nosuperuser")):
        boss.query(f"create role {role} login {kind}; alter role {role} set lc_messages = '{GERMAN}'")
        boss.query(f"create schema {role} authorization {role}")
    try:
        for role, language in (("german_boss", "C"), ("german_worker", GERMAN)):
            (setup := tmp_path / f"{role}.sql").write_text(
                f"create table {role}.t (a int);\ninsert into {role}.t values (1), (1);\n"
                f"grant select on {role}.t to nobody_of_that_name;\ncreate unique index on {role}.t (a);\n"
            )
            dsn = f"host={raw_server.host} port={raw_server.port} user={role} dbname={database}"
            system, secrets = engines.get("postgres").validated(System("postgres", "t", dsn=dsn), 1)
            with engines.running(system, secrets, 1) as session:
                assert session.query("show lc_messages") == [(language,)]
                with pytest.raises(FailureError, match="line 4"):
                    engines.get("postgres").data_import.set_up(session, setup, lambda *_: None)
    finally:
        boss.query("drop owned by german_boss, german_worker; drop role german_boss; drop role german_worker")
        boss.close()


def test_a_dump_that_was_cut_is_refused_before_anything_is_into_postgres(raw_server: RawServer) -> None:
    for name in ("cut-before-constraints", "cut-within-copy"):
        with pytest.raises(InputError):
            into_postgres(raw_server, CASES / f"{name}.pg.sql", "cut")
    boss = raw_server.connect()
    boss.query("drop database cut")
    boss.close()


def test_bytes_of_a_database_in_sql_ascii_that_are_not_utf_8_are_read(raw_server: RawServer) -> None:
    boss = raw_server.connect()
    boss.query("drop database if exists bytes")
    boss.query("create database bytes template template0 encoding 'SQL_ASCII' locale_provider libc locale 'C'")
    try:
        dsn = f"postgresql://postgres@/bytes?host={raw_server.host}&port={raw_server.port}"
        system, secrets = engines.get("postgres").validated(System("postgres", "t", dsn=dsn), 1)
        with engines.running(system, secrets, 1) as session:
            session.query(r"create table item as select E'caf\351'::text as name")
            assert session.query("select name, octet_length(name) from item") == [("caf\ufffd", "4")]
            assert dict(session.target()["connection"]["options"])["client_encoding"] == "SQL_ASCII"
    finally:
        boss.query("drop database bytes with (force)")
        boss.close()
