"""Counts and shares as people say them."""

from __future__ import annotations

import re
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters (Unicode's Cc), and halves of characters that no encoding can write."""
_KEPT = {"\n": " ", "\r": " ", "\t": " "}

THIN = "\u202f"
"""Narrow no-break space: groups of thousands, and between a number and its unit."""
MINUS = "\u2212"


def grouped(value: float) -> str:
    """A whole number with its thousands apart: `12 345`; every count is written so."""
    return f"{value:,.0f}".replace(",", THIN).replace("-", MINUS)


def counted(count: float, one: str, many: str = "") -> str:
    """`1 client`, `8 clients`, `1 000 clients`; `many` where adding an s does not make the plural."""
    return f"{grouped(count)} {one if count == 1 else many or one + 's'}"


def roughly_times(factor: float) -> str:
    """`6.4 ×`, `120 ×`: a bound, of which two digits are enough."""
    return f"{factor:.2g} ×" if factor < 99.5 else f"{factor:.0f} ×"


def in_percent(share: float, signed: bool = False) -> str:
    """`0.553` → `55 %`, `0.083` → `8.3 %`; with its sign `−12 %`. Every share and difference is written so."""
    return f"{percents(share, signed)}{THIN}%"


def percents(share: float, signed: bool = False) -> str:
    """The same without its unit: whole from 10 on, else two digits, as much as sampling and repeats bear."""
    value = share * 100
    if not signed and 0 < value < 0.01:
        return "< 0.01"
    text = f"{value:{'+' if signed else ''}{'.2g' if abs(value) < 9.95 else ',.0f'}}"
    return text.replace(",", THIN).replace("-", MINUS)


def clean(text: str) -> str:
    """On one line and without control characters: what others wrote must not move a cursor or change colours."""
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
