"""The entries that the jobs work on: people below one entry, and a place for those that the jobs add."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.engines.administration import BEGUN, ENTRY_MARK, ROOTS
from ironbench.errors import InputError
from ironbench.workloads.base import Dataset
from ironbench.workloads.directory import ldif

VERSION = 1
"""Raised whenever the same options would give other entries."""
NAME = "ou=directory"
TOP = f"{NAME},"
"""Holds all others; the base DN completes it."""
WORK = f"ou=work,{TOP}"
"""Holds what jobs add, and take away again."""
ENTRY_BYTES = 2_000
"""With its indexes, in back-mdb."""
TEMPLATE = """\
objectClass: top
objectClass: person
objectClass: organizationalPerson
objectClass: inetOrgPerson
uid: user.<number>
givenName: <first>
sn: <last>
cn: {givenName} {sn}
initials: {givenName:1}{sn:1}
employeeNumber: <number>
mail: user.<number>@example.com
userPassword: <password>
telephoneNumber: <random:telephone>
homePhone: <random:telephone>
pager: <random:telephone>
mobile: <random:telephone>
street: <random:numeric:1:9999> <list:Mill Lane,Station Road,High Street,Church Walk,Harbour View,Orchard Way>
l: <list:Ashford,Birkdale,Calder,Dunmore,Elmstead,Fairlight,Glenholm,Hartwell,Ivybrook,Kelmarsh>
st: <list:North,South,East,West>
postalCode: <random:digits:5>
postalAddress: {cn}${street}${l} {postalCode}
description: <random:alpha:80>
"""
"""What the entries look like where nobody says: people (tags: crates/ironbench-data/src/entries.rs)."""
PASSWORD = "password"
"""Of every entry that ironbench makes: nobody's."""
_PIECE = 1000
_LARGEST = 1 << 20


def dataset(options: Mapping[str, str]) -> Dataset:
    """InputError: the template or the user's entries cannot be read."""
    from ironbench import _core

    count = int(options["entries"])
    own, file = options["template"], options["ldif"]
    text = _text(own) if own else TEMPLATE
    if file:
        digest, count = _digest(Path(file))
        key, rows = f"directory ldif={digest}", count
    else:
        shape = "" if not own else f" template={hashlib.sha256(text.encode()).hexdigest()[:16]}"
        key, rows = f"directory version={VERSION} entries={count}{shape}", count
    _core.template_entries(text, own or "template", "", 1, 0)
    return Dataset(
        name=NAME,
        key=key,
        tables=(),
        schema=("core", "cosine", "inetorgperson"),
        generator={},
        keys=(),
        references=(),
        rows=rows,
        bytes=rows * ENTRY_BYTES,
        facts={"entries": str(rows)},
        entries=partial(_own, file) if file else partial(_made, text, count),
        roots=partial(_roots, file) if file else None,
        line_of=partial(_line_of, file) if file else None,
    )


def _head(base: str) -> str:
    unit = "objectClass: organizationalUnit"
    top = f"dn: {TOP}{base}\n{unit}\nou: directory\ndescription: {ENTRY_MARK}{BEGUN}\n\n"
    return f"{top}dn: {WORK}{base}\n{unit}\nou: work\n\n"


def _made(text: str, count: int, base: str) -> Iterator[bytes]:
    from ironbench import _core

    yield _head(base).encode()
    parent = f"{TOP}{base}"
    for first in range(1, count + 1, _PIECE):
        yield _core.template_entries(text, "template", parent, first, min(_PIECE, count + 1 - first))


def _own(path: str, base: str) -> Iterator[bytes]:
    """The user's entries, whole ones in each piece. Their DNs are below the base. Those that are there already are left
    out: an export of a directory has the one of its base DN."""
    yield _head(base).encode()
    if roots := _roots(path, base):
        yield _listed(roots, base)
    piece: list[bytes] = []
    for entry in _below(path, base):
        piece.append(entry.text)
        if len(piece) >= _PIECE:
            yield b"".join(piece)
            piece = []
    yield b"".join(piece)


def _below(path: str, base: str) -> Iterator[ldif.Entry]:
    there = {ldif.plain(dn) for dn in (base, f"{TOP}{base}", f"{WORK}{base}")}
    return (entry for entry in ldif.entries(Path(path)) if ldif.plain(entry.dn) not in there)


def _roots(path: str, base: str) -> tuple[str, ...]:
    seen: set[str] = set()
    roots, top = [], ldif.plain(f"{TOP}{base}")
    for entry in _below(path, base):
        dn = ldif.plain(entry.dn)
        if ldif.parent(dn) not in seen and not dn.endswith(f",{top}"):
            roots.append(entry.dn)
        seen.add(dn)
    return tuple(roots)


def _listed(roots: Sequence[str], base: str) -> bytes:
    """Entries that name what a load adds outside of `TOP`, so that `ironbench cleanup` finds it."""
    parts = []
    for number, first in enumerate(range(0, len(roots), _PIECE)):
        name = f"{ROOTS}{number}"
        values = [ldif.written(b"description", dn.encode()).decode() for dn in roots[first : first + _PIECE]]
        parts += [f"dn: ou={name},{TOP}{base}", "objectClass: organizationalUnit", f"ou: {name}", *values, ""]
    return "".join(f"{line}\n" for line in parts).encode()


def _line_of(path: str, dn: str) -> str:
    line = ldif.line_of(Path(path), dn)
    return f"{path}, line {line}" if line else ""


def _digest(path: Path) -> tuple[str, int]:
    """Of the entries, and how many there are. InputError: it cannot be read."""
    seen, count = hashlib.sha256(), 0
    for entry in ldif.entries(path):
        seen.update(entry.text)
        count += 1
    if count == 0:
        raise InputError(str(path), "contains no entry", "write LDIF: dn: …, then attributes, then an empty line")
    return seen.hexdigest()[:16], count


def _text(path: str) -> str:
    return text_of(Path(path), path, "name a text file with a template", _LARGEST)
