"""Entries of an LDIF file (RFC 2849), written in one form, so that slapadd and LDAP add judge them alike.

Accepted besides content records: `changetype: add`, the last lines of what ldapsearch prints (`search:`, `result:`,
`ref:`), Windows line ends, a byte order mark. Attributes that only the server may set are left out.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ironbench.catalogue import text_files
from ironbench.errors import InputError

_CHUNK_BYTES = 1 << 20
_LARGEST_VALUE = 1 << 26
_HINT = "write LDIF: dn: …, then attributes, then an empty line"
_NOT_ENTRIES = (b"search", b"result", b"ref", b"matcheddn", b"control", b"text")
"""First words of records that ldapsearch prints beside entries (ldapsearch(1), -L)."""
_OPERATIONAL = frozenset(
    name.encode()
    for name in (
        *("createtimestamp", "creatorsname", "modifytimestamp", "modifiersname", "entryuuid", "entrycsn", "entrydn"),
        *("structuralobjectclass", "subschemasubentry", "hassubordinates", "numsubordinates", "contextcsn"),
        *("entryttl", "governingstructurerule", "authtimestamp", "pwdchangedtime", "nsuniqueid", "entryid", "parentid"),
        *("usncreated", "usnchanged", "objectguid", "whencreated", "whenchanged"),
    )
)
"""Defined as NO-USER-MODIFICATION (RFC 4512, 3.4; RFC 4530), in OpenLDAP or in other servers: a server refuses them in
an add operation."""
_SPACE_AT_SEPARATOR = re.compile(r"(?<!\s)\s++(?=[,=])|(?<=[,=])\s++")
_LINE = re.compile(rb"([A-Za-z0-9.;_-]+):(<|:)?[ ]*(.*)", re.DOTALL)


class Entry(NamedTuple):
    line: int
    """Line of the file where it begins."""
    dn: str
    text: bytes
    """One line per value, and an empty one."""


def entries(path: Path) -> Iterator[Entry]:
    """InputError: the file cannot be read, or a record is none of an entry; with the line."""
    try:
        text_files.refuse_unreadable(text_files.head_of(path), str(path), "LDIF")
        for line, record in _records(path):
            if (entry := _entry(path, line, record)) is not None:
                yield entry
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), "name a file with entries (LDIF)") from None


def line_of(path: Path, dn: str) -> int | None:
    """Line where the entry with that DN begins; None: the file has none."""
    wanted = plain(dn)
    return next((entry.line for entry in entries(path) if plain(entry.dn) == wanted), None)


def plain(dn: str) -> str:
    """The same for all spellings of a DN that differ in case and in spaces around its separators."""
    return _SPACE_AT_SEPARATOR.sub("", dn).lower()


def parent(dn: str) -> str:
    """What follows the first comma that no backslash escapes (RFC 4514)."""
    found = re.match(r"(?:[^\\,]|\\.)*,", dn, re.DOTALL)
    return dn[found.end() :] if found else ""


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    """What stands between empty lines, with the number of its first line; line ends are `\\n`."""
    line, rest, first = 1, b"", True
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            chunk += file.readline()
            if first:
                chunk, first = chunk.removeprefix(codecs.BOM_UTF8), False
            *whole, rest = (rest + chunk.replace(b"\r\n", b"\n")).split(b"\n\n")
            for record in whole:
                skipped = len(record) - len(record.lstrip(b"\n"))
                yield line + skipped, record[skipped:]
                line += record.count(b"\n") + 2
    skipped = len(rest) - len(rest.lstrip(b"\n"))
    yield line + skipped, rest[skipped:]


def _entry(path: Path, first_line: int, record: bytes) -> Entry | None:
    dn, lines, begins = None, list[bytes](), first_line
    number = first_line
    for raw in re.split(rb"\n(?! )", record.rstrip(b"\n")):
        here, number = number, number + raw.count(b"\n") + 1
        line = raw.replace(b"\n ", b"")
        if line.startswith(b"#") or not line:
            continue
        if (parts := _LINE.fullmatch(line)) is None:
            words = line[:40].decode(errors="replace")
            raise InputError(f"{path}, line {here}", f"{words!r} is not an attribute with a value", _HINT)
        name = parts[1].lower()
        if dn is None:
            if name == b"version":
                continue
            if name in _NOT_ENTRIES:
                return None
            if name != b"dn":
                raise InputError(
                    f"{path}, line {here}", f"an entry begins with dn:, not with {parts[1].decode()}:", _HINT
                )
            dn, begins = _dn(path, here, parts), here
            lines.append(written(b"dn", dn.encode()))
            continue
        if name == b"changetype":
            kind = parts[3].strip().lower().decode(errors="replace")
            if kind != "add":
                cause = f"changetype {kind}: only entries to add can be loaded"
                raise InputError(
                    f"{path}, line {here}", cause, "apply the changes with ldapmodify, then export by ldapsearch"
                )
            continue
        if name == b"control":
            raise InputError(f"{path}, line {here}", "controls are not supported", "remove the line")
        if name.partition(b";")[0] in _OPERATIONAL:
            continue
        lines.append(line if parts[2] is None and _is_text(line) else written(parts[1], _value(path, here, parts)))
    return None if dn is None else Entry(begins, dn, b"\n".join(lines) + b"\n\n")


def _value(path: Path, line: int, parts: re.Match[bytes]) -> bytes:
    if parts[2] == b":":
        try:
            return base64.b64decode(parts[3].strip(), validate=True)
        except binascii.Error:
            raise InputError(f"{path}, line {line}", f"the value of {parts[1].decode()} is not base64", _HINT) from None
    return _at_url(f"{path}, line {line}", parts[3].strip().decode(errors="replace")) if parts[2] == b"<" else parts[3]


def _at_url(subject: str, url: str) -> bytes:
    """The value in the file that a `file:` URL names (RFC 2849: `attrval-spec`)."""
    hint = "correct the URL of the value"
    if not url.lower().startswith("file:"):
        raise InputError(subject, f"the value is at {url}", "only file: URLs can be read")
    try:
        file = Path(unquote(urlsplit(url).path))
        if not file.is_file():
            raise InputError(subject, f"{file}: no such file", hint)
        value = file.read_bytes() if file.stat().st_size <= _LARGEST_VALUE else None
    except (OSError, ValueError) as error:  # ValueError: no URL, or a null character in the path
        raise InputError(subject, f"{url}: {getattr(error, 'strerror', None) or error}", hint) from None
    if value is None:
        raise InputError(subject, f"{file} is larger than {_LARGEST_VALUE >> 20} MiB", "name a smaller file")
    return value


def _dn(path: Path, line: int, parts: re.Match[bytes]) -> str:
    """InputError: it is not UTF-8 (RFC 4514)."""
    try:
        return _value(path, line, parts).decode().strip()
    except UnicodeDecodeError:
        raise InputError(f"{path}, line {line}", "the DN is not UTF-8", "convert the file: iconv -t UTF-8") from None


def _is_text(line: bytes) -> bool:
    return line.isascii() or _decodes(line)


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def written(name: bytes, value: bytes) -> bytes:
    """As base64 where RFC 2849 asks for it."""
    unsafe = value[:1] in (b" ", b":", b"<") or value[-1:] == b" " or b"\n" in value or b"\r" in value or b"\0" in value
    if unsafe or not _decodes(value):
        return name + b":: " + base64.b64encode(value)
    return name + b": " + value
