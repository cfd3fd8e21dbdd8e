"""Parses SQL files for MariaDB. Finds out which server wrote a file, which database it uses, and which statements must
not run.

Dumps of one database often contain its name (CREATE DATABASE, USE, `shop`.`item`). Such statements and prefixes are
removed, so that everything is created in the database of the trials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ironbench.catalogue import text_files
from ironbench.engines.sql_files import Piece, ends_with_line, pieces
from ironbench.errors import InputError, shortened
from ironbench.model.redact import redacted_sql

_DUMP = re.compile(r"^-- (MariaDB|MySQL) dump ", re.MULTILINE)
_SERVER = re.compile(r"^-- Server version\s+(\S+)", re.MULTILINE)
_END = b"-- Dump completed"
_RUN_COMMENT = re.compile(r"/\*M?!\d*\s*|\*/")
"""Delimiters of comments whose contents the server executes."""
_NAME = r"(?:`(?:[^`]++|``)++`|[\w$]++)"
_DATABASE = re.compile(
    rf"(CREATE|DROP|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?({_NAME})\s*(.*)",
    re.IGNORECASE | re.DOTALL,
)
_USE = re.compile(rf"USE\s+({_NAME}|\"[^\"]+\")\s*$", re.IGNORECASE)
_REPLICATION = (
    r"CHANGE\s+(?:MASTER|REPLICATION\s+SOURCE)|(?:START|STOP|RESET)\s+(?:ALL\s+)?(?:SLAVES?|REPLICAS?|MASTER)"
)
_OUTSIDE = re.compile(
    r"(?:(?:CREATE|DROP|ALTER|RENAME)\s+(?:OR\s+REPLACE\s+)?(?:DATABASE|SCHEMA|USER|ROLE)\b|USE\b|SOURCE\b|SYSTEM\b|TEE\b|CONNECT\b"
    rf"|(?:{_REPLICATION})\b"
    r"|PAGER\b|GRANT\b|REVOKE\b|SET\s+GLOBAL\b|SET\s+@@GLOBAL\.|SET\s+PASSWORD\b|LOAD\s+DATA\b(?!\s+LOCAL\b))",
    re.IGNORECASE,
)
_LEFT_OUT = {
    "grant": re.compile(
        r"(?:GRANT|REVOKE|FLUSH\s+PRIVILEGES|SET\s+PASSWORD|(?:CREATE|ALTER|DROP)\s+(?:USER|ROLE))\b", re.IGNORECASE
    ),
    "replication": re.compile(rf"(?:{_REPLICATION}|SET\s+GLOBAL\s+GTID_\w+)\b", re.IGNORECASE),
    "GTID": re.compile(r"SET\s+@@(?:GLOBAL\.GTID_PURGED|SESSION\.SQL_LOG_BIN)\b", re.IGNORECASE),
}
"""For each kind of statement that affects the whole server, a pattern. When a dump is restored, these statements are
skipped."""
_CHANGES = re.compile(
    rf"""\b(?:
        (?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+){{0,3}}(?:INTO\s+)?
      | (?<!KEY\ )UPDATE\s+(?:(?:LOW_PRIORITY|IGNORE)\s+){{0,2}}
      | (?<!KEY\ )UPDATE\s(?!ON\b)(?:(?!\b(?:SET|UPDATE)\b)[^;()]){{0,400}}?(?:,|\bJOIN\b)\s*
      | DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+){{0,3}}(?:FROM\s+)?
      | DELETE\s(?!ON\b)(?:(?!\b(?:WHERE|USING|ORDER|RETURNING|DELETE)\b)[^;()]){{0,400}}?,\s*
      | TRUNCATE\s+(?:TABLE\s+)?
      | RENAME\s+TABLES?\s+(?:IF\s+EXISTS\s+)?
      | (?:CREATE|ALTER|DROP)\s(?:(?!\b(?:CREATE|ALTER|DROP)\s)[^;(]){{0,400}}?
        \b(?:TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE)\s+
        (?:IF\s+(?:NOT\s+)?EXISTS\s+)?
      | (?:CREATE|DROP)\s(?:(?!\b(?:CREATE|DROP)\s)[^;(]){{0,400}}?
        \bINDEX\s(?:(?!\bINDEX\s)[^;(]){{0,400}}?\bON\s+
      | CALL\s+
      | REFERENCES\s+
    ){_NAME}\s*\.\s*{_NAME}""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern of a statement that changes or references an object with a qualified name. Such a statement affects the
database in the name, even if another database is the current one. A match never extends past the next keyword of this
kind. Otherwise, a text with many such keywords would be scanned again from each of them."""
_LITERALS = r"""'(?:[^'\\]++|\\.?)*+(?:'|\Z)|"(?:[^"\\]++|\\.?)*+(?:"|\Z)"""
"""Pattern of literals. A literal without a closing quote is also matched. Otherwise, the search would start again at
every quote inside it."""
_COMMENTS = r"--(?=\s)[^\n]*+|\#[^\n]*+|/\*(?!M?!)(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
_NAMES = r"`[^`]*+(?:`|\Z)"
_NO_WORDS = re.compile(rf"{_LITERALS}|{_NAMES}|{_COMMENTS}|/\*M?!\d*|\*/", re.DOTALL)
"""Pattern of text without keywords: literals, names in backticks, and comments. The server executes some comments, so
only the delimiters of these comments are matched, not their contents."""
_ROWS = re.compile(r"(?:INSERT|REPLACE)\b", re.IGNORECASE)
_FILLS = re.compile(
    r"(?:CREATE|ALTER|DROP|RENAME)\s+(?!DATABASE|SCHEMA|USER|ROLE)|(?:INSERT|REPLACE|UPDATE|DELETE|TRUNCATE|CALL|LOAD)\b",
    re.IGNORECASE,
)
_SAVED = re.compile(rb"@OLD_(\w+)\s*:?=\s*@@", re.IGNORECASE)
_SET_BACK = re.compile(rb"=\s*(?:IFNULL\s*\(\s*)?@OLD_\w+", re.IGNORECASE)
_NEW_COLLATION = re.compile(r"\b\w+_0900_\w+", re.ASCII)
"""Collations of MySQL 8 (MySQL 8.0 reference manual, 12.10.1)."""
_TYPES = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:ALGORITHM\s*=\s*\w+\s+)?(?:DEFINER\s*=\s*\S+\s+)?(?:SQL\s+SECURITY\s+\w+\s+)?"
    r"(?:AGGREGATE\s+)?(TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|SEQUENCE)\s",
    re.IGNORECASE,
)


@dataclass(slots=True)
class MysqlSqlText:
    """Contents of an SQL file."""

    origin: str = ""
    """Server that wrote the file, such as `MySQL 8.0.39`. The text is "" if the server is unknown."""
    database: str = ""
    """The database that the file names and fills. The name is "" if the file names no database."""
    has_end_mark: bool = False
    """Whether the end of the file shows that the file is complete. The end is recognised by the last line, or by
    statements that restore the settings saved at the start."""
    collations: set[str] = field(default_factory=set)
    """Collations in the file that exist only in MySQL 8 and in newer versions of MariaDB."""


class SqlStatement(NamedTuple):
    line: int
    """Line number of the statement's first word."""
    text: bytes
    left_out: str = ""
    """Reason why the statement is not sent, such as `grant`. The text is "" if the statement is sent."""
    words: str = ""
    """Start of the statement, without comments."""


def examined(path: Path, subject: str, *, own: bool, database: str = "") -> MysqlSqlText:
    """Examines an SQL file. Raises InputError if the file is not text, is incomplete, or affects other databases.

    `own`: whether the user wrote the file. Otherwise, it is a dump. A file that the user wrote may name only `database`
    and databases that it creates.
    """
    head = text_files.head_of(path)
    text_files.refuse_unreadable(head, subject, "SQL")
    found = MysqlSqlText(_origin(head.decode(errors="replace")))
    filled: set[str] = set()
    created: set[str] = set()
    named: dict[str, tuple[int, str]] = {}
    current = ""
    saved = restored = False
    refused: InputError | None = None
    for piece in pieces(path, "mariadb"):
        if piece.kind == "open-text":
            cause = f"line {piece.line}: the file ends inside a literal or comment"
            raise InputError(subject, cause, "recreate the incomplete file")
        words = head_of(piece)
        name, verb = _verb_and_database(words)
        if name:
            named.setdefault(name, (piece.first_line, words))
            current = name if verb == "USE" else current
            if verb == "CREATE":
                created.add(name)
        elif _FILLS.match(words):
            filled.add(current)
            if not _ROWS.match(words):
                found.collations.update(_NEW_COLLATION.findall(piece.text.decode(errors="replace")))
        elif b"@OLD_" in piece.text.upper():
            saved |= _SAVED.search(piece.text) is not None
            restored |= _SET_BACK.search(piece.text) is not None
        if not named and refused is None:
            try:
                _statement(piece, subject, own=own)
            except InputError as error:
                refused = error  # raised after the loop, unless the file names a database
    is_dump = _DUMP.search(head.decode(errors="replace")) is not None
    if is_dump and not ends_with_line(path, _END):
        cause = f"starts like a dump, but its last line, {_END.decode()!r}, is missing"
        raise InputError(subject, cause, "recreate the incomplete dump")
    if saved and not restored:
        cause = "saves session settings (@OLD_…) at its start but does not restore them at its end"
        raise InputError(subject, cause, "repeat the export: the file is incomplete")
    found.has_end_mark = is_dump or saved
    found.database = _the_database(named, filled, created, subject, own, database)
    if not named and refused is not None:
        raise refused
    for _ in statements(path, subject, found, own=own) if named else ():
        pass
    return found


def _the_database(
    named: dict[str, tuple[int, str]], filled: set[str], created: set[str], subject: str, own: bool, dumped: str
) -> str:
    """Returns the name of the only database that a file creates or uses. Returns "" if the file names none. Raises
    InputError if the file names several databases. Also raises InputError if some of its statements would affect
    another database than that of the trials."""
    if not named:
        return ""
    name, (line, words) = next(iter(named.items()))
    if len(named) > 1:
        cause = f"contains {len(named)} databases ({', '.join(named)}), but a trial has only one"
        raise InputError(subject, cause, "dump only the database to measure: mariadb-dump DATABASE")
    # Statements before USE affect the database of the trials. Statements after USE affect the database that it names.
    if (filled - {name} and name in filled) or (own and name not in created and name != dumped):
        _refuse(subject, f"line {line}", words, _HINT)
    if name not in filled and name not in created and filled:
        _refuse(subject, f"line {line}", words, _HINT)
    return name


_HINT = "create the dump without --databases, or remove the statement"


def statements(path: Path, subject: str, known: MysqlSqlText, *, own: bool) -> Iterator[SqlStatement]:
    """Yields the statements to send. Raises InputError if a statement affects other databases."""
    prefix = _prefix(known.database) if known.database else None
    for piece in pieces(path, "mariadb"):
        if (statement := _statement(piece, subject, known.database, prefix, own=own)) is not None:
            yield statement


def _statement(
    piece: Piece, subject: str, database: str = "", prefix: re.Pattern[bytes] | None = None, *, own: bool
) -> SqlStatement | None:
    """Converts a part of a file to a statement. The name of the file's `database` is removed from it. Returns None for
    a comment. Raises InputError."""
    if piece.begins == len(piece.text):
        return None
    words = head_of(piece)
    name, verb = _verb_and_database(words)
    if name and name == database:
        settings = _database_settings(words) if verb in ("CREATE", "ALTER") else ""
        return SqlStatement(piece.first_line, settings.encode(), "" if settings else "database", words)
    if not own and (kind := next((kind for kind, one in _LEFT_OUT.items() if one.match(words)), "")):
        return SqlStatement(piece.first_line, b"", kind, words)
    text = piece.text[piece.begins :]
    if prefix is not None and database.encode() in text:
        text = prefix.sub(lambda one: b"" if one[1] else one[0], text)
    refuse_within(subject, f"line {piece.first_line}", text.decode(errors="replace"))
    return SqlStatement(piece.first_line, text, "", words)


def head_of(piece: Piece) -> str:
    """Returns the start of the statement, without the delimiters of executed comments."""
    return " ".join(_RUN_COMMENT.sub(" ", piece.head(600)).split())


def refuse_within(subject: str, at: str, sql: str) -> None:
    """Raises InputError for a statement that changes another database. The statement may do so at once, or when an
    object that it creates is used. `at`: the statement's position in the file."""
    if _ROWS.match(sql):
        words = sql[:1000]  # only rows follow
        if named := _CHANGES.match(words):
            _refuse(subject, at, named[0], _UNQUALIFIED)
        return
    words = " ".join(_NO_WORDS.sub(_replaced, sql).split())
    if _OUTSIDE.match(words):
        _refuse(subject, at, words, _HINT)
    if named := _CHANGES.search(words):
        _refuse(subject, at, named[0], _UNQUALIFIED)


def _replaced(found: re.Match[str]) -> str:
    match found[0][0]:
        case "'" | '"':
            return "''"
        case "`":
            return found[0]
        case _:
            return " "


_UNQUALIFIED = "remove the database name in front of tables and other objects"


def _refuse(subject: str, at: str, words: str, hint: str) -> None:
    line = shortened(redacted_sql(" ".join(words[:400].split())), 80)
    raise InputError(subject, f"{at}: {line!r} affects objects outside the trial's database", hint)


def _origin(head: str) -> str:
    server, by = _SERVER.search(head), _DUMP.search(head)
    if server is None:
        return ""
    maker = "MariaDB" if "MariaDB" in server[1] or (by is not None and by[1] == "MariaDB") else "MySQL"
    return f"{maker} {server[1].partition('-')[0]}"


def _verb_and_database(words: str) -> tuple[str, str]:
    """Returns the database that a statement creates, drops, alters or uses. Also returns the verb. Returns two empty
    strings for other statements."""
    if found := _USE.match(words):
        return _plain(found[1]), "USE"
    if found := _DATABASE.match(words):
        return _plain(found[2]), found[1].upper()
    return "", ""


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[0] in '`"' else name


def _database_settings(words: str) -> str:
    """Returns an ALTER DATABASE statement with the character set and the collation that `words` sets. The statement
    changes the database of the trials. Returns "" if `words` sets neither."""
    found = _DATABASE.match(words)
    kept = re.findall(
        r"(?:DEFAULT\s+)?(?:CHARACTER\s+SET|CHARSET|COLLATE)\s*=?\s*['\"]?\w+['\"]?",
        found[3] if found else "",
        re.IGNORECASE,
    )
    return f"ALTER DATABASE {' '.join(kept)}" if kept else ""


def _prefix(database: str) -> re.Pattern[bytes]:
    """Returns a pattern that finds the database's name in front of another name (group 1). The pattern also matches
    literals, comments and other names, which must be kept unchanged."""
    name = re.escape(database.encode())
    quoted = re.escape(database.replace("`", "``").encode())
    kept = (_LITERALS.encode(), _COMMENTS.encode(), quoted, name, _NAMES.encode())
    return re.compile(rb"%b|%b|((?:`%b`|(?<![\w$.`@])%b)\s*+\.\s*+(?=[`\w$]))|%b" % kept, re.DOTALL)
