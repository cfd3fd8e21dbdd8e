"""Counts and shares as people say them."""

from __future__ import annotations

THIN = "\u202f"
"""Narrow no-break space: groups of thousands, and between a number and its unit."""
MINUS = "\u2212"


def grouped(value: float) -> str:
    """A whole number with its thousands apart: `12 345`."""
    return f"{value:,.0f}".replace(",", THIN)


def counted(count: float, one: str, many: str = "") -> str:
    """`1 client`, `8 clients`, `1,000 clients`; `many` where adding an s does not make the plural."""
    return f"{count:,.0f} {one if count == 1 else many or one + 's'}"


def roughly_times(factor: float) -> str:
    """`6.4 ×`, `120 ×`: a bound, of which two digits are enough."""
    return f"{factor:.2g} ×" if factor < 99.5 else f"{factor:.0f} ×"


def in_percent(share: float, digits: int = 0, signed: bool = False) -> str:
    """`0.553` → `55 %`; with its sign `−12 %`."""
    value = f"{share * 100:{'+' if signed else ''}.{digits}f}"
    return f"{value.replace('-', MINUS)}{THIN}%"
