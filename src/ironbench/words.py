"""Counts as people say them."""

from __future__ import annotations


def counted(count: float, one: str, many: str = "") -> str:
    """`1 client`, `8 clients`, `1,000 clients`; `many` where adding an s does not make the plural."""
    return f"{count:,.0f} {one if count == 1 else many or one + 's'}"
