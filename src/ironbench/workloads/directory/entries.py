"""The entries that the jobs use: people below one entry, and a second entry below which the jobs add entries."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.engines.administration import BEGUN, ENTRY_MARK, ROOTS
from ironbench.errors import InputError
from ironbench.workloads.base import Dataset
from ironbench.workloads.directory import ldif

VERSION = 1
"""Version of the entries. The version is increased whenever the same options would produce different entries."""
NAME = "ou=directory"
TOP = f"{NAME},"
"""DN of the parent of all entries, without the base DN."""
WORK = f"ou=work,{TOP}"
"""DN of the parent of the entries that jobs add and delete, without the base DN."""
ENTRY_BYTES = 2_000
"""Approximate size of an entry with its indexes in back-mdb."""
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
"""Default template of the entries, which are people (tags: crates/ironbench-data/src/entries.rs)."""
PASSWORD = "password"
"""Password of every generated entry. It protects nothing."""
_PIECE = 1000
_LARGEST = 1 << 20


def dataset(options: Mapping[str, str]) -> Dataset:
    """Returns the dataset. Raises InputError if the template or the user's entries cannot be read."""
    from ironbench import _core

    count = int(options["entries"])
    own, file = options["template"], options["ldif"]
    text = _text(own) if own else TEMPLATE
    changed = False
    if file:
        digest, count, changed = _digest(Path(file))
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
        entries=partial(_entries_of_file, file) if file else partial(_made, text, count),
        roots=partial(_roots, file) if file else None,
        line_of=partial(_line_of, file) if file else None,
        changes=partial(_changes, file) if changed else None,
        stranger=partial(_stranger, file) if changed else None,
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


def _entries_of_file(path: str, base: str) -> Iterator[bytes]:
    """Yields the entries of the user's file in pieces, up to the first record that is a change. A piece contains only
    whole entries. The DNs of the entries are below the base DN. Entries that already exist are left out, because the
    export of a directory contains the entry of its base DN.
    """
    yield _head(base).encode()
    if roots := _roots(path, base):
        yield _listed(roots, base)
    yield from _pieces(itertools.takewhile(_adds, _below(path, base)))


def _changes(path: str, base: str) -> Iterator[bytes]:
    """Yields the records of the user's file from the first change on."""
    return _pieces(itertools.dropwhile(_adds, _below(path, base)))


def _adds(record: ldif.LdifRecord) -> bool:
    return record.kind == ldif.ADD


def _pieces(records: Iterable[ldif.LdifRecord]) -> Iterator[bytes]:
    piece: list[bytes] = []
    for record in records:
        piece.append(record.text)
        if len(piece) >= _PIECE:
            yield b"".join(piece)
            piece = []
    if piece:
        yield b"".join(piece)


def _below(path: str, base: str) -> Iterator[ldif.LdifRecord]:
    existing = {ldif.plain(dn) for dn in (base, f"{TOP}{base}", f"{WORK}{base}")}
    records = ldif.records(Path(path))
    return (record for record in records if not _adds(record) or ldif.plain(record.dn) not in existing)


def _roots(path: str, base: str) -> tuple[str, ...]:
    seen: set[str] = set()
    roots, top = [], ldif.plain(f"{TOP}{base}")
    for record in _below(path, base):
        if record.kind in (ldif.MODIFY, ldif.DELETE):
            continue
        name = record.renamed or record.dn
        dn = ldif.plain(name)
        # A rename may move an entry out of the subtree to which it was added.
        if (record.renamed or ldif.parent(dn) not in seen) and not dn.endswith(f",{top}"):
            roots.append(name)
        seen.add(dn)
    return tuple(roots)


def _stranger(path: str, base: str) -> tuple[str, str] | None:
    """Finds the first record that changes an entry which the file does not add. Returns its (file and line, DN)."""
    ours = {ldif.plain(dn) for dn in (*_roots(path, base), f"{TOP}{base}")}
    for record in _below(path, base):
        dn = "" if _adds(record) else ldif.plain(record.dn)
        while dn and dn not in ours:
            dn = ldif.parent(dn)
        if not _adds(record) and not dn:
            return record.where, record.dn
    return None


def _listed(roots: Sequence[str], base: str) -> bytes:
    """Returns entries whose attributes list the DNs that a load adds outside of `TOP`. `ironbench cleanup` reads them
    to find these DNs."""
    parts = []
    for number, first in enumerate(range(0, len(roots), _PIECE)):
        name = f"{ROOTS}{number}"
        values = [ldif.written(b"description", dn.encode()).decode() for dn in roots[first : first + _PIECE]]
        parts += [f"dn: ou={name},{TOP}{base}", "objectClass: organizationalUnit", f"ou: {name}", *values, ""]
    return "".join(f"{line}\n" for line in parts).encode()


def _line_of(path: str, dn: str, verb: str) -> str:
    return ldif.line_of(Path(path), dn, verb)


def _digest(path: Path) -> tuple[str, int, bool]:
    """Returns a digest of the records, the number of entries after all changes, and whether there are changes. Raises
    InputError."""
    seen, count, read, changed = hashlib.sha256(), 0, False, False
    for record in ldif.records(path):
        seen.update(record.text)
        read, changed = True, changed or not _adds(record)
        count += {ldif.ADD: 1, ldif.DELETE: -1}.get(record.kind, 0)
    if not read:
        raise InputError(str(path), "contains no entry", "write LDIF: dn: …, then attributes, then an empty line")
    return seen.hexdigest()[:16], max(0, count), changed


def _text(path: str) -> str:
    return text_of(Path(path), path, "give the path of a text file that contains a template", _LARGEST)
