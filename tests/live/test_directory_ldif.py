"""Entries of the user's own in a directory: on a running server, and on one that ironbench starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from directory_server import BASE, DirectoryServer, connected, load, serving, started
from factories import require_installed

from ironbench import engines
from ironbench.errors import FailureError, InputError

pytestmark = pytest.mark.live
ENGINE = engines.get("slapd")


@pytest.fixture(scope="module")
def server(fast_directory: Path) -> Iterator[DirectoryServer]:
    require_installed("slapd")
    with serving(fast_directory, "slapd-ldif") as server:
        yield server


PEOPLE = """version: 1

# people, as an
  export has them
dn: ou=people,{base}
changetype: add
objectClass: organizationalUnit
ou: people
entryUUID: 2d1a2d6e-0000-0000-0000-000000000000
creatorsName: cn=admin

dn: cn=a,ou=people,{base}
objectClass: person
cn: a
sn:: YQ==

# search result
search: 2
result: 0 Success
"""
WRONG = "dn: cn=b,ou=people,{base}\nobjectClass: person\ncn: b\n\n"


@pytest.fixture
def theirs(server: DirectoryServer) -> Iterator[str]:
    """Base DN of others, with one entry below it, in a directory that runs already; all goes with the test."""
    base = f"ou=theirs,{BASE}"
    server.session.query(f"add {base}?objectClass=organizationalUnit?ou=theirs")
    server.session.query(f"add cn=a,{base}?objectClass=person?cn=a?sn=a")
    yield base
    for dn, *_ in sorted(server.session.query(f"search {base}?1.1?sub"), key=lambda row: -str(row[0]).count(",")):
        server.session.query(f"delete {dn}")


def entries_of(server: DirectoryServer, base: str) -> list[str]:
    return sorted(str(dn) for dn, *_ in server.session.query(f"search {base}?1.1?sub"))


def test_entries_of_a_file_are_loaded_into_a_running_directory_and_removed_by_cleanup(
    server: DirectoryServer, place: Path, theirs: str
) -> None:
    before = entries_of(server, theirs)
    (file := place / "own.ldif").write_bytes(
        b"\xef\xbb\xbf" + PEOPLE.format(base=theirs).replace("\n", "\r\n").encode()
    )
    session = connected(server.root.replace(f"/{BASE}", f"/{theirs}"))
    try:
        load(session, 1, own_server=False, ldif=str(file), filter="(cn=a)")
        added = set(entries_of(server, theirs)) - set(before)
        assert {f"ou=people,{theirs}", f"cn=a,ou=people,{theirs}"} < added
        ENGINE.administration.remove_made(session)
        assert entries_of(server, theirs) == before
    finally:
        session.stop()


def test_a_load_that_fails_on_a_running_directory_removes_what_it_added_and_names_the_line(
    server: DirectoryServer, place: Path, theirs: str
) -> None:
    before, text = entries_of(server, theirs), PEOPLE + "\n" + WRONG
    (file := place / "own.ldif").write_text(text.format(base=theirs))
    line = f"own.ldif, line {text[: text.index('dn: cn=b')].count(chr(10)) + 1}"
    session = connected(server.root.replace(f"/{BASE}", f"/{theirs}"))
    try:
        with pytest.raises(FailureError) as failed:
            load(session, 1, own_server=False, ldif=str(file), filter="(cn=a)")
        assert line in failed.value.subject and entries_of(server, theirs) == before
        file.write_text(f"dn: cn=a,{theirs}\nobjectClass: person\ncn: a\nsn: a\n")
        with pytest.raises(InputError, match="exists"):
            load(session, 1, own_server=False, ldif=str(file), filter="(cn=a)")
        assert entries_of(server, theirs) == before
    finally:
        session.stop()


def test_a_load_into_a_server_of_ironbenchs_own_that_fails_names_the_line_of_the_users_file(place: Path) -> None:
    text = PEOPLE + "\n" + WRONG
    (file := place / "own.ldif").write_text(text.format(base=BASE))
    with started(place) as session, pytest.raises(FailureError) as failed:
        load(session, 1, ldif=str(file), filter="(cn=a)")
    assert f"own.ldif, line {text[: text.index('dn: cn=b')].count(chr(10)) + 1}" in failed.value.subject
