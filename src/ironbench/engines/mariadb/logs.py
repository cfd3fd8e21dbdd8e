"""Reads the general and the slow query log of MariaDB and MySQL for a capture."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO

from ironbench.model.logged import LogDamage, LoggedStatement
from ironbench.model.redact import redacted_sql

_GZIP = b"\x1f\x8b"
_HEAD = 1 << 16
_GENERAL = re.compile(
    r"(?:(\d{6} [ \d]\d:\d\d:\d\d)|(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)))?\t+ *(\d+) "
    r"(Connect|Init DB|Query|Execute|Prepare|Close stmt|Reset stmt|Long Data|Quit|Field List|Change user|Ping|"
    r"Statistics|Fetch|Refresh|Reset connection|Set option|Binlog Dump|Sleep|Shutdown|Processlist|Kill|Debug|Time|"
    r"Daemon|Delayed insert|Create DB|Drop DB|Register Slave|Table Dump|Connect Out|Error)\t?(.*)"
)
_BANNER = re.compile(r"\S+, Version: .* started with:$|Tcp port: |Time\s+Id Command\s+Argument$")
_TIME = re.compile(r"# Time: (?:(\d{6} [ \d]\d:\d\d:\d\d)|(\S+T\S+))")
_USER = re.compile(r"# User@Host: (\S*?)\[.*?(?:Id: *(\d+))?\s*$")
_THREAD = re.compile(r"# Thread_id: (\d+)\s+Schema: (\S*)")
_QUERY_TIME = re.compile(r"# Query_time: ([\d.]+).*?Rows_sent: (\d+)")
_AFFECTED = re.compile(r"Rows_affected: (\d+)")
_STAMP = re.compile(r"SET timestamp=(\d+)(?:\.\d+)?;$")
_USE = re.compile(r"use (.+);$")
_TOKENS = re.compile(
    r"(?P<string>'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")|`(?P<name>(?:[^`]|``)*)`|(?P<comment>/\*.*?\*/|--\s[^\n]*|#[^\n]*)"
    r"|(?P<word>[A-Za-z_@$][\w@$]*)|(?P<number>0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<space>\s+)|(?P<other>.)",
    re.DOTALL,
)
_LISTS = re.compile(r"\(\?(?:, ?\?)*\)(?:, ?\(\?(?:, ?\?)*\))*")
_WRITES = frozenset(
    (
        "insert",
        "update",
        "delete",
        "replace",
        "truncate",
        "create",
        "alter",
        "drop",
        "load",
        "call",
        "rename",
        "optimize",
        "analyze",
        "grant",
        "revoke",
    )
)


class MysqlLogs:
    """Reads one kind of log. `format`: `general log` or `slow log`."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.damage = LogDamage()
        self._sessions: dict[int, _Session] = {}
        self._transactions = 0
        self._opened = 0
        """Number of sessions so far."""

    def read(self, paths: Sequence[str]) -> Iterator[LoggedStatement]:
        entries = self._general if self.format == "general log" else self._slow
        for path in paths:
            with _opened(Path(path)) as lines:
                yield from entries(lines)

    def _general(self, lines: IO[bytes]) -> Iterator[LoggedStatement]:
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
        if entry and known:
            yield from self._entry(*entry)

    def _entry(self, at_us: int, id: int, command: str, argument: str) -> Iterator[LoggedStatement]:
        if command in ("Connect", "Change user"):
            who, _, rest = argument.partition(" ")
            database = found[1] if (found := re.search(r"(?:^|\s)on (\S+)?", f" {rest}")) and found[1] else ""
            self._sessions[id] = _Session(self._next(), who.partition("@")[0], "" if database == "using" else database)
        elif command == "Init DB":
            self._session(id).database = argument
        elif command == "Quit":
            self._sessions.pop(id, None)
        elif command in ("Query", "Execute") and argument:
            yield self._statement(self._session(id), at_us, argument, None, None)

    def _slow(self, lines: IO[bytes]) -> Iterator[LoggedStatement]:
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
                    entry.ended_us, entry.exact = self._time(found[1], found[2]), found[2] is not None
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
        if entry.text:
            yield from self._slow_entry(entry)

    def _slow_entry(self, entry: _SlowEntry) -> Iterator[LoggedStatement]:
        began_us = entry.ended_us - entry.duration_us if entry.exact else entry.stamp_us or entry.ended_us
        self.damage.whole_seconds |= not entry.exact
        session = self._sessions.get(entry.id)
        if session is None or session.user != entry.user:
            session = self._sessions[entry.id] = _Session(self._next(), entry.user, entry.database)
        session.database = entry.database or session.database
        text = entry.text.removesuffix(";")
        yield self._statement(session, began_us, text, entry.duration_us, entry.rows)

    def _time(self, short: str | None, iso: str | None) -> int:
        if iso:
            return round(datetime.fromisoformat(iso).timestamp() * 1e6)
        if not short:
            return 0
        self.damage.whole_seconds = True
        # The log does not contain the time zone of its times.
        moment = datetime.strptime(" ".join(short.split()), "%y%m%d %H:%M:%S").replace(tzinfo=UTC)
        return int(moment.timestamp()) * 1_000_000

    def _session(self, id: int) -> _Session:
        if id not in self._sessions:
            self.damage.begun_before += 1
            self._sessions[id] = _Session(self._next(), "", "")
        return self._sessions[id]

    def _next(self) -> int:
        self._opened += 1
        return self._opened

    def _statement(
        self, session: _Session, at_us: int, text: str, duration_us: int | None, rows: int | None
    ) -> LoggedStatement:
        clean = redacted_sql(text)
        template, command = _template(clean)
        if not session.transaction:
            self._transactions += 1
            session.transaction = self._transactions
        number = session.transaction
        begins = command == "begin" or template.startswith("start transaction")
        ends = command in ("commit", "rollback") and not template.startswith("rollback to")
        if template.startswith(("set autocommit", "set @@autocommit", "set session autocommit")):
            session.manual = text.rstrip("; ").endswith(("0", "OFF", "off"))
        if begins:
            session.inside = True
        if ends:
            session.inside = False
        if not session.inside and not (session.manual and not ends):
            session.transaction = 0
        return LoggedStatement(
            session=session.number,
            transaction=number,
            at_us=at_us,
            text=clean,
            template=template,
            command=command,
            writes=command in _WRITES,
            duration_us=duration_us,
            rows=rows,
            user=session.user,
            database=session.database,
            hides=clean != text,
        )


@dataclass(slots=True)
class _Session:
    number: int
    user: str
    database: str
    transaction: int = 0
    """Number of the open transaction, or 0 if no transaction is open."""
    inside: bool = False
    manual: bool = False
    """Whether autocommit is off."""


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
    try:
        with _opened(path) as lines:
            head = lines.read(_HEAD).decode(errors="replace")
    except (OSError, EOFError):
        return ""
    every = head.splitlines()
    if any(_GENERAL.fullmatch(line) for line in every):
        return "general log"
    return "slow log" if any(map(_USER.match, every)) and any(map(_QUERY_TIME.match, every)) else ""


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as opened:
        is_packed = opened.read(2) == _GZIP
    return gzip.open(path) if is_packed else path.open("rb")  # type: ignore[return-value]


@lru_cache(maxsize=4096)
def _template(text: str) -> tuple[str, str]:
    """Returns a statement in lower case, without literals, comments and repeated spaces. Also returns the statement's
    first keyword."""
    parts: list[str] = []
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind in ("space", "comment"):
            if parts and parts[-1] != " ":
                parts.append(" ")
        elif kind in ("string", "number"):
            parts.append("?")
        else:
            parts.append((token["name"] if kind == "name" else token[0]).lower())
    whole = "".join(parts).strip(" ;")
    whole = re.sub(r"\s*([(),=])\s*", r"\1", whole).replace(",", ", ").replace("=", " = ")
    whole = _LISTS.sub(lambda found: "(?)" if found[0].startswith("(?, ") or "), (" in found[0] else found[0], whole)
    command = re.match(r"\W*(\w*)", whole)
    return whole, command[1] if command else ""
