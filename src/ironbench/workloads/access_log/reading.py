"""Parses access logs of directories. The result lists the operations with their connections and times.

Two formats are supported. The first is the log of OpenLDAP at log level `stats` (slapd.conf(5), `loglevel`), written
directly or through syslog. The second is the access log of 389 Directory Server (Red Hat Directory Server 12,
"Configuration and schema reference").
"""

from __future__ import annotations

import hashlib
import re
from calendar import isleap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count, groupby
from pathlib import Path

from ironbench.errors import InputError
from ironbench.words import grouped
from ironbench.workloads.access_log import log_lines

_OK = {"search": {0}, "compare": {5, 6}}
"""Result codes (RFC 4511, 4.1.9) with which an operation succeeded, so that it is replayed. Operations of other kinds
succeeded only if their code is 0."""
_SCOPES = ("base", "one", "sub", "children")
_SIMPLE = 128
"""Value of `method` in the log for a simple bind."""
_HINT = "give the path of a log of OpenLDAP (log level `stats`) or of an access log of 389 Directory Server"
_MOST_OPERATIONS = 2_000_000
_DAY_S = 86_400
_YEAR_S = 365 * _DAY_S
UNREADABLE = "operations that cannot be read"
"""Kind of an operation whose line is truncated or has an unknown form."""
_CONNECTION = re.compile(r"\bconn=(\d{1,18}) (?:op=(\d{1,18}) )?(.*)$")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


@dataclass(slots=True)
class LoggedOperation:
    """An operation in the log."""

    at_s: float
    """Time of the operation in seconds. The origin is 1970 or another time, the same for all operations."""
    connection: int
    verb: str
    dn: str
    attributes: tuple[str, ...] = ()
    scope: str = ""
    filter: str = ""
    new_rdn: str = ""
    """For a rename: new name of the entry. Empty if the log does not contain it."""
    parent: str = ""
    simple: bool = True
    """For a bind: whether it is a simple bind."""
    code: int | None = None
    """Result code of the operation; None if the log contains no result."""

    @property
    def succeeded(self) -> bool:
        return self.code in _OK.get(self.verb, {0})


@dataclass(frozen=True, slots=True)
class AccessLogContents:
    operations: tuple[LoggedOperation, ...]
    """The operations, ordered by time."""
    connections: tuple[tuple[float, float], ...]
    """Times of the first and the last operation of each connection, in the order of `numbers`."""
    numbers: tuple[int, ...]
    others: Counter[str] = field(default_factory=Counter)
    """Number of operations that are not replayed, for each kind of operation."""
    stamp: tuple[int, int] = (0, 0)
    """Size and modification time of the file. If both are unchanged, the contents count as unchanged."""

    @property
    def length_s(self) -> float:
        return self.operations[-1].at_s - self.operations[0].at_s


def read(path: str) -> AccessLogContents:
    """Parses the log. Raises InputError if the file cannot be read, if it has no operations or too many, or if the time
    in a line has an unknown format."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _HINT) from None
    return _read(path, known.st_size, known.st_mtime_ns)


def digest(path: str) -> str:
    """Returns a digest of the contents of the file. Raises InputError if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _HINT) from None


@lru_cache(maxsize=2)
def _read(path: str, size: int, changed_ns: int) -> AccessLogContents:
    """Parses a log. The result is cached until the file changes, because several steps of planning need it."""
    try:
        with log_lines.opened(path) as found:
            year = datetime.fromtimestamp(changed_ns / 1e9, UTC).year
            return replace(_log(path, found, year), stamp=(size, changed_ns))
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _HINT) from None


def _log(path: str, found_lines: Iterable[str], year: int) -> AccessLogContents:
    """Parses lines of a log. `year`: the year in which the log ends."""
    open_operations: dict[tuple[int, int], LoggedOperation] = {}
    found: list[LoggedOperation] = []
    others: Counter[str] = Counter()
    clock, numbers, whole_seconds = _Clock(year), _Numbers(), True
    for number, whole in enumerate(found_lines, 1):
        line = whole.rstrip("\r\n")
        match = _CONNECTION.search(line)
        if match is None:
            numbers.heard(line)
            continue  # a message of the server itself
        if not whole.endswith("\n"):
            break  # incomplete line that the server was still writing
        at_s = clock.read(line)
        if at_s is None:
            raise InputError(f"{path}, line {number}", f"has no known time format: {line[:60].strip()!r}", _HINT)
        whole_seconds &= at_s.is_integer()
        if match[2] is None:
            continue
        key, text = (numbers.connection(int(match[1])), int(match[2])), match[3]
        one = _operation(key[0], at_s, text)
        if isinstance(one, LoggedOperation):
            if key in open_operations and open_operations[key].code is not None:
                one.connection = numbers.anew(int(match[1]))
                key = (one.connection, key[1])
            # A bind is logged twice, first with the requested and then with the effective DN. The second line is
            # ignored.
            if key not in open_operations:
                open_operations[key] = one
                found.append(one)
        elif one:
            others[one] += 1
        elif text.startswith(_BEGINNINGS):  # truncated by syslog, or of an unknown form
            others[UNREADABLE] += 1
        elif key in open_operations:
            _more(open_operations[key], text)
        if len(found) > _MOST_OPERATIONS:
            cause = f"contains more than {grouped(_MOST_OPERATIONS)} operations"
            raise InputError(path, cause, "extract a part of it, for example with head or sed")
    if not found:
        raise InputError(path, "contains no LDAP operation", _HINT)
    found.sort(key=lambda one: one.at_s)
    if whole_seconds:
        _spread(found)
    spans: dict[int, tuple[float, float]] = {}
    for one in found:
        spans[one.connection] = (spans.get(one.connection, (one.at_s,))[0], one.at_s)
    return AccessLogContents(tuple(found), tuple(spans.values()), tuple(spans), others)


class _Numbers:
    """Assigns unique numbers to connections. The log's numbers are not unique, because a restarted server uses them
    again."""

    def __init__(self) -> None:
        self._meant: dict[int, int] = {}
        self._used: set[int] = set()
        self._others = count(-1, -1)

    def connection(self, number: int) -> int:
        """Returns the unique number of the connection with this number in the log. The first connection with a number
        keeps it. Later connections with the same number get negative numbers."""
        if number not in self._meant:
            self._meant[number] = next(self._others) if number in self._used else number
            self._used.add(number)
        return self._meant[number]

    def anew(self, number: int) -> int:
        """Starts a new connection with this number, and returns the connection's unique number. Called if an operation
        starts although an operation with the same connection and operation numbers has already ended."""
        del self._meant[number]
        return self.connection(number)

    def heard(self, line: str) -> None:
        """Forgets all numbers if the line is the start message of the server."""
        if line.endswith(" starting"):  # OpenLDAP prints "<program> starting" (servers/slapd/main.c)
            self._meant.clear()


class _Clock:
    """Parses the times of log lines in all supported forms."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._years_s = 0.0
        self._last_s = 0.0

    def read(self, line: str) -> float | None:
        """Returns the time of a line in seconds. Returns None if the line has no time in a known form."""
        try:
            for form, seconds in _FORMS:
                if (match := form.match(line)) is not None:
                    return seconds(match)
            return self._with_year(match) if (match := _SYSLOG.match(line)) is not None else None
        except ValueError:
            return None

    def _with_year(self, match: re.Match[str]) -> float:
        """Returns the time in seconds for a line in the old syslog format. The format lacks the year, so the year is
        increased when January follows December. Raises ValueError."""
        at_s = _of_syslog(self._year, *match.groups())
        if at_s + self._years_s < self._last_s - _YEAR_S / 2:
            self._years_s += _YEAR_S
        self._last_s = at_s + self._years_s
        return self._last_s


_SYSLOG = re.compile(r"(?:<\d+>)?([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(\.\d+)? ")
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
    # Without syslog, OpenLDAP writes the time in hexadecimal: seconds and nanoseconds since version 2.5, only seconds
    # before.
    (re.compile(r"([0-9a-f]{8})\.([0-9a-f]{8}) "), lambda m: int(m[1], 16) + int(m[2], 16) / 1e9),
    (re.compile(r"(\d{10}\.\d{6}) "), lambda m: float(m[1])),  # journalctl -o short-unix
    (re.compile(r"([0-9a-f]{8}) "), lambda m: float(int(m[1], 16))),
    (
        re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)(\.\d+)? ([+-]\d{4})\] "),
        lambda m: _of_389(m[1], m[3]) + float(m[2] or 0),
    ),
    (
        re.compile(r"(?:<\d+>\d* ?)?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d) "),
        lambda m: datetime.fromisoformat(m[1] + m[3].replace("Z", "+00:00")).timestamp() + float(m[2] or 0),
    ),
)


def _month(name: str) -> int:
    """Returns the number of the month with this English name, in any locale. Returns 0 if there is no such month."""
    place = _MONTHS.find(name)
    return place // 3 + 1 if place % 3 == 0 else 0


def _of_389(text: str, zone: str) -> float:
    day, month, rest = text.split("/", 2)
    return datetime.strptime(f"{day} {_month(month)} {rest} {zone}", "%d %m %Y:%H:%M:%S %z").timestamp()


def _of_syslog(year: int, month: str, day: str, hour: str, minute: str, second: str, fraction: str | None) -> float:
    """Converts a time of a given year to seconds. If 29 February does not exist in that year, it counts as the day
    after the 28th. Raises ValueError."""
    lacks = (month, day) == ("Feb", "29") and not isleap(year)
    whole = f"{year}-{_month(month):02}-{28 if lacks else int(day):02}T{hour}:{minute}:{second}+00:00"
    return datetime.fromisoformat(whole).timestamp() + lacks * _DAY_S + float(fraction or 0)


def _spread(found: list[LoggedOperation]) -> None:
    """Spreads the operations of each second evenly over that second, in their order. Called if all times in a log are
    whole seconds."""
    for _, group in groupby(found, key=lambda one: one.at_s):
        of_second = list(group)
        for place, one in enumerate(of_second):
            one.at_s += (place + 0.5) / len(of_second)


def _line(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern in which `@` matches a quoted text. A quote inside the text does not end it unless another
    field or the end of the line follows. The quantifiers are possessive, so that the time does not grow with the number
    of quotes in a line.
    """
    return re.compile(pattern.replace("@", r'"((?:[^"]++|"(?! [a-z]+=|$))*+)"'))


_SEARCH = _line(r"SRCH base=@ scope=(\d)(?: deref=\d)? filter=@(?: attrs=(?:ALL|@))?")
_BIND = _line(r"BIND dn=@ (?:method=(\w+)|mech=)")
_COMPARE = _line(r"CMP dn=@ attr=@")
_RENAME = _line(r"MODR?DN dn=@(?: newrdn=@)?(?: newsuperior=@)?")
_CHANGE = _line(r"(ADD|DEL|MOD) dn=@")
_CHANGES = {"ADD": "add", "DEL": "delete", "MOD": "modify"}
_RESULT = re.compile(r"(?:SEARCH )?RESULT .*?\berr=(\d{1,9})\b")
_ATTRIBUTES = re.compile(r"(?:SRCH|MOD) attr=(.*)$")
_OTHERS = re.compile(r"(EXT|ABANDON)\b")
_BEGINNINGS = ("SRCH base", "BIND dn", "CMP dn", "MODRDN dn", "MODDN dn", "MOD dn", "ADD dn", "DEL dn")


def _operation(connection: int, at_s: float, text: str) -> LoggedOperation | str:
    """Parses a line that starts an operation. Returns only the kind of the operation if operations of this kind are not
    replayed. Returns "" if the line does not start an operation."""
    if match := _SEARCH.match(text):
        scope = _SCOPES[int(match[2])] if int(match[2]) < len(_SCOPES) else "sub"
        attributes = tuple((match[4] or "").split())
        return LoggedOperation(at_s, connection, "search", match[1], attributes, scope, match[3])
    if match := _BIND.match(text):
        return LoggedOperation(at_s, connection, "bind", match[1], simple=match[2] == str(_SIMPLE))
    if match := _COMPARE.match(text):
        return LoggedOperation(at_s, connection, "compare", match[1], (match[2],))
    if match := _RENAME.match(text):
        parent = "" if match[3] in (None, "(null)") else match[3]
        return LoggedOperation(at_s, connection, "rename", match[1], new_rdn=match[2] or "", parent=parent)
    if match := _CHANGE.match(text):
        return LoggedOperation(at_s, connection, _CHANGES[match[1]], match[2])
    match = _OTHERS.match(text)
    return match[1] if match else ""


def _more(one: LoggedOperation, text: str) -> None:
    """Adds the information of a later line to an operation: its result or its attributes."""
    if match := _RESULT.match(text):
        one.code = int(match[1])
    elif match := _ATTRIBUTES.match(text):
        one.attributes = tuple(match[1].split())


def at_once(log: AccessLogContents) -> list[int]:
    """Returns the client of each connection. Connections are assigned in order of their start, each to the first client
    that is free at this time. The result is in the order of `log.connections`."""
    order = sorted(range(len(log.connections)), key=lambda number: log.connections[number])
    free_s: list[float] = []
    chosen = [0] * len(log.connections)
    for number in order:
        began_s, ended_s = log.connections[number]
        client = next((one for one, until_s in enumerate(free_s) if until_s < began_s), len(free_s))
        if client == len(free_s):
            free_s.append(ended_s)
        free_s[client] = ended_s
        chosen[number] = client
    return chosen


def by_client(log: AccessLogContents) -> Iterator[tuple[int, LoggedOperation, bool]]:
    """Yields each operation in the order of time: its client, the operation, and whether the client first opens a new
    connection."""
    clients = dict(zip(log.numbers, at_once(log), strict=True))
    last: dict[int, int] = {}
    for one in log.operations:
        client = clients[one.connection]
        yield client, one, last.setdefault(client, one.connection) != one.connection
        last[client] = one.connection
