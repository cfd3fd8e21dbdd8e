"""The user's own data in MariaDB: SQL as mariadb-dump writes it, sent statement by statement over our own wire."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ironbench.engines.data_import import DatabaseCopies, DataImport, Dump, Show
from ironbench.engines.dialect import listed
from ironbench.engines.mariadb.copies import DEFINER, HOLDING_ROWS, MariadbCopies, quoted
from ironbench.engines.mariadb.dialect import CHECKPOINT
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.errors import FailureError, InputError, shortened
from ironbench.model.redact import redacted_sql
from ironbench.model.secrets import Secrets
from ironbench.model.session import Session
from ironbench.model.system import System

if TYPE_CHECKING:
    from ironbench._core import MysqlConnection

_GROWTH = 1.5
_HEAD_BYTES = 4096
_SERVER = re.compile(r"^-- Server version\s+(\S+)", re.MULTILINE)
_DELIMITER = re.compile(r"\s*DELIMITER\s+(\S+)\s*$", re.IGNORECASE)
"""A command of the client's (mariadb manual, "Delimiters")."""
_CLOSES = {
    "'": re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL),
    '"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL),
    "`": re.compile(r"[^`]*`"),
    "/*": re.compile(r".*?\*/", re.DOTALL),
    "--": re.compile(r"[^\n]*\n?"),
    "#": re.compile(r"[^\n]*\n?"),
}
"""What opens → what is skipped behind it."""
_OUTSIDE = re.compile(
    r"(?:/\*!\d+\s*)?(?:USE\b|(?:CREATE|DROP|ALTER)\s+(?:/\*.*?\*/\s*)?(?:DATABASE|SCHEMA|USER)\b|SOURCE\b|GRANT\b|SET\s+GLOBAL\b)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:\s+|--(?=\s)[^\n]*|#[^\n]*|/\*(?!M?!).*?\*/)*", re.DOTALL)
"""Of a statement, what the server reads over."""
_MAKES = re.compile(r"\s*(?:/\*!\d+\s+)?CREATE\b", re.IGNORECASE)
_NAME = r"(?:`[^`]+`|[\w$]+)"
_CHANGES = re.compile(
    rf"""\b(?:
        (?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*(?:INTO\s+)?
      | (?<!KEY\ )UPDATE\s+(?:(?:LOW_PRIORITY|IGNORE)\s+)*
      | (?<!KEY\ )UPDATE\s(?!ON\b)(?:(?!\bSET\b)[^;()])*?(?:,|\bJOIN\b)\s*
      | DELETE\s+(?:(?:LOW_PRIORITY|QUICK|IGNORE)\s+)*(?:FROM\s+)?
      | DELETE\s(?!ON\b)(?:(?!\b(?:WHERE|USING|ORDER|RETURNING)\b)[^;()])*?,\s*
      | TRUNCATE\s+(?:TABLE\s+)?
      | RENAME\s+TABLES?\s+(?:IF\s+EXISTS\s+)?
      | (?:CREATE|ALTER|DROP)\s[^;(]*?\b(?:TABLE|VIEW|TRIGGER|PROCEDURE|FUNCTION|EVENT|SEQUENCE)\s+
        (?:IF\s+(?:NOT\s+)?EXISTS\s+)?
      | (?:CREATE|DROP)\s[^;(]*?\bINDEX\s[^;(]*?\bON\s+
      | CALL\s+
      | REFERENCES\s+
    ){_NAME}\s*\.\s*{_NAME}""",
    re.IGNORECASE | re.VERBOSE,
)
"""What changes, or holds on to, an object that is named with its database: the statement does so wherever it runs."""
_NO_WORDS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|--(?=\s)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/""", re.DOTALL
)
"""What is no part of a statement's words; the marks of comments that the server runs, but not what is in them."""
_ROWS = re.compile(r"(?:INSERT|REPLACE)\b", re.IGNORECASE)


def statements(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Number of the last line, and text, of each statement; quotes, comments and DELIMITER as the client reads them."""
    text, at, inside, delimiter, number = "", 0, "", ";", 0
    for number, line in enumerate(lines, 1):
        if not inside and not text.strip() and (match := _DELIMITER.match(line)):
            text, at, delimiter = "", 0, match[1]
            continue
        text += line
        opens = re.compile(rf"{re.escape(delimiter)}|['\"`#]|/\*|--(?=\s|$)")
        while True:
            match = _CLOSES[inside].match(text, at) if inside else opens.search(text, at)
            if match is None:
                break
            if not inside and match[0] == delimiter:
                if text[: match.start()].strip():
                    yield number, text[: match.start()]
                text, at = text[match.end() :], 0
            else:
                at, inside = match.end(), "" if inside else match[0]
    if text.strip():
        yield number, text


class MariadbDataImport(DataImport):
    dumps = "SQL as mariadb-dump or mysqldump writes it"
    setup = True
    databases = True

    def copies(self, system: System, secrets: Secrets) -> DatabaseCopies:
        return MariadbCopies(system, secrets)

    def examined(self, system: System, dump: Path) -> Dump:
        subject = f"dump {dump}"
        if dump.is_dir():
            raise InputError(subject, "is a directory", "name the file that mariadb-dump has written")
        with dump.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if b"\0" in head or head.startswith(b"\x1f\x8b") or not head.strip():
            raise InputError(subject, "is not SQL", "name what mariadb-dump has written, unpacked")
        with dump.open(
            errors="replace", newline="\n"
        ) as lines:  # a large one is read fast; statements when they are sent
            for number, line in enumerate(lines, 1):
                _refuse_outside(str(dump), f"line {number}", line, 0)
        server = _SERVER.search(head.decode(errors="replace"))
        kind = f"SQL dump of version {server[1]}" if server else "SQL dump"
        return Dump(kind, "ironbench", int(dump.stat().st_size * _GROWTH))

    def examined_setup(self, file: Path) -> None:
        with file.open(errors="replace", newline="\n") as lines:
            for number, sql in statements(lines):
                _refuse_within(str(file), f"line {number}", sql, _begins(sql))

    def examined_script(self, name: str, commands: Sequence[str]) -> None:
        for number, command in enumerate(commands, 1):
            for _, sql in statements([command]):  # several may be sent together
                _refuse_within(name, f"command {number}", sql, _begins(sql))

    def restored(self, session: Session, dump: Path, jobs: int, show: Show) -> None:
        _run(session, dump, show)

    def set_up(self, session: Session, file: Path, show: Show) -> None:
        _run(session, file, show)

    def settle(self, session: Session) -> None:
        tables = session.query(
            "select table_name from information_schema.tables where table_schema = database() "
            f"and table_type in ({listed(HOLDING_ROWS)})"
        )
        for (table,) in tables:
            session.query(f"analyze table {quoted(table or '')}")
        with suppress(FailureError):  # of a server of ours alone
            session.query(CHECKPOINT)


def _begins(sql: str) -> int:
    return found.end() if (found := _BEFORE.match(sql)) else 0


def _refuse_outside(subject: str, at: str, sql: str, begins: int) -> None:
    """InputError: a statement, or a line of a dump, is about another database than that of the trials. `at`: where it
    stands."""
    if _OUTSIDE.match(sql, begins):
        begun, hint = sql[begins:], "make the dump without --databases, or leave it out"
    elif named := _CHANGES.match(sql, begins):
        begun, hint = named[0], "name tables and the like without their database"
    else:
        return
    line = shortened(redacted_sql(" ".join(begun.split())), 80)
    cause = f"{at}, {line!r}, reaches beyond the database of the trials"
    raise InputError(subject, cause, hint)


def _refuse_within(subject: str, at: str, sql: str, begins: int) -> None:
    """InputError: what a whole statement does, or makes others do later, changes another database."""
    _refuse_outside(subject, at, sql, begins)
    if _ROWS.match(sql, begins):
        return  # much, and nothing but rows
    words = " ".join(_NO_WORDS.sub(lambda found: "''" if found[0][0] in "'\"" else " ", sql).split())
    if named := _CHANGES.search(words):
        _refuse_outside(subject, at, named[0], 0)


def _run(session: Session, file: Path, show: Show) -> None:
    """FailureError with line, statement and reason."""
    if not isinstance(session, MariadbSession):
        raise TypeError(session)
    connection = session.as_client()  # the file is the user's, and means what a client's connection takes it for
    try:
        _sent(connection, file, show)
    finally:
        connection.close()


def _sent(connection: MysqlConnection, file: Path, show: Show) -> None:
    whole, done = max(1, file.stat().st_size), 0
    # A newline ends a line, and nothing else: rows hold other separators of Unicode. Bytes that are no UTF-8 survive.
    with file.open(encoding="utf-8", errors="surrogateescape", newline="\n") as lines:
        for number, sql in statements(lines):
            _refuse_within(str(file), f"line {number}", sql, _begins(sql))
            try:
                connection.query(DEFINER.sub("", sql, count=1) if _MAKES.match(sql) else sql)
            except UnicodeEncodeError:
                cause = f"the statement that ends in line {number} holds bytes that are not UTF-8"
                hint = "dump with --hex-blob --default-character-set=utf8mb4"
                raise InputError(str(file), cause, hint) from None
            except FailureError as error:
                what = shortened(redacted_sql(" ".join(sql.split())), 120)
                where = f"line {number}: {error.cause} (in: {what})"
                raise FailureError(str(file), where, "nothing of it is measured; correct the file") from None
            done += len(sql)
            show(min(0.9, 0.9 * done / whole), f"line {number}")
