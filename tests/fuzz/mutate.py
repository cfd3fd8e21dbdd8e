"""Makes nearly valid texts: tokens of real files are replaced, moved, repeated, nested, or changed to another kind."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z_][\w-]*|[0-9][0-9_.]*|\s+|.', re.DOTALL)
NUMBERS = (
    *(
        "0",
        "-1",
        "1",
        "2",
        "6",
        "7",
        "255",
        "65536",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "1e308",
    ),
    *(
        "1e-300",
        "-0.0",
        "inf",
        "nan",
        "0x7fffffffffffffff",
        "1_000",
        "0.05",
        "1e26",
        "9" * 25,
        "9" * 4400,
        "0x" + "f" * 5000,
    ),
)
TEXTS = (
    *(
        '""',
        '" "',
        '"a"',
        '"\\u0000"',
        '"\\u001b[31m"',
        '"é€𝄞"',
        '"../../etc"',
        '"/"',
        '"./x"',
        "'\\'",
        '"postgres"',
        '"null"',
    ),
    *(
        '"sqlite"',
        '"duckdb"',
        '"none"',
        '"mysql"',
        '"30s"',
        '"0s"',
        '"-5s"',
        '"1e9h"',
        '"99999999999h"',
        '"auto"',
        '"512MB"',
    ),
    *('"1e26GB"', '"1KiB"', '"70%"', '"0%"', '"0-4294967296"', '"0,1"', '"hdd-7200"', '"raid0(4, hdd-7200)"', '"free"'),
    *(
        '"cold"',
        '"hot"',
        '"full"',
        '"explicit"',
        '"a=b over c: 1 to 2"',
        '"order: a > b"',
        '"' + "x" * 3000 + '"',
        "'''\n'''",
    ),
)
WORDS = (
    "true",
    "false",
    "2026-11-21",
    "[]",
    "{}",
    "[[]]",
    "{ a = 1 }",
    "[1, 2, 4]",
    '["a", 1, true]',
    "vary",
    "load",
    "x",
)


def mutated(corpus: Sequence[str], dice: random.Random) -> str:
    """Returns one of the texts with one to eight changes. In one third of the texts, only numbers are changed, to
    similar numbers."""
    tokens = _TOKEN.findall(dice.choice(corpus))
    if dice.random() < 1 / 3:
        return "".join(_near(token, dice) for token in tokens)
    for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        tokens = _changed(tokens, corpus, dice)
    return "".join(tokens)


def _near(token: str, dice: random.Random) -> str:
    """Sometimes replaces a number by a similar number, also the quoted number of a size or duration. Returns other
    tokens unchanged."""
    if not re.fullmatch(r'"?[0-9]+[a-zA-Z]*"?', token) or dice.random() < 0.8:
        return token
    return re.sub(r"[0-9]+", lambda digits: str(max(1, int(digits[0]) * dice.choice((1, 2, 3)) // 2)), token)


def _changed(tokens: list[str], corpus: Sequence[str], dice: random.Random) -> list[str]:
    if not tokens:
        return [dice.choice(TEXTS)]
    at = dice.randrange(len(tokens))
    kind = dice.randrange(12)
    if kind <= 3:  # a value of the same kind, or nearly
        at = _value(tokens, at)
        fitting = TEXTS if tokens[at][:1] in "\"'" else NUMBERS if tokens[at][:1].isdigit() else WORDS
        return [*tokens[:at], dice.choice(fitting), *tokens[at + 1 :]]
    if kind == 4:  # a value of any kind
        at = _value(tokens, at)
        return [*tokens[:at], dice.choice((*NUMBERS, *TEXTS, *WORDS)), *tokens[at + 1 :]]
    if kind == 5:  # deleted
        end = at + dice.choice((1, 1, 2, 5, 20))
        return tokens[:at] + tokens[end:]
    if kind == 6:  # duplicated
        end = at + dice.choice((1, 3, 10, 40))
        return tokens[:end] + tokens[at:end] * dice.choice((1, 1, 2, 50)) + tokens[end:]
    if kind == 7:  # moved
        other = dice.randrange(len(tokens))
        changed = list(tokens)
        changed[at], changed[other] = changed[other], changed[at]
        return changed
    if kind == 8:  # from another text
        others = _TOKEN.findall(dice.choice(corpus))
        start = dice.randrange(max(1, len(others)))
        return tokens[:at] + others[start : start + dice.choice((1, 4, 16, 60))] + tokens[at:]
    if kind == 9:  # nested
        opening, closing = dice.choice(
            (("[", "]"), ("{ a = ", " }"), ("(", ")"), ("raid0(2, ", ")"), ("\\if 1\n", "\n\\endif\n"))
        )
        times = dice.choice((1, 3, 40, 1000))
        return [*tokens[:at], opening * times, tokens[at], closing * dice.choice((times, times, 0)), *tokens[at + 1 :]]
    if kind == 10:  # any character
        return [
            *tokens[:at],
            chr(dice.choice((0, 9, 10, 13, 27, 34, 92, 127, 0xA0, 0x202E, 0xFFFF, 0x10FFFF))),
            *tokens[at:],
        ]
    word = tokens[at]  # within a token
    place = dice.randrange(len(word) + 1)
    return [
        *tokens[:at],
        word[:place] + dice.choice("0123456789.=-_:;'\"\\[]{}(),@%$ \n") + word[place + 1 :],
        *tokens[at + 1 :],
    ]


def _value(tokens: Sequence[str], at: int) -> int:
    """Finds the nearest token that is not white space, preferably after an equals sign."""
    for step in range(min(40, len(tokens))):
        place = (at + step) % len(tokens)
        if not tokens[place].isspace() and "=" in tokens[max(0, place - 2) : place]:
            return place
    return at
