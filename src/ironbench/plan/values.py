"""Lists on the command line and in lab files: counts, CPU sets, KEY=VALUE."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ironbench import ranges
from ironbench.errors import InputError, quoted


def counts(quantity: str, subject: str, text: str) -> tuple[int, ...]:
    """`1,2,4,8` as distinct whole numbers in the range of the quantity, in the order written. InputError."""
    found: list[int] = []
    for part in text.split(","):
        number = int(ranges.read(quantity, subject, part.strip()))
        if number in found:
            raise InputError(subject, f"{number} is named twice", "name each number once; --repeats repeats trials")
        found.append(number)
    return tuple(found)


def cpus(subject: str, text: str, available: Iterable[int]) -> tuple[int, ...]:
    """A CPU set as taskset writes it: `0`, `0,2`, `0-3`."""
    known = set(available)
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            example = "write for example 0 or 0-3,6"
            raise InputError(subject, f"{quoted(part)} is not a CPU or a range of CPUs", example)
        missing = next((cpu for cpu in range(low, high + 1) if cpu not in known), None)
        if missing is not None:
            here = ",".join(map(str, sorted(known)))
            raise InputError(subject, f"CPU {missing} is not available", f"available here: {here}")
        found.update(range(low, high + 1))
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
