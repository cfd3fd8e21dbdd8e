"""Formats counts, lists, percentages and untrusted text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Pattern of control characters (Unicode category Cc) and of surrogates, which cannot be encoded."""
_KEPT = {"\n": " ", "\r": " ", "\t": " "}

CODE = re.compile(r"`([^`|]+)`")
"""Pattern of a code span without vertical bars, which would end a cell of a Markdown table."""

THIN = "\u202f"
"""Narrow no-break space, used between a number and its unit."""
MINUS = "\u2212"


def grouped(value: float) -> str:
    """Formats a whole number with grouped thousands: `12,345`. Every count is formatted this way."""
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"
    return text.replace("-", MINUS)


def counted(count: float, one: str, many: str = "") -> str:
    """Formats a count with its noun: `1 client`, `8 clients`, `1,000 clients`. `many`: an irregular plural."""
    return f"{grouped(count)} {one if count == 1 else many or one + 's'}"


def upper_first(text: str) -> str:
    """Returns a text with a capital first letter. Other letters stay unchanged, as in `WAL per transaction`."""
    return f"{text[:1].upper()}{text[1:]}"


def listed(words: Sequence[str]) -> str:
    """Joins words into a list such as `a`, `a and b`, or `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def some(words: Sequence[str], most: int = 3, of: int | None = None) -> str:
    """Lists the first words and counts the rest: `a, b, c and 4 more`. `of`: the total number of words."""
    rest = (of or len(words)) - min(len(words), most)
    return ", ".join(words[:most]) + (f" and {grouped(rest)} more" if rest > 0 else "")


def cut(text: str, most: int) -> str:
    """Truncates a text that is longer than `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def roughly(factor: float) -> str:
    """Formats an approximate bound with two digits: `6.4`, `120`."""
    return f"{factor:.2g}" if factor < 99.5 else f"{factor:.0f}"


def in_percent(share: float, limits: Sequence[float] = ()) -> str:
    """Formats a share as a percentage: 0.553 becomes `55%`, and 0.083 becomes `8.3%`. Every share is formatted this
    way.

    A share close to one of the `limits` is formatted with enough digits to show on which side of the limit it is:
    `5.01%`.
    """
    return f"{percents(share, limits=limits)}%"


def percents(share: float, signed: bool = False, limits: Sequence[float] = ()) -> str:
    """Formats a share like `in_percent`, but without the unit. Shares of at least 10% are formatted as whole numbers,
    and smaller ones with two significant digits. Measurements are not more precise than this."""
    value, sign = share * 100, "+" if signed else ""
    if not signed and 0 < value < 0.01:
        return "< 0.01"
    text = f"{value:{sign}{'.2g' if abs(value) < 9.95 else ',.0f'}}"
    places = 1
    while places < _MOST_PLACES and any(_hides(text, share, limit) for limit in limits):
        text, places = f"{value:{sign},.{places}f}", places + 1
    return text.replace("-", MINUS)


_MOST_PLACES = 6


def _hides(text: str, share: float, limit: float) -> bool:
    """Returns whether the formatted percentage is on a different side of the limit than the share."""
    if math.isclose(share, limit):
        return False
    shown = float(text.replace(",", ""))
    return shown <= limit * 100 if share > limit else shown >= limit * 100


def clean(text: str) -> str:
    """Returns the text on one line without control characters, which could move the cursor or change colours."""
    if text.isascii() and text.isprintable():  # fast path: lists may have ten thousand rows
        return text
    return _CONTROL.sub(lambda found: _KEPT.get(found[0], "\ufffd"), text)


def clean_lines(text: str) -> str:
    """Applies `clean` to every line of a text, and keeps the line ends."""
    return "\n".join(clean(line) for line in text.split("\n"))


def clean_document(value: Any) -> Any:
    """Applies `clean_lines` to every text in a document of lists and tables, including names."""
    if isinstance(value, str):
        return clean_lines(value)
    if isinstance(value, dict):
        return {clean_lines(str(key)): clean_document(inner) for key, inner in value.items()}
    return [clean_document(inner) for inner in value] if isinstance(value, list | tuple) else value
