"""Reads the general and the slow query log of MariaDB and MySQL for a capture."""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO

from ironbench.errors import FailureError
from ironbench.model.logged import LogDamage, LoggedStatement

_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16
_GENERAL = re.compile(
    r"(?:(\d{6} [ \d]\d:\d\d:\d\d)|(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)))?\t+ *(\d{1,18}) "
    r"(Connect|Init DB|Query|Execute|Prepare|Close stmt|Reset stmt|Long Data|Quit|Field List|Change user|Ping|"
    r"Statistics|Fetch|Refresh|Reset connection|Set option|Binlog Dump|Sleep|Shutdown|Processlist|Kill|Debug|Time|"
    r"Daemon|Delayed insert|Create DB|Drop DB|Register Slave|Table Dump|Connect Out|Error)\t?(.*)"
)
_BANNER = re.compile(r"\S+, Version: .* started with:$|Tcp port: |Time\s+Id Command\s+Argument$")
_TIME = re.compile(r"# Time: (?:(\d{6} [ \d]\d:\d\d:\d\d)|(\S+T\S+))")
_USER = re.compile(r"# User@Host: (\S*?)\[.*?(?:Id: *(\d{1,18}))?\s*$")
_THREAD = re.compile(r"# Thread_id: (\d{1,18})\s+Schema: (\S*)")
_QUERY_TIME = re.compile(r"# Query_time: (\d{1,9}(?:\.\d+)?)\b.*?Rows_sent: (\d{1,18})\b")
_AFFECTED = re.compile(r"Rows_affected: (\d{1,18})\b")
_STAMP = re.compile(r"SET (?:\w+=\d+,)*timestamp=(\d{1,10})(?:\.\d+)?;$")
_USE = re.compile(r"use (.+);$")
_NESTED = re.compile(r"\s*(?:prepare|execute)\b", re.IGNORECASE)
"""Pattern of SQL statements for which the server also writes an entry of the kind `Prepare` or `Execute`."""
_PLACEHOLDERS = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`[^`]*`|/\*.*?\*/|--\s[^\n]*|\#[^\n]*|(?P<parameter>\?)", re.DOTALL
)
_VALUE = r"('(?:[^'\\]|\\.|'')*'|NULL|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
"""Pattern of a value that the server writes in place of a placeholder."""
_ESCAPES = {b"0": b"\0", b"n": b"\n", b"r": b"\r", b"Z": b"\x1a"}
_MOST_PREPARED = 200
"""Maximum number of prepared statements of a session that are remembered."""
_BACK_US = 2_000_000
"""Maximum step back in time, in microseconds, that is not a change of the clock."""
_OF_TRIGGER = re.compile(r"(?:^|[^\w$@.`])`?(?:new|old)`?\s*\.", re.IGNORECASE)
"""Pattern of the names `NEW.` and `OLD.`. The general log also contains the statements of triggers."""
_ALIAS = re.compile(r"\b(?:as|from|join|update)\s+(?:[\w$`.]+\s+)?`?(?:new|old)\b|\bcreate\b", re.IGNORECASE)
"""Pattern of a statement of a client that defines `new` or `old`."""


class MysqlLogs:
    """Reads one kind of log. `format`: `general log` or `slow log`."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.damage = LogDamage()
        self._sessions: dict[int, _Session] = {}
        self._prepares = 0
        self._opened = 0
        """Number of sessions so far."""
        self._is_truncated = False
        """Whether the compressed data of the current file are truncated. The last entry is then incomplete."""

    def read(self, paths: Sequence[str]) -> Iterator[LoggedStatement]:
        entries = self._general if self.format == "general log" else self._slow
        for path in paths:
            yield from self._spread(entries(self._lines(Path(path))))

    def _lines(self, path: Path) -> Iterator[bytes]:
        """Yields the lines of a file. If its compressed data are truncated, yields the lines before that point. Raises
        FailureError."""
        self._is_truncated = False
        try:
            with _opened(path) as lines:
                yield from lines
        except EOFError:
            self._is_truncated = True
            self.damage.truncated_archives.append(path.name)
        except (OSError, zlib.error) as error:
            raise FailureError(str(path), f"cannot be read: {error}") from error

    def _general(self, lines: Iterator[bytes]) -> Iterator[LoggedStatement]:
        at_us, entry, known = 0, None, False
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r\n")
            if found := _GENERAL.fullmatch(line):
                if entry:
                    yield from self._entry(*entry)
                known = True
                at_us = self._time(found[1], found[2]) or at_us
                entry = (at_us, int(found[3]), found[4], found[5])
            elif _BANNER.match(line):
                if entry:
                    yield from self._entry(*entry)
                entry = None
            elif entry:
                entry = (*entry[:3], f"{entry[3]}\n{line}")
            elif line:
                self.damage.unreadable += 1
        if entry and known and not self._is_truncated:
            yield from self._entry(*entry)

    def _entry(self, at_us: int, id: int, command: str, argument: str) -> Iterator[LoggedStatement]:
        if command in ("Connect", "Change user"):
            if argument.startswith("Access denied"):
                self._sessions.pop(id, None)
                return
            who, _, rest = argument.partition(" ")
            database = found[1] if (found := re.search(r"(?:^|\s)on (\S+)?", f" {rest}")) and found[1] else ""
            self._sessions[id] = _Session(self._next(), who.partition("@")[0], "" if database == "using" else database)
        elif command == "Init DB":
            self._session(id).database = argument
        elif command == "Quit":
            self._sessions.pop(id, None)
        elif command in ("Query", "Execute", "Prepare") and argument:
            session = self._session(id)
            nests, session.nests = session.nests, command == "Query" and _NESTED.match(argument) is not None
            if nests and command != "Query":
                return
            if command == "Prepare":
                self._prepares += 1
                session.prepare(argument, str(self._prepares))
                return
            if command == "Execute" and (known := session.bound(argument)) is not None:
                text, name, values, types = known
                statement = LoggedStatement(session.number, at_us, text, session.user, session.database)
                yield statement._replace(prepared=name, values=values, types=types)
                return
            if _OF_TRIGGER.search(argument) and not _ALIAS.search(argument):
                self.damage.of_triggers += 1
                return
            yield LoggedStatement(session.number, at_us, argument, session.user, session.database)

    def _slow(self, lines: Iterator[bytes]) -> Iterator[LoggedStatement]:
        entry = _SlowEntry()
        for raw in lines:
            line = raw.decode(errors="replace").rstrip("\r\n")
            if line.startswith("# "):
                if entry.text:
                    yield from self._slow_entry(entry)
                    # MariaDB writes the time at most once a second, so the previous time may also apply to this
                    # statement.
                    entry = _SlowEntry(ended_us=entry.ended_us, exact=entry.exact)
                if found := _TIME.match(line):
                    entry.ended_us = self._time(found[1], found[2]) or entry.ended_us
                    entry.exact = found[2] is not None
                elif found := _USER.match(line):
                    entry.user, entry.id = found[1], int(found[2] or 0) or entry.id
                elif found := _THREAD.match(line):
                    entry.id, entry.database = int(found[1]), found[2]
                elif found := _QUERY_TIME.match(line):
                    entry.duration_us, entry.rows = round(float(found[1]) * 1e6), int(found[2])
                if found := _AFFECTED.search(line):
                    entry.rows += int(found[1])
            elif _BANNER.match(line):
                continue
            elif not entry.text and (found := _USE.fullmatch(line)):
                entry.database = found[1].strip("`")
            elif not entry.text and (found := _STAMP.fullmatch(line)):
                entry.stamp_us = int(found[1]) * 1_000_000
            elif entry.id or entry.user:
                entry.text = f"{entry.text}\n{line}" if entry.text else line
            elif line:
                self.damage.unreadable += 1
        if entry.text and not self._is_truncated:
            yield from self._slow_entry(entry)

    def _slow_entry(self, entry: _SlowEntry) -> Iterator[LoggedStatement]:
        at_us = entry.ended_us - entry.duration_us if entry.exact else entry.ended_us or entry.stamp_us
        self.damage.whole_seconds |= not entry.exact
        session = self._sessions.get(entry.id)
        if session is None or session.user != entry.user:
            session = self._sessions[entry.id] = _Session(self._next(), entry.user, entry.database)
        session.database = entry.database or session.database
        text = entry.text.removesuffix(";")
        yield LoggedStatement(
            session.number, at_us, text, session.user, session.database, entry.duration_us, entry.rows
        )

    def _spread(self, statements: Iterator[LoggedStatement]) -> Iterator[LoggedStatement]:
        """Spreads statements with the same time in whole seconds evenly over this second. Otherwise, a replay would
        start them all at once. The times in a slow log are those at which statements ended."""
        latest_us = 0

        def second(one: LoggedStatement) -> int:
            nonlocal latest_us
            # Connections write at the same time, so a time can be slightly earlier than the time before it.
            if not 0 < latest_us - one.at_us <= _BACK_US:
                latest_us = one.at_us
            return latest_us

        for at_us, group in itertools.groupby(statements, key=second):
            if not self.damage.whole_seconds:
                yield from group
                continue
            alike = list(group)
            for place, one in enumerate(alike):
                yield one._replace(at_us=at_us + 1_000_000 * place // len(alike) - (one.duration_us or 0))

    def _time(self, short: str | None, iso: str | None) -> int:
        """Returns a time in microseconds since 1970, or 0 if it is missing or damaged."""
        try:
            if iso:
                return round(datetime.fromisoformat(iso).timestamp() * 1e6)
            if not short:
                return 0
            self.damage.whole_seconds = True
            # The log does not contain the time zone of its times.
            moment = datetime.strptime(" ".join(short.split()), "%y%m%d %H:%M:%S").replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            self.damage.unreadable += 1
            return 0
        return int(moment.timestamp()) * 1_000_000

    def _session(self, id: int) -> _Session:
        if id not in self._sessions:
            self.damage.begun_before += 1
            self._sessions[id] = _Session(self._next(), "", "")
        return self._sessions[id]

    def _next(self) -> int:
        self._opened += 1
        return self._opened


@dataclass(slots=True)
class _Session:
    number: int
    user: str
    database: str
    nests: bool = False
    """Whether the next entry may belong to the SQL statement before it (`_NESTED`)."""
    prepared: dict[str, str] = field(default_factory=dict)
    """Names of the prepared statements, by their texts. The statement that was used last is the last one."""

    def prepare(self, text: str, name: str) -> None:
        self.prepared.pop(text, None)
        self.prepared[text] = name
        if len(self.prepared) > _MOST_PREPARED:
            del self.prepared[next(iter(self.prepared))]

    def bound(self, text: str) -> tuple[str, str, list[bytes | None], str] | None:
        """Returns the prepared statement that was executed: its text, its name, and the values and types of its
        parameters. The log contains the values in place of the placeholders. Returns None if the statement is not
        known, for example because it was prepared before the log began."""
        for prepared, name in reversed(self.prepared.items()):
            if found := _executed(prepared).fullmatch(text):
                del self.prepared[prepared]
                self.prepared[prepared] = name
                values = [_value(one) for one in found.groups()]
                return prepared, name, values, "".join(map(_type, found.groups()))
        return None


@dataclass(slots=True)
class _SlowEntry:
    id: int = 0
    user: str = ""
    database: str = ""
    ended_us: int = 0
    exact: bool = False
    """Whether `ended_us` is exact to the microsecond."""
    stamp_us: int = 0
    duration_us: int = 0
    rows: int = 0
    text: str = ""


def recognised(path: Path) -> str:
    """Returns the format of a log, which is recognised by its first lines. Returns "" if this module does not read the
    format."""
    head = b""
    try:
        with _opened(path) as lines:
            while len(head) < _HEAD and (line := lines.readline(_HEAD)):
                head += line
    except EOFError:  # the compressed data are truncated
        pass
    except (OSError, zlib.error):
        return ""
    every = head.decode(errors="replace").splitlines()
    if any(_GENERAL.fullmatch(line) for line in every):
        return "general log"
    return "slow log" if any(map(_USER.match, every)) and any(map(_QUERY_TIME.match, every)) else ""


@lru_cache(maxsize=1000)
def _executed(prepared: str) -> re.Pattern[str]:
    """Returns a pattern that matches executions of a prepared statement. Each group is the value of a parameter."""
    pattern, end = "", 0
    for found in _PLACEHOLDERS.finditer(prepared):
        if found["parameter"]:
            pattern += re.escape(prepared[end : found.start()]) + _VALUE
            end = found.end()
    return re.compile(pattern + re.escape(prepared[end:]), re.DOTALL)


def _value(literal: str) -> bytes | None:
    if literal == "NULL":
        return None
    if literal[0] != "'":
        return literal.encode()
    inside = literal[1:-1].encode()
    return re.sub(rb"\\(.)|''", lambda one: _ESCAPES.get(one[1], one[1]) if one[1] else b"'", inside, flags=re.DOTALL)


def _type(literal: str) -> str:
    if literal[0] == "'" or literal == "NULL":
        return "s"
    return "i" if literal.lstrip("-").isdecimal() else "d"


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as opened:
        is_packed = opened.read(2) == _GZIP
    return gzip.open(path) if is_packed else path.open("rb")  # type: ignore[return-value]
