"""Parses the records of an LDIF file (RFC 2849) and converts them to a uniform format. slapadd and LDAP operations
interpret this format in the same way. A record is an entry to add, or a change (modify, delete, modrdn). As in ldapadd,
`include: file:///…` inserts the records of another file. Also accepted: the last lines of ldapsearch output (`search:`,
`result:`, `ref:`), Windows line ends, a byte order mark. If an entry contains attributes that only the server may set,
these attributes are left out.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from ironbench.catalogue import text_files
from ironbench.errors import InputError

_CHUNK_BYTES = 1 << 20
_LARGEST_VALUE = 1 << 26
_HINT = "write LDIF: dn: …, then attributes, then an empty line"
_CHANGE_HINT = "write the change as in ldapmodify input"
_DEEPEST = 20
"""Maximum depth of nested includes."""
ADD, MODIFY, DELETE, RENAME = "add", "modify", "delete", "rename"
"""Kinds of records, under the names that operations have elsewhere in ironbench."""
_KINDS = {"add": ADD, "modify": MODIFY, "delete": DELETE, "modrdn": RENAME, "moddn": RENAME}
_MODIFICATIONS = ("add", "delete", "replace", "increment")
_NOT_ENTRIES = (b"search", b"result", b"ref", b"matcheddn", b"control", b"text")
"""First words of records that are not entries but part of ldapsearch's output (ldapsearch(1), -L)."""
_OPERATIONAL = frozenset(
    (
        *("createtimestamp", "creatorsname", "modifytimestamp", "modifiersname", "entryuuid", "entrycsn", "entrydn"),
        *("structuralobjectclass", "subschemasubentry", "hassubordinates", "numsubordinates", "contextcsn"),
        *("entryttl", "governingstructurerule", "authtimestamp", "pwdchangedtime", "nsuniqueid", "entryid", "parentid"),
        *("usncreated", "usnchanged", "objectguid", "whencreated", "whenchanged"),
    )
)
"""Attributes that OpenLDAP or another server defines as NO-USER-MODIFICATION (RFC 4512, 3.4; RFC 4530). Servers refuse
an add operation with such an attribute."""
_CRITICAL = re.compile(rb"^\s*[\d.]+\s+true\b", re.IGNORECASE)
"""Pattern of a control that a server must not ignore (RFC 2849, `control`; RFC 4511, 4.1.11)."""
_SPACE_AT_SEPARATOR = re.compile(r"(?<!\s)\s++(?=[,=])|(?<=[,=])\s++")
_LINE = re.compile(rb"([A-Za-z0-9.;_-]+):(<|:)?[ ]*(.*)", re.DOTALL)


class LdifRecord(NamedTuple):
    file: Path
    line: int
    """Number of the line in the file at which the record starts."""
    dn: str
    text: bytes
    """The record as LDIF: one line for each value, followed by an empty line."""
    kind: str = ADD
    renamed: str = ""
    """For a rename: new DN of the entry."""

    @property
    def where(self) -> str:
        return f"{self.file}, line {self.line}"


def records(path: Path) -> Iterator[LdifRecord]:
    """Yields the records of a file and of the files that it includes. Raises InputError that names the line if a file
    cannot be read or is invalid."""
    return _records(path, ())


def _records(path: Path, within: tuple[Path, ...]) -> Iterator[LdifRecord]:
    """Yields the records of a file. `within`: the chain of files that include this file."""
    try:
        text_files.refuse_unreadable(text_files.head_of(path), str(path), "LDIF")
        for line, text in _texts(path):
            number, rest = line, text
            while included := _INCLUDE.match(rest):
                number += rest[: included.end()].count(b"\n")
                file = _included(f"{path}, line {number}", included[1].decode(errors="replace"), path, within)
                yield from _records(file, (*within, path.resolve()))
                number, rest = number + 1, rest[included.end() + 1 :]
            if (record := _record(path, number, rest)) is not None:
                yield record
    except OSError as error:
        raise InputError(
            str(path), error.strerror or str(error), "give the path of an LDIF file that contains entries"
        ) from None


_INCLUDE = re.compile(rb"(?:#[^\n]*+\n(?: [^\n]*+\n)*+|\n)*+(?i:include):[ \t]*([^\n]*)")
"""Pattern of a record that includes another file (`ldif_read_record` in libraries/libldap/ldif.c of OpenLDAP)."""


def _included(subject: str, url: str, path: Path, within: tuple[Path, ...]) -> Path:
    file = _file(subject, url.strip(), path.parent, "correct the URL behind include:")
    if file.resolve() in (*within, path.resolve()):
        raise InputError(subject, f"{file} includes itself", "remove the include")
    if len(within) >= _DEEPEST:
        raise InputError(subject, f"more than {_DEEPEST} files include each other", "join them")
    return file


def line_of(path: Path, dn: str, kind: str = ADD) -> str:
    """Returns the file and line at which the first record with this kind and DN starts. Returns "" if there is no such
    record."""
    wanted = plain(dn)
    return next((one.where for one in records(path) if one.kind == kind and plain(one.dn) == wanted), "")


def plain(dn: str) -> str:
    """Normalises a DN. Case, and spaces around separators, do not matter."""
    return _SPACE_AT_SEPARATOR.sub("", dn).lower()


def parent(dn: str) -> str:
    """Returns the DN of the parent, which starts after the first comma that is not escaped by a backslash (RFC
    4514)."""
    found = re.match(r"(?:[^\\,]|\\.)*,", dn, re.DOTALL)
    return dn[found.end() :] if found else ""


def _texts(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yields each block of text between empty lines, with the number of the block's first line. Line ends are `\\n`."""
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


class _Line(NamedTuple):
    number: int
    name: str
    parts: re.Match[bytes] | None
    """Parts of the line, or None for the line `-`, which ends a modification."""
    text: bytes


def _lines(path: Path, first_line: int, record: bytes) -> Iterator[_Line]:
    """Yields the lines of a record, unfolded and without comments."""
    number = first_line
    for raw in re.split(rb"\n(?! )", record.rstrip(b"\n")):
        here, number = number, number + raw.count(b"\n") + 1
        line = raw.replace(b"\n ", b"")
        if line.startswith(b"#") or not line:
            continue
        if line.rstrip() == b"-":
            yield _Line(here, "-", None, b"-")
        elif (parts := _LINE.fullmatch(line)) is None:
            words = line[:40].decode(errors="replace")
            raise InputError(f"{path}, line {here}", f"{words!r} is not an attribute with a value", _HINT)
        else:
            yield _Line(here, parts[1].decode().lower(), parts, line)


def _record(path: Path, first_line: int, text: bytes) -> LdifRecord | None:
    """Parses a record. Returns None if the record contains no data, as parts of ldapsearch's output do."""
    lines = list(_lines(path, first_line, text))
    while lines and lines[0].name == "version":
        lines = lines[1:]
    if not lines or lines[0].name.encode() in _NOT_ENTRIES:
        return None
    first, *rest = lines
    if first.name != "dn" or first.parts is None:
        cause = f"an entry begins with dn:, not with {first.name}:"
        raise InputError(f"{path}, line {first.number}", cause, _HINT)
    dn = _dn(path, first.number, first.parts)
    kind = ADD
    while rest and rest[0].name == "control":
        if rest[0].parts is None or _CRITICAL.search(rest[0].parts[3]):
            cause = "critical controls are not supported"
            raise InputError(f"{path}, line {rest[0].number}", cause, "remove the record, or make the change by hand")
        rest = rest[1:]
    if rest and rest[0].name == "changetype" and rest[0].parts is not None:
        word = rest[0].parts[3].strip().lower().decode(errors="replace")
        if word not in _KINDS:
            raise InputError(f"{path}, line {rest[0].number}", f"changetype {word} is unknown", _CHANGE_HINT)
        kind, rest = _KINDS[word], rest[1:]
    if kind != ADD or any(one.parts is None for one in rest):
        _refuse_misplaced(path, kind, rest)
    kept = [one for one in rest if kind != ADD or one.name.partition(";")[0] not in _OPERATIONAL]
    head = [written(b"dn", dn.encode()), *([f"changetype: {_WORDS[kind]}".encode()] if kind != ADD else [])]
    body = b"\n".join([*head, *(_line(path, one) for one in kept)]) + b"\n\n"
    return LdifRecord(path, first.number, dn, body, kind, _renamed(path, dn, rest) if kind == RENAME else "")


_WORDS = {MODIFY: "modify", DELETE: "delete", RENAME: "modrdn"}


def _line(path: Path, one: _Line) -> bytes:
    if one.parts is None or (one.parts[2] is None and _is_text(one.text)):
        return one.text
    return written(one.parts[1], _value(path, one.number, one.parts))


def _refuse_misplaced(path: Path, kind: str, lines: Sequence[_Line]) -> None:
    """Raises InputError for a line that is not allowed in a record of this kind."""
    modified = ""
    named = dict.fromkeys(one.name for one in lines)
    for one in lines:
        fits = one.parts is not None
        if kind == MODIFY:
            begins = not modified and one.name in _MODIFICATIONS
            fits = one.parts is None or begins or (modified != "" and one.name == modified)
            if one.parts is None:
                modified = ""
            elif begins:
                modified = one.parts[3].strip().lower().decode(errors="replace")
        elif kind == RENAME:
            fits = one.name in ("newrdn", "deleteoldrdn", "newsuperior")
        elif kind == DELETE:
            fits = False
        if not fits:
            cause = f"{one.name}: is not allowed in a record of changetype {_WORDS.get(kind, kind)}"
            raise InputError(f"{path}, line {one.number}", cause, _CHANGE_HINT)
    if kind == RENAME and not {"newrdn", "deleteoldrdn"} <= named.keys():
        subject = f"{path}, line {lines[0].number}" if lines else str(path)
        raise InputError(subject, "a rename needs newrdn: and deleteoldrdn:", _CHANGE_HINT)


def _renamed(path: Path, dn: str, lines: Sequence[_Line]) -> str:
    values = {one.name: _dn(path, one.number, one.parts) for one in lines if one.parts is not None}
    return f"{values['newrdn']},{values.get('newsuperior', parent(dn))}"


def _value(path: Path, line: int, parts: re.Match[bytes]) -> bytes:
    if parts[2] == b":":
        try:
            return base64.b64decode(parts[3].strip(), validate=True)
        except binascii.Error:
            raise InputError(f"{path}, line {line}", f"the value of {parts[1].decode()} is not base64", _HINT) from None
    return _at_url(f"{path}, line {line}", parts[3].strip().decode(errors="replace")) if parts[2] == b"<" else parts[3]


def _at_url(subject: str, url: str) -> bytes:
    """Returns the value in the file that a `file:` URL names (RFC 2849: `attrval-spec`)."""
    file = _file(subject, url, Path(), "correct the URL of the value")
    try:
        value = file.read_bytes() if file.stat().st_size <= _LARGEST_VALUE else None
    except OSError as error:
        raise InputError(subject, f"{url}: {error.strerror or error}", "correct the URL of the value") from None
    if value is None:
        raise InputError(subject, f"{file} is larger than {_LARGEST_VALUE >> 20} MiB", "use a smaller file")
    return value


def _file(subject: str, url: str, beside: Path, hint: str) -> Path:
    """Returns the file that a `file:` URL names. Relative paths start at `beside`, or at the working directory."""
    if not url.lower().startswith("file:"):
        raise InputError(subject, f"{url!r} is not a file: URL", "only file: URLs can be read")
    try:
        parts = urlsplit(url)
        path = Path(unquote(parts.path))
        if parts.netloc not in ("", "localhost"):
            raise InputError(subject, f"{url!r} names another machine", "only files on this machine can be read")
        found = next((one for one in (beside / path, path) if one.is_file()), None)
    except (OSError, ValueError) as error:  # ValueError: no URL, or a null character in the path
        raise InputError(subject, f"{url}: {getattr(error, 'strerror', None) or error}", hint) from None
    if found is None:
        raise InputError(subject, f"{path}: no such file", hint)
    return found


def _dn(path: Path, line: int, parts: re.Match[bytes]) -> str:
    """Decodes a DN. Raises InputError if it is not UTF-8 (RFC 4514)."""
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
    """Formats an attribute and its value, base64-encoded where RFC 2849 requires it."""
    unsafe = value[:1] in (b" ", b":", b"<") or value[-1:] == b" " or b"\n" in value or b"\r" in value or b"\0" in value
    if unsafe or not _decodes(value):
        return name + b":: " + base64.b64encode(value)
    return name + b": " + value
