"""Runs psql and pg_restore on a session's database. Parses their output, and decides which errors end loading.

The programs run with LC_ALL=C, so that their own messages are in English. The server's messages may be in any language.
psql therefore adds the SQLSTATE (VERBOSITY) and repeats each failed statement (ECHO).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ironbench import units
from ironbench.engines.data_import import Show
from ironbench.engines.postgres import dsn as addresses
from ironbench.engines.postgres import psql_text
from ironbench.engines.postgres.cluster import environment
from ironbench.engines.postgres.dumps import tools
from ironbench.engines.postgres.harmless import harmless
from ironbench.engines.postgres.psql_text import PostgresSqlText
from ironbench.errors import FailureError, written
from ironbench.host import programs
from ironbench.model.redact import redacted_sql
from ironbench.model.session import Session

_FROM_FILE = re.compile(r"psql:<stdin>:(\d{1,18}): (.*)", re.DOTALL)
_CLIENT = re.compile(r"(?:error|fatal): (.*)")
_SERVER = re.compile(r"[^\s:][^:]{0,40}:  (?:([0-9A-Z]{5}): )?(.*)")
"""Pattern of a message from the server. The message consists of the severity, the SQLSTATE and the text (libpq:
PQsetErrorVerbosity). The server translates the severity."""
_AFTERWARDS = re.compile(r"\S[^:]{0,40}:  (\w{5})")
_STATEMENT = "STATEMENT:  "
_NOTICES = ("00", "01", "02")
"""SQLSTATE classes that are not errors: successful completion, warning, no data (PostgreSQL 18 documentation, appendix
A)."""
_OPEN_TRANSACTION = ("25001", "25P02")
"""SQLSTATEs of BEGIN inside an active or a failed transaction."""
_STATEMENT_CHARACTERS = 20_000
_ACTIONS = ("\\set AUTOCOMMIT on", "\\set VERBOSITY sqlstate", "set client_min_messages = warning", "begin")
"""Commands that run after a file. BEGIN warns if a transaction is still open."""
_SYNTAX, _DENIED = "42601", "42501"
OWNERS = (
    f"the tables of a template keep their owner: connect as that role in {written('system.dsn')}, or use a dump "
    f"({written('data.dump')}), whose tables belong to the connecting role"
)
_USUAL = "correct the file or the server"


@dataclass(slots=True)
class _Error:
    code: str
    """SQLSTATE of the message, or "" if the message has none. A message without an SQLSTATE may be a notice."""
    cause: str
    line: int = 0
    statement: str | None = None


@dataclass(slots=True)
class _Client(ABC):
    """A program that loads a file, and its output so far."""

    subject: str
    session: Session
    show: Show
    left_out: Counter[str] = field(default_factory=Counter)
    """For each kind of harmless error, the number of errors."""
    _error: _Error | None = None
    """The last error. The failed statement follows the error in the output, and the error is judged when the statement
    has arrived."""

    @abstractmethod
    def _heard(self, line: str) -> None:
        """Parses a line of standard error. Raises FailureError for an error that is not harmless."""

    @abstractmethod
    def _progress(self, size: int) -> tuple[float, str]: ...

    def _judge(self) -> None:
        raise NotImplementedError

    def run(self, words: Sequence[str], text: Iterator[bytes] | None = None) -> None:
        """Runs the program. Raises FailureError with the program's message."""
        connection = self.session.target()["connection"]
        status = programs.streamed(words, _environment(connection), self._heard, self._look, given=text)
        self._judge()
        self._ended(Path(words[0]).name, status)

    def _ended(self, program: str, status: int) -> None:
        if status:
            raise FailureError(self.subject, f"{program} exited with status {status}", "read the server's log")

    def _look(self) -> None:
        self._judge()
        size = int(self.session.query("select pg_database_size(current_database())")[0][0] or 0)
        self.show(*self._progress(size))


@dataclass(slots=True)
class Psql(_Client):
    """Runs an SQL file with psql. If the user wrote the file (`own`), a DROP may fail only for an object that the file
    creates."""

    file: Path = Path()
    text: PostgresSqlText = field(default_factory=PostgresSqlText)
    own: bool = False
    _fed: int = 0
    _open: bool = False

    def load(self) -> None:
        """Runs the file. Raises FailureError for an error that is not harmless, and for a transaction that the file
        leaves open."""
        connection = self.session.target()["connection"]
        words = [tools(connection["sslmode"]).program("psql"), "--no-psqlrc", "--quiet", "--echo-errors"]
        words += ["--set=VERBOSITY=verbose", f"--dbname={connection['database']}", "--file=-"]
        for action in _ACTIONS:
            words += ["--command", action]
        self.run(words, self._pieces())
        if self._open:
            cause = "the file ends with an open transaction, so its changes would be lost"
            raise FailureError(self.subject, cause, "complete the file, or add COMMIT")

    def _pieces(self) -> Iterator[bytes]:
        for piece in psql_text.fed(self.file, self.text.database):
            self._fed += len(piece)
            yield piece

    def _progress(self, size: int) -> tuple[float, str]:
        return 0.9 * self._fed / max(1, self.file.stat().st_size), units.stored(size)

    def _heard(self, line: str) -> None:
        found = _FROM_FILE.match(line)
        if found is None:
            if (after := _AFTERWARDS.fullmatch(line)) and after[1] in _OPEN_TRANSACTION:
                self._open = True
            elif self._error is not None and self._error.statement is not None:
                if len(self._error.statement) < _STATEMENT_CHARACTERS:
                    self._error.statement = f"{self._error.statement}\n{line}"[:_STATEMENT_CHARACTERS]
            elif line.startswith("psql: error: "):
                raise FailureError(self.subject, line.removeprefix("psql: error: "), "read the server's log")
            return
        if self._error is not None and found[2].startswith(_STATEMENT):
            self._error.statement = found[2].removeprefix(_STATEMENT)[:_STATEMENT_CHARACTERS]
            return
        self._judge()
        if by_client := _CLIENT.match(found[2]):
            raise FailureError(self.subject, f"line {found[1]}: psql: {by_client[1]}", _USUAL)
        if (by_server := _SERVER.match(found[2])) and (by_server[1] or "")[:2] not in _NOTICES:
            self._error = _Error(by_server[1] or "", by_server[2], int(found[1]))

    def _judge(self) -> None:
        error, self._error = self._error, None
        if error is None or (error.statement is None and not (self.text.changes_echo and error.code)):
            return  # psql repeats the statement only after an error, so the message is a notice or a warning
        statement = psql_text.without_comments(error.statement or "")
        if name := harmless(statement, error.code, self.text.made if self.own else None):
            self.left_out[name] += 1
            return
        what = f" (in: {redacted_sql(statement)[:200]})" if statement else ""
        raise FailureError(self.subject, f"line {error.line}: {error.cause}{what}", _hint(error.code))


@dataclass(slots=True)
class PgRestore(_Client):
    """Restores an archive with pg_restore."""

    items: int = 0
    _done: int = 0

    def _progress(self, size: int) -> tuple[float, str]:
        done = f", {self._done} of {self.items} items" if self.items else ""
        return min(0.9, self._done / self.items) if self.items else 0.0, f"{units.stored(size)}{done}"

    def _heard(self, line: str) -> None:
        if (command := line.partition("Command was: "))[1] and self._error is not None:
            self._error.statement = command[2]
            self._judge()
        elif line.startswith("pg_restore: error: "):
            self._judge()
            cause = re.sub(r"^(?:could not execute query: )?[^\s:]+: +", "", line.removeprefix("pg_restore: error: "))
            self._error = _Error("", cause)
        elif "finished item" in line or "processing data for table" in line:
            self._done += 1

    def _judge(self) -> None:
        error, self._error = self._error, None
        if error is None:
            return
        if name := harmless(error.statement or "", ""):
            self.left_out[name] += 1
            return
        what = f" (in: {redacted_sql(error.statement)[:200]})" if error.statement else ""
        raise FailureError(self.subject, f"{error.cause}{what}", _USUAL)

    def _look(self) -> None:
        """Shows the progress. Does not judge the last error, because its statement may not have arrived yet."""
        size = int(self.session.query("select pg_database_size(current_database())")[0][0] or 0)
        self.show(*self._progress(size))

    def _ended(self, program: str, status: int) -> None:
        if status not in (0, 1):  # pg_restore exits with 1 after errors, and all of them were judged harmless
            raise FailureError(self.subject, f"{program} exited with status {status}", "read the server's log")


def _hint(code: str) -> str:
    """Returns a hint for an error that occurred while a file was loaded."""
    if code == _DENIED:
        return OWNERS
    return f"check that the file is SQL for PostgreSQL; {_USUAL}" if code == _SYNTAX else _USUAL


def _environment(connection: dict[str, Any]) -> dict[str, str]:
    """Returns the environment of the programs. The environment includes the password, because other users could read a
    password on a command line."""
    given = {
        "PGHOST": connection["host"],
        "PGPORT": str(connection["port"]),
        "PGUSER": connection["user"],
        "PGPASSWORD": connection["password"] or "",
        "PGOPTIONS": dict(connection["options"]).get("options", ""),
        "PGAPPNAME": "ironbench load",
        "PGCLIENTENCODING": "UTF8",
    }
    given |= addresses.for_programs(connection)
    return environment() | {name: value for name, value in given.items() if value}
