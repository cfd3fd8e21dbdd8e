"""The pragmas of SQLite that may be set, and their values. SQLite itself ignores mistakes in silence.

https://www.sqlite.org/pragma.html
"""

from __future__ import annotations

import re

from ironbench.errors import InputError, nearest

_SWITCH = ("on", "off", "true", "false", "yes", "no", "1", "0")
_WORDS = {
    "auto_vacuum": ("none", "full", "incremental"),
    "automatic_index": _SWITCH,
    "cell_size_check": _SWITCH,
    "checkpoint_fullfsync": _SWITCH,
    "foreign_keys": _SWITCH,
    "fullfsync": _SWITCH,
    "journal_mode": ("wal", "delete", "truncate", "persist", "memory", "off"),
    "locking_mode": ("normal", "exclusive"),
    "read_uncommitted": _SWITCH,
    "recursive_triggers": _SWITCH,
    "secure_delete": (*_SWITCH, "fast"),
    "synchronous": ("off", "normal", "full", "extra"),
    "temp_store": ("default", "file", "memory"),
}
_NUMBERS = {
    "analysis_limit": (0, 1 << 31),
    "busy_timeout": (0, 1 << 31),
    "cache_size": (-(1 << 31), 1 << 31),
    "cache_spill": (0, 1 << 31),
    "hard_heap_limit": (0, 1 << 62),
    "journal_size_limit": (-1, 1 << 62),
    "mmap_size": (0, 1 << 46),
    "page_size": (512, 65536),
    "soft_heap_limit": (0, 1 << 62),
    "threads": (0, 64),
    "wal_autocheckpoint": (0, 1 << 31),
}
KNOWN = sorted([*_WORDS, *_NUMBERS])
DEFAULTS = {"journal_mode": "wal", "synchronous": "full"}
"""Readers and one writer at the same time, and every commit on the device before it is answered."""
_OF_THE_FILE = ("page_size", "auto_vacuum")
"""They count only before the first table is made, so they come first."""


def validated(settings: dict[str, str]) -> dict[str, str]:
    """The settings in lower case. InputError with the nearest name, or the values that there are."""
    return {name: _value(name, value.strip().lower()) for name, value in settings.items()}


def shaping(settings: dict[str, str]) -> dict[str, str]:
    """Those of the settings that shape the file for good."""
    return {name: settings[name] for name in _OF_THE_FILE if name in settings}


def statements(settings: dict[str, str]) -> list[str]:
    """What every connection runs after opening, in an order that works."""
    wanted = DEFAULTS | settings
    ordered = [name for name in _OF_THE_FILE if name in wanted] + [n for n in wanted if n not in _OF_THE_FILE]
    return [f"PRAGMA {name}={wanted[name]}" for name in ordered]


def _value(name: str, value: str) -> str:
    subject = f"--set {name}={value}"
    if name in _WORDS:
        if value not in _WORDS[name]:
            raise InputError(subject, f"{value!r} is none of its values", nearest(value, list(_WORDS[name])))
    elif name in _NUMBERS:
        least, most = _NUMBERS[name]
        if not re.fullmatch(r"-?\d+", value) or not least <= int(value) <= most:
            raise InputError(subject, f"it is no whole number from {least} to {most}")
        if name == "page_size" and int(value) & (int(value) - 1):
            raise InputError(subject, "it is no power of two")
    else:
        raise InputError(subject, "SQLite has no pragma of that name that can be set here", nearest(name, KNOWN))
    return value
