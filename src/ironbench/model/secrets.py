"""Passwords, which must never appear in a record, a log or a report."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "•••"
_KNOWN: set[str] = set()
"""Passwords that this process has used."""
_SHORT = 4
"""Passwords shorter than this are hidden only if they are whole words. Otherwise, a short password would hide parts of
most messages."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets of a system, which are stored separately from the system and not shown by repr."""

    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.password:
            _KNOWN.add(self.password)


def hidden(text: str) -> str:
    """Returns a text from outside (a server, a library) without the passwords that this process has used."""
    for password in sorted(_KNOWN, key=len, reverse=True):
        if len(password) >= _SHORT:
            text = text.replace(password, HIDDEN)
        else:
            text = re.sub(rf"(?<!\w){re.escape(password)}(?!\w)", HIDDEN, text)
    return text


def hidden_in(value: Any) -> Any:
    """Applies `hidden` to every text in nested lists and dicts."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, dict):
        return {key: hidden_in(inner) for key, inner in value.items()}
    return [hidden_in(inner) for inner in value] if isinstance(value, list | tuple) else value
