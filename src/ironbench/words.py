"""Counts and shares as people say them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters (Unicode's Cc), and halves of characters that no encoding can write."""
_KEPT = {"\n": " ", "\r": " ", "\t": " "}

THIN = "\u202f"
"""Narrow no-break space: groups of thousands, and between a number and its unit."""
MINUS = "\u2212"


def grouped(value: float) -> str:
    """A whole number with its thousands apart: `12 345`; every count is written so."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"
    return text.replace(",", THIN).replace("-", MINUS)


def counted(count: float, one: str, many: str = "") -> str:
    """`1 client`, `8 clients`, `1 000 clients`; `many` where adding an s does not make the plural."""
    return f"{grouped(count)} {one if count == 1 else many or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(words: Sequence[str], most: int = 3, of: int | None = None) -> str:
    """The first of them, and how many more there are: `a, b, c and 4 more`; `of`: how many there are in all."""
    rest = (of or len(words)) - min(len(words), most)
    return ", ".join(words[:most]) + (f" and {grouped(rest)} more" if rest > 0 else "")


def cut(text: str, most: int) -> str:
    """The beginning of what is longer than `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def roughly(factor: float) -> str:
    """`6.4`, `120`: a bound, of which two digits are enough."""
    return f"{factor:.2g}" if factor < 99.5 else f"{factor:.0f}"


def roughly_times(factor: float) -> str:
    """`6.4 ×`"""
    return f"{roughly(factor)} ×"


def in_percent(share: float, limits: Sequence[float] = ()) -> str:
    """`0.553` → `55 %`, `0.083` → `8.3 %`. Every share is written so.

    A share beside one of the `limits` that it is judged by has as many digits as show on which side: `5.01 %`.
    """
    return f"{percents(share, limits=limits)}{THIN}%"


def in_points(difference: float) -> str:
    """Of two shares: `+0.98 points`."""
    return f"{percents(difference, signed=True)}{THIN}points"


def percents(share: float, signed: bool = False, limits: Sequence[float] = ()) -> str:
    """The same without its unit: whole from 10 on, else two digits, as much as sampling and repeats bear."""
    value, sign = share * 100, "+" if signed else ""
    if not signed and 0 < value < 0.01:
        return "< 0.01"
    text = f"{value:{sign}{'.2g' if abs(value) < 9.95 else ',.0f'}}"
    places = 1
    while places < _MOST_PLACES and any(_hides(text, share, limit) for limit in limits):
        text, places = f"{value:{sign},.{places}f}", places + 1
    return text.replace(",", THIN).replace("-", MINUS)


_MOST_PLACES = 6


def _hides(text: str, share: float, limit: float) -> bool:
    """Whether the percents as written are not on the side of the limit that the share is on."""
    if math.isclose(share, limit):
        return False
    shown = float(text.replace(",", ""))
    return shown <= limit * 100 if share > limit else shown >= limit * 100


def clean(text: str) -> str:
    """On one line and without control characters: what others wrote must not move a cursor or change colours."""
    if text.isascii() and text.isprintable():  # most are, and ten thousand rows of a list are asked
        return text
    return _CONTROL.sub(lambda found: _KEPT.get(found[0], "\ufffd"), text)


def clean_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(clean(line) for line in text.split("\n"))


def clean_document(value: Any) -> Any:
    """The same for every text in a document of lists and tables, names included."""
    if isinstance(value, str):
        return clean_lines(value)
    if isinstance(value, dict):
        return {clean_lines(str(key)): clean_document(inner) for key, inner in value.items()}
    return [clean_document(inner) for inner in value] if isinstance(value, list | tuple) else value
