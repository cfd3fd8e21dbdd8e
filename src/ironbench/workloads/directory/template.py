"""Entries from a template: a line for each attribute, with tags in angle brackets for what differs from entry to entry.

    uid: user.<number>                      givenName: <first>            cn: {givenName} {sn}
    initials: {givenName:1}{sn:1}           mobile: <random:telephone>    st: <list:North,South>
    description: <random:alpha:80>          room: <random:numeric:1:500>  <presence:30>title: <list:Dr,Prof>

Every value is a function of the entry's number alone, so that any piece can be made anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ironbench.errors import InputError

DEFAULT = """\
objectClass: top
objectClass: person
objectClass: organizationalPerson
objectClass: inetOrgPerson
uid: user.<number>
givenName: <first>
sn: <last>
cn: {givenName} {sn}
initials: {givenName:1}{sn:1}
employeeNumber: <number>
mail: user.<number>@example.com
userPassword: <password>
telephoneNumber: <random:telephone>
homePhone: <random:telephone>
pager: <random:telephone>
mobile: <random:telephone>
street: <random:numeric:1:9999> <list:Mill Lane,Station Road,High Street,Church Walk,Harbour View,Orchard Way>
l: <list:Ashford,Birkdale,Calder,Dunmore,Elmstead,Fairlight,Glenholm,Hartwell,Ivybrook,Kelmarsh>
st: <list:North,South,East,West>
postalCode: <random:digits:5>
postalAddress: {cn}${street}${l} {postalCode}
description: <random:alpha:80>
"""
PASSWORD = "password"
"""Of every entry that ironbench makes: nobody's."""
FIRST = (
    *("Ada", "Bela", "Carla", "Dora", "Edda", "Fred", "Greta", "Hugo", "Ines", "Jonas", "Karla", "Lars", "Mona"),
    *("Nils", "Olga", "Pavel", "Quentin", "Rosa", "Sven", "Thea", "Ulla", "Viktor", "Wanda", "Xenia", "Yves", "Zora"),
)
LAST = (
    *("Amsel", "Birke", "Conrad", "Dorn", "Eiche", "Falke", "Ginster", "Hasel", "Iltis", "Jaspis", "Kranich"),
    *("Linde", "Marder", "Nelke", "Otter", "Pirol", "Quitte", "Reiher", "Specht", "Tanne", "Ulme", "Veilchen"),
    *("Weide", "Xander", "Ysop", "Zeisig"),
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TOKEN = re.compile(r"<([a-z]+(?::[^<>]*)?)>|\{(\w+)(?::(\d+))?\}")
_MASK = (1 << 64) - 1
Values = dict[str, str]
Make = Callable[[int, "_Draw", Values], str]


class _Draw:
    """Random numbers of one entry (SplitMix64, Steele and others 2014)."""

    __slots__ = ("_state",)

    def __init__(self, number: int) -> None:
        self._state = number * 0xBF58476D1CE4E5B9 & _MASK

    def below(self, limit: int) -> int:
        self._state = state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        state = (state ^ state >> 27) * 0x94D049BB133111EB & _MASK
        return (state ^ state >> 31) % limit

    def letters(self, count: int) -> str:
        # Twelve at a time: 26^12 is below 2^57.
        found = []
        for _ in range(-(-count // 12)):
            drawn = self.below(26**12)
            for _ in range(12):
                drawn, one = divmod(drawn, 26)
                found.append(_LETTERS[one])
        return "".join(found[:count])


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    parts: tuple[str | Make, ...]
    percent: int = 100


@dataclass(frozen=True, slots=True)
class Template:
    lines: tuple[_Line, ...]

    def entry(self, number: int, parent: str) -> str:
        """The LDIF of an entry whose RDN is its `uid`."""
        draw, values, out = _Draw(number), Values(), []
        for line in self.lines:
            if line.percent < 100 and draw.below(100) >= line.percent:
                continue
            value = "".join([part if isinstance(part, str) else part(number, draw, values) for part in line.parts])
            values[line.name] = value
            out.append(f"{line.name}: {value}")
        return f"dn: uid={values['uid']},{parent}\n" + "\n".join(out) + "\n\n"


def read(text: str, subject: str) -> Template:
    """InputError with the line that cannot be used."""
    lines: list[_Line] = []
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip() or row.startswith("#"):
            continue
        try:
            lines.append(_line(row, {line.name for line in lines}))
        except ValueError as error:
            raise InputError(f"{subject}:{number}", str(error), "see docs/guide/directory.md") from None
    if not any(line.name == "uid" for line in lines):
        raise InputError(subject, "gives no uid, by which entries are named", "write uid: user.<number>")
    return Template(tuple(lines))


def _line(row: str, known: set[str]) -> _Line:
    percent = 100
    if (chance := re.match(r"<presence:(\d{1,2}|100)>", row)) is not None:
        percent, row = int(chance[1]), row[chance.end() :]
    name, colon, value = row.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][\w;-]*", name.strip()):
        raise ValueError(f"{row!r} is no `attribute: value`")
    parts: list[str | Make] = []
    value, at = value.strip(), 0
    for token in _TOKEN.finditer(value):
        parts.append(value[at : token.start()])
        parts.append(_tag(token[1]) if token[1] else _reference(token[2], token[3], known))
        at = token.end()
    parts.append(value[at:])
    return _Line(name.strip(), tuple(part for part in parts if part != ""), percent)


def _reference(name: str, length: str | None, known: set[str]) -> Make:
    if name not in known:
        raise ValueError(f"{{{name}}} names no attribute above")
    most = int(length) if length else None
    return lambda number, draw, values: values.get(name, "")[:most]


def _tag(text: str) -> Make:
    name, *given = text.split(":")
    simple: dict[str, Make] = {
        "number": lambda number, draw, values: str(number),
        "first": lambda number, draw, values: FIRST[draw.below(len(FIRST))],
        "last": lambda number, draw, values: LAST[draw.below(len(LAST))],
        "password": lambda number, draw, values: PASSWORD,
        "guid": lambda number, draw, values: f"{draw.below(1 << 63):016x}{draw.below(1 << 63):016x}",
    }
    if name in simple and not given:
        return simple[name]
    if name == "list" and given:
        words = ":".join(given).split(",")
        return lambda number, draw, values: words[draw.below(len(words))]
    if name == "random" and given:
        return _random(given)
    raise ValueError(f"<{text}> is no tag")


def _random(given: list[str]) -> Make:
    match given:
        case ["telephone"]:
            return lambda number, draw, values: f"+49 {draw.below(900) + 100} {draw.below(9_000_000) + 1_000_000}"
        case ["alpha", count] if count.isdigit():
            return partial(_letters, int(count))
        case ["digits", count] if count.isdigit():
            width = int(count)
            return lambda number, draw, values: f"{draw.below(10**width):0{width}}"
        case ["numeric", least, most] if least.isdigit() and most.isdigit() and int(least) <= int(most):
            low, span = int(least), int(most) - int(least) + 1
            return lambda number, draw, values: str(low + draw.below(span))
    raise ValueError(f"<random:{':'.join(given)}> is no tag")


def _letters(count: int, number: int, draw: _Draw, values: Values) -> str:
    return draw.letters(count)
