"""Parses and formats sizes, durations and values in data sheets.

MB is always 10⁶ bytes and MiB is 2²⁰ (IEC 80000-13). A single letter (`64K`, `2G`) means a power of 1024, as in GNU
coreutils and fio (`info coreutils 'Block size'`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ironbench.errors import InputError, quoted
from ironbench.words import MINUS, THIN, grouped

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DECIMAL = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_BYTES = {"B": 1} | _DECIMAL | _BINARY
_ANY_CASE = {name.lower(): factor for name, factor in _BYTES.items()} | {
    name[0].lower(): factor for name, factor in _BINARY.items()
}
_OF_1024 = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_FIGURES: dict[str, float] = (
    {"": 1, "%": 0.01, "rpm": 1, "Mbit/s": 1e6 / 8, "Gbit/s": 1e9 / 8, "KB": 1e3, "KB/s": 1e3}
    | {name: factor for name, factor in _SECONDS.items() if name not in ("m", "d")}
    | {name + per: factor for name, factor in _BYTES.items() for per in ("", "/s")}
)
"""Units in data sheets, with factors to seconds, bytes, bytes per second, or 1."""

_LONGEST_TEXT = 64
"""Maximum number of characters of a number with its unit."""
_NUMBER = re.compile(r"\s*([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?\s*([^\s0-9.]*)\s*", re.ASCII)


def seconds(subject: str, written: str | float) -> float:
    """Parses `30s`, `10ms`, `2m`, `1h`; a number without a unit means seconds. Raises InputError."""
    return _read(subject, written, _SECONDS | {"": 1.0}, "a duration", "write for example 30s, 500ms, 2m or 1h", True)


def size(subject: str, written: str | float) -> int:
    """Parses `512MB` (10⁶), `2GiB` (2³⁰), `64K` (2¹⁰) to bytes; a number without a unit means bytes. Raises
    InputError."""
    factors = _ANY_CASE | {"": 1.0}
    value = _read(subject, written, factors, "a size", "write for example 512MB (10⁶) or 2GiB (2³⁰)", True)
    return int(min(value, 2.0**200))


def figure(subject: str, written: object) -> float | int | bool:
    """Parses a value in a data sheet, such as `7.5 ms`, `163 MB/s`, `256 GB` or `20 %`, to base units. Raises
    InputError."""
    if isinstance(written, bool | int | float):
        return written
    units = ", ".join(name for name in _FIGURES if name)
    return _read(
        subject,
        str(written),
        _FIGURES,
        "a number with a known unit",
        f"write for example 7.5 ms or 163 MB/s; units: {units}",
    )


def size_of_1024(subject: str, written: str, bare: int) -> int:
    """Parses an engine setting in which MB means 2²⁰. A number without a unit is multiplied by `bare` bytes. Raises
    InputError."""
    return int(_read(subject, written, _OF_1024 | {"": bare}, "a size", "use B, kB, MB, GB or TB"))


def _read(
    subject: str, written: str | float, factors: Mapping[str, float], what: str, hint: str, any_case: bool = False
) -> float:
    text = repr(written) if isinstance(written, float) else str(written)
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    unit = match[3].lower() if match and any_case else match[3] if match else ""
    if match is None or unit not in factors:
        raise InputError(subject, f"{quoted(text)} is not {what}", hint)
    return float(match[1].replace("_", "") + (match[2] or "")) * factors[unit]


def exact(count: int) -> str:
    """Formats a number of bytes for use in commands, without rounding, in the unit with the shortest text: 268435456 →
    `256MiB`."""
    whole = [
        f"{count // factor}{name}" for name, factor in (_BINARY | _DECIMAL).items() if count and count % factor == 0
    ]
    return min((*whole, f"{count}B"), key=len)


TIME = (("h", 3600.0), ("min", 120.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
"""Units of time, each with the smallest number of seconds that is formatted in this unit. For example, 110 s is
formatted in seconds, and 120 s as 2.00 min."""
DECIMAL = (*((name, float(factor)) for name, factor in reversed(_DECIMAL.items())), ("B", 1.0))
BINARY = (*((name, float(factor)) for name, factor in reversed(_BINARY.items())), ("B", 1.0))


def number(value: float, digits: int = 3) -> str:
    """Rounds to `digits` significant digits and groups thousands: 1234567 → 1,230,000; 0.01234 → 0.0123. `value` must
    be finite."""
    return "0" if value == 0 else fixed(value, places(value, digits))


def places(value: float, digits: int) -> int:
    """Returns the number of decimals with which a value has `digits` significant digits. The number is negative if
    digits before the decimal point are rounded. `value` must not be zero."""
    exponent = int(f"{value:.{digits - 1}e}".rpartition("e")[2])  # exponent after rounding: 999.9 → 1.00e+03
    return digits - 1 - exponent


def fixed(value: float, decimals: int) -> str:
    """Rounds to `decimals` and groups thousands."""
    return f"{round(value, decimals):,.{max(0, decimals)}f}".replace("-", MINUS)


def rate(per_second: float) -> str:
    """Formats a requested rate with all its digits: `300,000/s`. Measured rates are formatted by `number`, which shows
    three digits."""
    return f"{all_digits(per_second)}/s"


def all_digits(value: float) -> str:
    """Formats a number that a user entered: `300,000`, `0.25`."""
    return grouped(value) if value == round(value) else f"{value:.6g}"


def scaled(value: float, units: Sequence[tuple[str, float]]) -> str:
    """Formats the value with three digits in a suitable unit: (0.0123, TIME) → 12.3 ms."""
    name, factor = chosen(abs(value), units)
    return f"{number(value / factor)}{THIN}{name}"


def chosen(value: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Returns the largest unit in which `value` is at least 1, as the name of the unit and its factor."""
    if value == 0:
        return next((name, factor) for name, factor in units if factor == 1.0)
    for name, factor in units:
        # 0.9995 of a unit would be rounded up to 1.
        if value >= factor * 0.9995:
            return ("min", 60.0) if name == "min" else (name, factor)
    return units[-1]


def stored(count: float) -> str:
    """Formats bytes on a device or in a file, in powers of 1000: 1.50 GB."""
    return scaled(count, DECIMAL)


def memory(count: float) -> str:
    """Formats bytes of memory in powers of 1024: 1.50 GiB."""
    return scaled(count, BINARY)


def span(seconds: float) -> str:
    """Formats a duration: `240 ms`, `1.5 s`, `95 s`, `4 min 20 s`, `2 h 10 min`, `3 d 4 h`, `1.2 years`."""
    if 0 < seconds < 0.95:
        return scaled(seconds, TIME).replace(THIN, " ")
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    if seconds < 595:
        minutes, rest = divmod(10 * round(seconds / 10), 60)
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h" + (f" {minutes} min" if minutes else "")
    days, hours = divmod(hours, 24)
    if days < 365:
        return f"{days} d" + (f" {hours} h" if hours else "")
    return f"{seconds / (365.25 * 86400):,.1f} years"


_IOPS = re.compile(r"\biops=(\d+)([KMGT])(B?)(?=[,)])")


def device(expression: str) -> str:
    """Formats a device expression for display, with the IOPS as a plain number: `aws-io2(iops=32KB)` becomes
    `aws-io2(iops=32000)`. Records contain the normal form of the expression, in which every number is written like a
    size. The normal form is not changed, so that new records are the same as old ones."""

    def number(found: re.Match[str]) -> str:
        power = "KMGT".index(found[2]) + 1
        return f"iops={int(found[1]) * (1000 if found[3] else 1024) ** power}"

    return _IOPS.sub(number, expression)
