"""The user's own entries in a directory: on a running server, and on one that ironbench starts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from directory_server import BASE, DirectoryServer, connected, load, searched, serving, started
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
    """Base DN of another user, with one entry below it, in a running directory; removed after the test."""
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


CHANGED = """include: file:first.ldif

dn: cn=b,ou=people,{base}
changetype: modify
add: description
description: one
description: two
-
replace: sn
sn:: w6k=
-

dn: cn=b,ou=people,{base}
changetype: modify
delete: description
description: one
-

dn: cn=a,ou=people,{base}
changetype: modrdn
newrdn: cn=renamed
deleteoldrdn: 1

dn: ou=people,{base}
changetype: moddn
newrdn: ou=others
deleteoldrdn: 0

dn: cn=c,ou=others,{base}
changetype: add
objectClass: person
cn: c
sn: c

dn: cn=d,ou=others,{base}
changetype: delete
"""
FIRST = "dn: ou=people,{base}\nobjectClass: organizationalUnit\nou: people\n" + "".join(
    f"\ndn: cn={name},ou=people,{{base}}\nobjectClass: person\ncn: {name}\nsn: {name}\n" for name in "abd"
)


def written(place: Path, base: str, more: str = "") -> Path:
    (place / "first.ldif").write_text(FIRST.format(base=base))
    (file := place / "own.ldif").write_text(CHANGED.format(base=base) + more)
    return file


def below(server: DirectoryServer, base: str) -> list[str]:
    """Lists entries except those that ironbench has added."""
    found = searched(server, "-b", base, "(!(ou=*directory*))").split("\n\n")
    return sorted(one for one in found if one.strip() and "ou=directory" not in one)


def test_changes_and_included_files_come_to_what_ldapadd_makes_of_them(server: DirectoryServer, place: Path) -> None:
    bases = [f"ou=by-{name},{BASE}" for name in ("ldapadd", "ironbench")]
    for base in bases:
        server.session.query(f"add {base}?objectClass=organizationalUnit?ou={base[3 : base.index(',')]}")
    file = written(place, bases[0])
    secrets = server.session._secrets
    command = ["ldapadd", "-x", "-H", f"ldap://127.0.0.1:{server.port}", "-D", f"cn=ironbench,{BASE}"]
    done = subprocess.run(
        [*command, "-w", secrets.password or "", "-f", str(file)], cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    session = connected(server.root.replace(f"/{BASE}", f"/{bases[1]}"))
    try:
        load(session, 1, own_server=False, ldif=str(written(place, bases[1])), filter="(cn=a)")
        by_us = [one.replace(bases[1], bases[0]) for one in below(server, f"ou=others,{bases[1]}")]
        assert by_us == below(server, f"ou=others,{bases[0]}")
        assert len(by_us) == 4
        ENGINE.administration.remove_made(session)
        assert entries_of(server, bases[1]) == [bases[1]]
    finally:
        session.stop()


def test_changes_are_carried_out_on_a_server_that_ironbench_starts(place: Path) -> None:
    wrong = f"\ndn: cn=none,{BASE}\nchangetype: delete\n"
    with started(place) as session:
        load(session, 1, ldif=str(written(place, BASE)), filter="(cn=a)")
        rows = session.query(f"search ou=others,{BASE}?description?sub?(objectClass=person)")
        assert sorted((str(dn).partition(",")[0], value) for dn, value in rows) == [
            ("cn=b", "two"),
            ("cn=c", None),
            ("cn=renamed", None),
        ]
        with pytest.raises(FailureError) as failed:
            load(session, 1, ldif=str(written(place, BASE, wrong)), filter="(cn=a)")
        assert failed.value.subject.endswith(f"own.ldif, line {CHANGED.count(chr(10)) + 2}")


def test_a_change_of_an_entry_that_the_file_does_not_add_is_refused_on_a_running_directory(
    server: DirectoryServer, place: Path, theirs: str
) -> None:
    before = entries_of(server, theirs)
    (file := place / "own.ldif").write_text(
        f"dn: cn=n,{theirs}\nobjectClass: person\ncn: n\nsn: n\n\ndn: cn=a,{theirs}\nchangetype: delete\n"
    )
    session = connected(server.root.replace(f"/{BASE}", f"/{theirs}"))
    try:
        with pytest.raises(InputError, match="which the file does not add") as refused:
            load(session, 1, own_server=False, ldif=str(file), filter="(cn=a)")
        assert refused.value.subject == f"{file}, line 6" and entries_of(server, theirs) == before
    finally:
        session.stop()
