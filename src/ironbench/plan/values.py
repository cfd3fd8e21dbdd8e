"""The small words of the command line: durations, sizes, lists, CPU sets, KEY=VALUE."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ironbench.errors import InputError

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
# PostgreSQL's size units are powers of 1024 whatever they are called (manual, 19.1.1 "Parameter Names and Values");
# a memory size given to ironbench means the same as one given to the server.
# The letter alone is what fio, dd and the text of a device write.
_BYTES = {"": 1, "b": 1} | {letter + b: 1 << 10 * n for n, letter in enumerate("kmgt", 1) for b in ("", "b")}
_NUMBER = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z]*)\s*")


def seconds(subject: str, text: str) -> float:
    """`30s`, `10ms`, `2m`, `1h`; a bare number is seconds."""
    match = _NUMBER.fullmatch(text)
    factor = _SECONDS.get(match[2].lower() or "s") if match else None
    if match is None or factor is None:
        raise InputError(subject, f"{text!r} is not a duration", "write for example 30s, 500ms, 2m or 1h")
    return float(match[1]) * factor


def size(subject: str, text: str) -> int:
    """`512MB`, `2GiB`, `64K` in powers of 1024, as PostgreSQL counts; a bare number is bytes."""
    match = _NUMBER.fullmatch(text)
    factor = _BYTES.get(match[2].lower().replace("ib", "b")) if match else None
    if match is None or factor is None:
        raise InputError(subject, f"{text!r} is not a size", "write for example 512MB or 2GB")
    return int(float(match[1]) * factor)


def counts(subject: str, text: str, low: int, high: int) -> tuple[int, ...]:
    """`1,2,4,8` as distinct whole numbers within bounds, in the order written."""
    found: list[int] = []
    for part in text.split(","):
        try:
            number = int(part)
        except ValueError:
            raise InputError(subject, f"{part.strip()!r} is not a whole number", "write for example 1,2,4,8") from None
        if not low <= number <= high:
            raise InputError(subject, f"{number} is out of range", f"{low} to {high} is possible")
        if number in found:
            raise InputError(subject, f"{number} is named twice", "name each number once; --repeats repeats trials")
        found.append(number)
    return tuple(found)


def cpus(subject: str, text: str, available: Iterable[int]) -> tuple[int, ...]:
    """A CPU set as taskset writes it: `0`, `0,2`, `0-3`."""
    known = set(available)
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if not match:
            raise InputError(subject, f"{part!r} is not a CPU or a range of CPUs", "write for example 0 or 0-3,6")
        low, high = int(match[1]), int(match[2] or match[1])
        found.update(range(low, high + 1))
    missing = sorted(found - known)
    if missing or not found:
        here = ",".join(map(str, sorted(known)))
        raise InputError(subject, f"CPU {','.join(map(str, missing))} is not available", f"available here: {here}")
    return tuple(sorted(found))


def pairs(subject: str, texts: Iterable[str]) -> dict[str, str]:
    """`KEY=VALUE` strings as a dict; a later one wins."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(subject, f"{text!r} is not KEY=VALUE", f"write for example {subject} name=value")
        found[key.strip()] = value.strip()
    return found


def positive(subject: str, value: float, hint: str = "") -> float:
    if not math.isfinite(value) or value <= 0:
        raise InputError(subject, f"{value:g} is not above zero", hint)
    return value
