"""Parses SQL files for psql. Finds out what dumps of pg_dump and pg_dumpall contain, and which statements must not run.

pg_dump writes its table of contents in comments: `-- Name: …; Type: …; Schema: …; Owner: …`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ironbench.catalogue import text_files
from ironbench.engines.postgres.harmless import NAME, made
from ironbench.engines.sql_files import Piece, ends_with_line, pieces
from ironbench.errors import InputError
from ironbench.model.redact import redacted_sql

_HEADS = {b"-- PostgreSQL database dump": "pg_dump", b"-- PostgreSQL database cluster dump": "pg_dumpall"}
_END = "{} complete"
_ENTRY = re.compile(rb"^-- Name: [^\n]*?; Type: ([A-Z ]+); Schema: ", re.MULTILINE)
_SERVER_WIDE = re.compile(
    r"(?:CREATE|DROP|ALTER)\s+(?:(DATABASE)|TABLESPACE|ROLE|GROUP|USER\s+(?!MAPPING)|SUBSCRIPTION|SYSTEM)\b",
    re.IGNORECASE,
)
_FILE_COMMANDS = re.compile(
    r"\\(?:!|(?:i|ir|include|include_relative|copy|cd|o|out|w|write|gexec|setenv|lo_import|lo_export|s|password)\b"
    r"|(?:g|gx)(?![a-z_])[ \t]*(?:\([^)]*\)[ \t]*)?[^\s(])"
)
"""psql commands that access other files, run programs, or execute the result of a query."""
_CONNECT = re.compile(r"\\c(?:onnect)?(?![a-z_])[ \t]*(.*)")
_FILLS = re.compile(
    r"(?:CREATE\s+(?:UNLOGGED\s+|FOREIGN\s+)?(?:TABLE|SEQUENCE|VIEW|FUNCTION|TYPE|SCHEMA)|COPY|INSERT)\b", re.IGNORECASE
)
_COPY = re.compile(rf"COPY\s+({NAME})", re.IGNORECASE)
"""Pattern of the start of a COPY statement. The pattern ends after the table name, because the list of columns may be
longer than the examined part of a statement."""
_DUMPED_FROM = re.compile(r"^-- Dumped from database version:? (\d+)(\.\d+)?", re.MULTILINE)
_COMMENTS = re.compile(r"(?:\s++|--[^\n]*+|/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+\*/)*+")
_MERGED = ("INSERT", "SELECT", "GRANT", "REVOKE", "COMMENT")
SESSION_GUARD = ("\\restrict", "\\unrestrict")
"""psql commands that disable other psql commands (written by pg_dump since August 2025). Older versions of psql do not
support them."""


@dataclass(slots=True)
class PostgresSqlText:
    """Contents of an SQL file."""

    written_by: str = ""
    """Program that wrote the file: `pg_dump` or `pg_dumpall`. The value is "" for a file of any other origin."""
    version: str = ""
    extensions: list[str] = field(default_factory=list)
    schemas: list[str] = field(default_factory=list)
    entries: Counter[str] = field(default_factory=Counter)
    """Number of entries of each type, for example 12 for `TABLE`. The types are those in a dump's table of contents."""
    rows: dict[str, int] = field(default_factory=dict)
    """For each table name as in COPY, the number of rows."""
    made: set[str] = field(default_factory=set)
    """Names of the objects that the file creates, without schemas."""
    changes_echo: bool = False
    """Whether the script sets ECHO. This setting determines whether psql repeats failed statements."""
    database: str | None = None
    """The database into which the file loads its contents, or None if the file does not connect to a database."""


def examined(path: Path, subject: str) -> PostgresSqlText:
    """Examines an SQL file. Raises InputError if the file is not text, is incomplete, or affects other databases or
    files."""
    head = text_files.head_of(path)
    text_files.refuse_unreadable(head, subject, "SQL")
    found = PostgresSqlText()
    known = next((line for line in _HEADS if re.search(rb"^" + line + rb"\s*$", head, re.MULTILINE)), None)
    found.written_by = _HEADS[known] if known else ""
    if version := _DUMPED_FROM.search(text_files.head_of(path, 1 << 16).decode(errors="replace")):
        found.version = version[1] + (version[2] or "")
    filled: Counter[str] = Counter()
    per_database: dict[str, PostgresSqlText] = {"": found}
    table, database = "", ""
    settings_hidden: set[str] = set()
    for piece in pieces(path, "postgres", _MERGED):
        here = per_database[database]
        if piece.kind == "sql":
            statement = piece.head()
            if piece.begins:
                here.entries.update(found.decode() for found in _ENTRY.findall(piece.text[: piece.begins]))
            if reach := _SERVER_WIDE.match(statement):
                # A file that pg_dump or pg_dumpall did not write may create databases, but only before its other
                # contents.
                if not found.written_by and (reach[1] is None or filled.total()):
                    _refuse(subject, piece, statement, reach[0])
                continue
            if _FILLS.match(statement):
                filled[database] += 1
                table = copied[1] if (copied := _COPY.match(statement)) else ""
            _note(here, statement)
        elif piece.kind == "merged":
            filled[database] += re.search(rb"^INSERT\b", piece.text, re.MULTILINE | re.IGNORECASE) is not None
        elif piece.kind == "rows":
            here.rows[table] = here.rows.get(table, 0) + piece.text.count(b"\n")
        elif piece.kind == "rows-end":
            here.rows.setdefault(table, 0)
        elif piece.kind == "client":
            command = piece.head().strip()
            if (connect := _CONNECT.match(command)) and (found.written_by or not filled.total()):
                database = connect[1].strip("; ")
                per_database.setdefault(database, PostgresSqlText())
            elif connect or _FILE_COMMANDS.match(command):
                _refuse(subject, piece, command, command)
            if option := re.match(r"\\set\s+(ECHO|VERBOSITY)\b", command):
                settings_hidden.add(option[1])
        else:
            what = "inside the rows of a COPY" if piece.kind == "open-rows" else "inside a literal or comment"
            raise InputError(subject, f"line {piece.line}: the file ends {what}", "recreate the incomplete file")
    if known and not ends_with_line(path, _END.format(known.decode()).encode()):
        cause = f"written by {found.written_by}, but its last line, {_END.format(known.decode())!r}, is missing"
        raise InputError(subject, cause, "recreate the incomplete dump")
    if settings_hidden == {"ECHO", "VERBOSITY"}:
        cause = "sets both ECHO and VERBOSITY of psql, so ironbench cannot detect errors"
        raise InputError(subject, cause, "remove these two lines")
    found.changes_echo = "ECHO" in settings_hidden
    return _of_one_database(found, per_database, filled, subject)


def _of_one_database(
    found: PostgresSqlText, per_database: dict[str, PostgresSqlText], filled: Counter[str], subject: str
) -> PostgresSqlText:
    if list(per_database) == [""]:
        return found
    names = [name for name in per_database if filled[name]]
    if len(names) > 1:
        cause = f"contains {len(names)} databases: {', '.join(name or 'the initial one' for name in names)}"
        raise InputError(subject, cause, "dump only the database to measure: pg_dump -Fc DATABASE")
    one = per_database[names[0]] if names else found
    one.written_by, one.version = found.written_by, one.version or found.version
    one.changes_echo = found.changes_echo
    one.database = names[0] if names else ""
    return one


def fed(path: Path, database: str | None) -> Iterator[bytes]:
    """Yields the text for psql. Statements for other databases or for the whole server are removed. Line numbers stay
    the same."""
    current = ""
    for piece in pieces(path, "postgres", _MERGED):
        statement = piece.head(200)
        if piece.kind == "client":
            if database is not None and (connect := _CONNECT.match(statement.strip())):
                current = connect[1].strip("; ")
            elif not statement.startswith(SESSION_GUARD):
                yield piece.text
                continue
            yield b"\n" * piece.text.count(b"\n")
            continue
        kept = database is None or current in (database, "")
        if kept and (piece.kind != "sql" or not _SERVER_WIDE.match(statement)):
            yield piece.text
        else:
            yield b"\n" * piece.text.count(b"\n")


def without_comments(statement: str) -> str:
    """Removes leading white space and comments. Nested comments are rare and are not removed."""
    found = _COMMENTS.match(statement)
    return statement[found.end() :] if found else statement


_EXTENSION = re.compile(r"CREATE\s+EXTENSION\s+(?:IF\s+NOT\s+EXISTS\s+)?\"?([\w-]+)", re.IGNORECASE)
_SCHEMA = re.compile(r"CREATE\s+SCHEMA\s+(?:IF\s+NOT\s+EXISTS\s+)?\"?([^\s\";]+)", re.IGNORECASE)
_CONSTRAINT = re.compile(r"ALTER\s+TABLE\s.*?\bADD\s+CONSTRAINT\s+\"?([^\s\"]+)", re.IGNORECASE | re.DOTALL)


def _note(found: PostgresSqlText, statement: str) -> None:
    if statement[:6].upper() == "CREATE":
        if name := made(statement):
            found.made.add(name)
        if match := _EXTENSION.match(statement):
            found.extensions.append(match[1])
        elif match := _SCHEMA.match(statement):
            found.schemas.append(match[1])
    elif match := _CONSTRAINT.match(statement):
        found.made.add(match[1])


def _refuse(subject: str, piece: Piece, statement: str, what: str) -> None:
    about_database = re.match(r"\\c|(create|drop|alter)\s+database", what, re.IGNORECASE)
    hint = (
        "remove the statement, or use an archive of pg_dump -Fc, in which ironbench does not check rows and functions"
    )
    hint = "create the dump with pg_dump, without --create" if about_database else hint
    line = redacted_sql(" ".join(statement.split())[:80])
    cause = f"line {piece.first_line}: {line!r} affects objects outside the trial's database"
    raise InputError(subject, cause, hint)
