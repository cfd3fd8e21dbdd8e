"""The entries that the jobs work on: people below one entry, and a place for those that the jobs add."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ironbench.catalogue.typed import text_of
from ironbench.errors import InputError
from ironbench.workloads.base import Dataset

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
    own, ldif = options["template"], options["ldif"]
    text = _text(own) if own else TEMPLATE
    if ldif:
        digest, count = _digest(Path(ldif))
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
        entries=partial(_own, ldif) if ldif else partial(_made, text, count),
    )


def _head(base: str) -> str:
    unit = "objectClass: organizationalUnit"
    return f"dn: {TOP}{base}\n{unit}\nou: directory\n\ndn: {WORK}{base}\n{unit}\nou: work\n\n"


def _made(text: str, count: int, base: str) -> Iterator[bytes]:
    from ironbench import _core

    yield _head(base).encode()
    parent = f"{TOP}{base}"
    for first in range(1, count + 1, _PIECE):
        yield _core.template_entries(text, "template", parent, first, min(_PIECE, count + 1 - first))


def _own(ldif: str, base: str) -> Iterator[bytes]:
    """The user's entries, whole ones in each piece. Their DNs are below the base. Those that are there already are left
    out: an export of a directory has the one of its base DN."""
    yield _head(base).encode()
    there = {_plain(dn) for dn in (base, f"{TOP}{base}", f"{WORK}{base}")}
    piece: list[bytes] = []
    entry: list[bytes] = []
    with Path(ldif).open("rb") as file:
        for line in file:
            entry.append(line)
            if line.strip():
                continue
            piece += [] if _plain(_dn(entry)) in there else entry
            entry = []
            if len(piece) >= 4 * _PIECE:
                yield b"".join(piece)
                piece = []
    yield b"".join([*piece, *([] if _plain(_dn(entry)) in there else entry)]) + b"\n"


def _dn(entry: Sequence[bytes]) -> str:
    """Of the lines of an entry (RFC 2849); empty where they hold none."""
    whole = b"".join(entry).replace(b"\r\n", b"\n").replace(b"\n ", b"")
    for line in whole.split(b"\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"dn":
            with suppress(ValueError):
                return (b64decode(value[1:]) if value.startswith(b":") else value).decode().strip()
    return ""


def _plain(dn: str) -> str:
    """As others may write it, too."""
    return re.sub(r"\s*([,=])\s*", r"\1", dn).lower()


def _digest(path: Path) -> tuple[str, int]:
    """Of the contents, and how many entries there are. InputError: it cannot be read."""
    seen, count, begins = hashlib.sha256(), 0, True
    try:
        with path.open("rb") as file:
            for line in file:
                seen.update(line)
                count += begins and line.lower().startswith(b"dn:")
                begins = not line.strip() or (begins and line.startswith((b"#", b"version:")))
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "name a file with entries (LDIF)") from None
    if count == 0:
        raise InputError(str(path), "holds no entry", "write LDIF: dn: …, then attributes, then an empty line")
    return seen.hexdigest()[:16], count


def _text(path: str) -> str:
    return text_of(Path(path), path, "name a text file with a template", _LARGEST)
