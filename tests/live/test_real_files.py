"""Files written by real programs give the same rows, routines, views and entries as with the servers' own clients."""

from __future__ import annotations

import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

import pytest
from brought import (
    CASES,
    REAL,
    as_mariadb_dump_shows,
    as_pg_dump_shows,
    by_ldapadd,
    by_mariadb,
    by_psql,
    differences,
    entries_shown,
    into_mariadb,
    into_postgres,
)
from directory_server import BASE, DirectoryServer, connected, load, serving
from factories import require_installed
from raw_mysql import LACKING, PASSWORD, RawMysql
from raw_server import RawServer, free_port

from ironbench import engines

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("real-files")]
REFUSED = ("cut-", "no-commit", "psql-conditional")
"""Incomplete files, which a client loads partially: test_dumps_postgres.py, test_dumps_mariadb.py."""
BOUGHT_NAMES = {"heidisql-12": "farm", "sakila": "video"}
"""Files that create a database, whose name the client mariadb uses."""
_SET_BY_SERVERS = re.compile(
    rb"^(?:nsUniqueId|modifyTimestamp|modifiersName|createTimestamp|creatorsName|numSubordinates|parentid|entryid"
    rb"|structuralObjectClass|entryUUID|entryCSN|contextCSN|pwdChangedTime|whenC\w+|uSN\w+|objectGUID)::?.*\r?\n",
    re.MULTILINE,
)
"""Attributes that ldapadd sends and a server refuses, because only servers set them."""


def files(dialect: str) -> list[Path]:
    found = [path for folder in (CASES, REAL) for path in sorted(folder.glob(f"*.{dialect}.sql"))]
    return [path for path in found if not path.name.startswith(REFUSED)]


@pytest.mark.parametrize("file", files("pg"), ids=lambda path: path.name)
def test_a_file_gives_the_database_that_psql_makes_of_it(raw_server: RawServer, file: Path) -> None:
    try:
        into_postgres(raw_server, file, "ours")
        by_psql(raw_server, file, "theirs")
        ours, theirs = (as_pg_dump_shows(raw_server, name) for name in ("ours", "theirs"))
        assert "CREATE TABLE" in ours and ours == theirs
    finally:
        boss = raw_server.connect()
        boss.query("drop database if exists ours with (force); ")
        boss.query("drop database if exists theirs with (force)")
        boss.close()


@pytest.fixture(scope="module")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawMysql]:
    if LACKING or shutil.which("mariadb") is None or shutil.which("mariadb-dump") is None:
        pytest.skip("MariaDB or its clients are not installed")
    one = RawMysql(tmp_path_factory.mktemp("maria"), free_port())
    one.query(f"create user maker identified by '{PASSWORD}'; grant all on d.* to maker")
    one.query("grant all privileges on `ironbench\\_%`.* to maker")
    for definer in ("nobody@`%`", "wp@localhost", "farmer@`%`"):  # mariadb-dump shows no view of a missing user
        one.query(f"create user {definer}; grant all on *.* to {definer}")
    yield one
    one.stop()


@pytest.mark.parametrize("file", files("maria"), ids=lambda path: path.name)
def test_a_file_gives_the_database_that_the_client_mariadb_makes_of_it(maria: RawMysql, file: Path) -> None:
    name = BOUGHT_NAMES.get(file.name.partition(".")[0], "theirs")
    with into_mariadb(maria, file) as database:
        ours = as_mariadb_dump_shows(maria, database)
    try:
        by_mariadb(maria, file, name, keep_comments=not file.name.startswith("delimiter-after"))
        theirs = as_mariadb_dump_shows(maria, name)
    finally:
        maria.query(f"drop database if exists `{name}`")
    # Everything goes to one database, whatever the file calls it, so names lose that prefix.
    assert "CREATE TABLE" in ours and ours.replace(f"`{name}`.", "") == theirs.replace(f"`{name}`.", "")


@pytest.fixture(scope="module")
def directory(fast_directory: Path) -> Iterator[DirectoryServer]:
    require_installed("slapd")
    if shutil.which("ldapadd") is None:
        pytest.skip("ldapadd is not installed")
    with serving(fast_directory, "slapd-real") as server:
        yield server


LDIF = sorted([*(CASES.parent / "ldif").glob("*.ldif"), *REAL.glob("*.ldif")])


@pytest.mark.parametrize("file", LDIF, ids=lambda path: path.name)
def test_an_ldif_file_gives_the_entries_that_ldapadd_adds(directory: DirectoryServer, file: Path, place: Path) -> None:
    host = f"ldap://127.0.0.1:{directory.port}"
    who = ["-D", f"cn=ironbench,{BASE}", "-w", directory.session._secrets.password or ""]
    wanted = entries_shown(host, BASE, *who)
    assert not wanted, "the directory has entries of another test"
    try:
        by_ldapadd(host, _SET_BY_SERVERS.sub(b"", file.read_bytes().removeprefix(BOM_UTF8)), who)
        wanted = entries_shown(host, BASE, *who)
    finally:
        _remove(directory, wanted)
    assert wanted
    administration = engines.get("slapd").administration
    administration.remove_made(directory.session)
    session = connected(directory.root)
    try:
        load(session, 1, own_server=False, ldif=str(file), filter="(objectClass=*)")
        found = entries_shown(host, BASE, *who)
    finally:
        administration.remove_made(session)
        session.stop()
    assert not differences(found, wanted)
    with serving(place, "own") as own:
        load(own.session, 1, ldif=str(file), filter="(objectClass=*)")
        root = ["-D", f"cn=ironbench,{BASE}", "-w", own.session._secrets.password or ""]
        by_slapadd = entries_shown(f"ldap://127.0.0.1:{own.port}", BASE, *root)
    # slapadd keeps the case of names within values, an add operation normalises it.
    assert not differences(lowered(by_slapadd), lowered(wanted))


def lowered(entries: dict[str, list[str]]) -> dict[str, list[str]]:
    return {dn: [line.lower() if ":: " not in line else line for line in lines] for dn, lines in entries.items()}


def _remove(directory: DirectoryServer, entries: dict[str, list[str]]) -> None:
    rows = directory.session.query(f"search {BASE}?1.1?sub")
    for dn, *_ in sorted(rows, key=lambda row: -str(row[0]).count(",")):
        if str(dn) != BASE and not str(dn).endswith(f"ou=directory,{BASE}"):
            directory.session.query(f"delete {str(dn).replace('%', '%25').replace('?', '%3F')}")
