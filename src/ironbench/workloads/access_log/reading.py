"""Reads access logs of directories: which operations came on which connection, and when.

Two formats: what OpenLDAP writes at log level `stats` (slapd.conf(5), `loglevel`), by itself or through syslog; and the
access log of 389 Directory Server (Red Hat Directory Server 12, "Configuration and schema reference").
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
from ironbench.workloads.access_log import lines

_OK = {"search": {0}, "compare": {5, 6}}
"""Result codes (RFC 4511, 4.1.9) of what is replayed; of other operations 0."""
_SCOPES = ("base", "one", "sub", "children")
_SIMPLE = 128
"""`method` of a simple bind."""
_WAY_OUT = "name a log of OpenLDAP at level stats, or an access log of 389 Directory Server"
_MOST_OPERATIONS = 2_000_000
_DAY_S = 86_400
_YEAR_S = 365 * _DAY_S
UNREADABLE = "that cannot be read"
"""Kind of operations whose line is cut off or of an unknown form."""
_CONNECTION = re.compile(r"\bconn=(\d{1,18}) (?:op=(\d{1,18}) )?(.*)$")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"


@dataclass(slots=True)
class Logged:
    """One operation, as it was logged."""

    at_s: float
    """Since 1970, or since some beginning that all share."""
    connection: int
    verb: str
    dn: str
    attributes: tuple[str, ...] = ()
    scope: str = ""
    filter: str = ""
    new_rdn: str = ""
    """Empty where the log does not tell it."""
    parent: str = ""
    simple: bool = True
    """Of a bind."""
    code: int | None = None
    """How it ended; None: the log does not say."""

    @property
    def succeeded(self) -> bool:
        return self.code in _OK.get(self.verb, {0})


@dataclass(frozen=True, slots=True)
class Log:
    operations: tuple[Logged, ...]
    """In order of time."""
    connections: tuple[tuple[float, float], ...]
    """First and last instant of each that has operations, in order of their numbers; see `numbers`."""
    numbers: tuple[int, ...]
    others: Counter[str] = field(default_factory=Counter)
    """Operations of kinds that are not replayed, by kind."""
    stamp: tuple[int, int] = (0, 0)
    """Size and time of change of the file, which tell its contents apart."""

    @property
    def length_s(self) -> float:
        return self.operations[-1].at_s - self.operations[0].at_s


def read(path: str) -> Log:
    """InputError: it cannot be read, holds no operation, or too many, or a line of it has no time that is known."""
    try:
        known = Path(path).stat()
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _WAY_OUT) from None
    return _read(path, known.st_size, known.st_mtime_ns)


def digest(path: str) -> str:
    """Of its contents. InputError."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _WAY_OUT) from None


@lru_cache(maxsize=2)
def _read(path: str, size: int, changed_ns: int) -> Log:
    """Kept until the file changes: several steps of a plan ask for it."""
    try:
        with lines.opened(path) as found:
            year = datetime.fromtimestamp(changed_ns / 1e9, UTC).year
            return replace(_log(path, found, year), stamp=(size, changed_ns))
    except OSError as error:
        raise InputError(path, error.strerror or str(error), _WAY_OUT) from None


def _log(path: str, found_lines: Iterable[str], year: int) -> Log:
    """`year`: in which the log ends."""
    open_operations: dict[tuple[int, int], Logged] = {}
    found: list[Logged] = []
    others: Counter[str] = Counter()
    clock, numbers, whole_seconds = _Clock(year), _Numbers(), True
    for number, whole in enumerate(found_lines, 1):
        line = whole.rstrip("\r\n")
        match = _CONNECTION.search(line)
        if match is None:
            numbers.heard(line)
            continue  # messages of the server itself
        if not whole.endswith("\n"):
            break  # the server was writing it
        at_s = clock.read(line)
        if at_s is None:
            raise InputError(f"{path}, line {number}", f"has no time that is known: {line[:60].strip()!r}", _WAY_OUT)
        whole_seconds &= at_s.is_integer()
        if match[2] is None:
            continue
        key, text = (numbers.connection(int(match[1])), int(match[2])), match[3]
        one = _operation(key[0], at_s, text)
        if isinstance(one, Logged):
            if key in open_operations and open_operations[key].code is not None:
                one.connection = numbers.anew(int(match[1]))
                key = (one.connection, key[1])
            # A bind is logged twice: with its name as asked for, and as it is.
            if key not in open_operations:
                open_operations[key] = one
                found.append(one)
        elif one:
            others[one] += 1
        elif text.startswith(_BEGINNINGS):  # cut off by syslog, or of a form that is not known
            others[UNREADABLE] += 1
        elif key in open_operations:
            _more(open_operations[key], text)
        if len(found) > _MOST_OPERATIONS:
            cause = f"holds more than {grouped(_MOST_OPERATIONS)} operations"
            raise InputError(path, cause, "cut a part out of it, for example with head or sed")
    if not found:
        raise InputError(path, "holds no operation of a directory", _WAY_OUT)
    found.sort(key=lambda one: one.at_s)
    if whole_seconds:
        _spread(found)
    spans: dict[int, tuple[float, float]] = {}
    for one in found:
        spans[one.connection] = (spans.get(one.connection, (one.at_s,))[0], one.at_s)
    return Log(tuple(found), tuple(spans.values()), tuple(spans), others)


class _Numbers:
    """Which connection a number stands for: a server that begins again counts anew."""

    def __init__(self) -> None:
        self._meant: dict[int, int] = {}
        self._used: set[int] = set()
        self._others = count(-1, -1)

    def connection(self, number: int) -> int:
        """The number itself, at its first use."""
        if number not in self._meant:
            self._meant[number] = next(self._others) if number in self._used else number
            self._used.add(number)
        return self._meant[number]

    def anew(self, number: int) -> int:
        """An operation of this number has ended, and begins once more."""
        del self._meant[number]
        return self.connection(number)

    def heard(self, line: str) -> None:
        """A message of the server itself."""
        if line.endswith(" starting"):  # "<program> starting", OpenLDAP's servers/slapd/main.c
            self._meant.clear()


class _Clock:
    """The times of lines, in the forms in which they are written."""

    def __init__(self, year: int) -> None:
        self._year = year
        self._years_s = 0.0
        self._last_s = 0.0

    def read(self, line: str) -> float | None:
        """Seconds; None: there is no time that is known."""
        try:
            for form, seconds in _FORMS:
                if (match := form.match(line)) is not None:
                    return seconds(match)
            return self._with_year(match) if (match := _SYSLOG.match(line)) is not None else None
        except ValueError:
            return None

    def _with_year(self, match: re.Match[str]) -> float:
        """Syslog's old form has none: January comes after December. ValueError."""
        at_s = _of_syslog(self._year, *match.groups())
        if at_s + self._years_s < self._last_s - _YEAR_S / 2:
            self._years_s += _YEAR_S
        self._last_s = at_s + self._years_s
        return self._last_s


_SYSLOG = re.compile(r"(?:<\d+>)?([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d)(\.\d+)? ")
_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float]], ...] = (
    # OpenLDAP 2.5 and later by itself: seconds and nanoseconds, both in hexadecimal; before it seconds alone.
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
    """By its English name, whatever the locale here; 0: it is none."""
    place = _MONTHS.find(name)
    return place // 3 + 1 if place % 3 == 0 else 0


def _of_389(text: str, zone: str) -> float:
    day, month, rest = text.split("/", 2)
    return datetime.strptime(f"{day} {_month(month)} {rest} {zone}", "%d %m %Y:%H:%M:%S %z").timestamp()


def _of_syslog(year: int, month: str, day: str, hour: str, minute: str, second: str, fraction: str | None) -> float:
    """Of that year; 29 February, where it has none, is the day after the 28th. ValueError."""
    lacks = (month, day) == ("Feb", "29") and not isleap(year)
    whole = f"{year}-{_month(month):02}-{28 if lacks else int(day):02}T{hour}:{minute}:{second}+00:00"
    return datetime.fromisoformat(whole).timestamp() + lacks * _DAY_S + float(fraction or 0)


def _spread(found: list[Logged]) -> None:
    """Times in whole seconds: the operations of a second are spread evenly over it, in their order."""
    for _, group in groupby(found, key=lambda one: one.at_s):
        of_second = list(group)
        for place, one in enumerate(of_second):
            one.at_s += (place + 0.5) / len(of_second)


def _line(pattern: str) -> re.Pattern[str]:
    """`@` is a quoted text. It may contain quotes: those that no further field and no line end follows. Possessive
    quantifiers, so that each line is read once however many quotes it has."""
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


def _operation(connection: int, at_s: float, text: str) -> Logged | str:
    """An operation; the name of one of a kind that is not replayed; or empty: something else of an operation."""
    if match := _SEARCH.match(text):
        scope = _SCOPES[int(match[2])] if int(match[2]) < len(_SCOPES) else "sub"
        attributes = tuple((match[4] or "").split())
        return Logged(at_s, connection, "search", match[1], attributes, scope, match[3])
    if match := _BIND.match(text):
        return Logged(at_s, connection, "bind", match[1], simple=match[2] == str(_SIMPLE))
    if match := _COMPARE.match(text):
        return Logged(at_s, connection, "compare", match[1], (match[2],))
    if match := _RENAME.match(text):
        parent = "" if match[3] in (None, "(null)") else match[3]
        return Logged(at_s, connection, "rename", match[1], new_rdn=match[2] or "", parent=parent)
    if match := _CHANGE.match(text):
        return Logged(at_s, connection, _CHANGES[match[1]], match[2])
    match = _OTHERS.match(text)
    return match[1] if match else ""


def _more(one: Logged, text: str) -> None:
    """What a later line says of an operation."""
    if match := _RESULT.match(text):
        one.code = int(match[1])
    elif match := _ATTRIBUTES.match(text):
        one.attributes = tuple(match[1].split())


def at_once(log: Log) -> list[int]:
    """Of each connection in the log's order which client does its work: the first that is free."""
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


def by_client(log: Log) -> Iterator[tuple[int, Logged, bool]]:
    """Client, operation, and whether another connection of the log begins with it, in order of time."""
    clients = dict(zip(log.numbers, at_once(log), strict=True))
    last: dict[int, int] = {}
    for one in log.operations:
        client = clients[one.connection]
        yield client, one, last.setdefault(client, one.connection) != one.connection
        last[client] = one.connection
