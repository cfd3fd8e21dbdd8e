"""Numbers as people read them: three significant digits and a fitting unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from ironbench import units
from ironbench.catalogue import base_name, metrics
from ironbench.model.record import FAILED_LIMITS, Record
from ironbench.study.subjects import failed_percent, failed_share
from ironbench.study.summarise import Summary
from ironbench.words import THIN, grouped, in_percent, percents

NOT_KNOWN = "not known"
NO_END = "no end"
"""Upper end of an interval that is infinite."""


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands in groups: 1234567 → 1 230 000; 0.01234 → 0.0123."""
    return units.number(value, digits) if math.isfinite(value) else NOT_KNOWN


def amount(value: Decimal | float) -> str:
    """A sum of money or a count of units, with cents only where there are any: 247392 → 247 392, 0.1107 → 0.1107."""
    exact = Decimal(str(value))
    if exact == exact.to_integral_value():
        return grouped(float(exact))
    return f"{exact:,.2f}".replace(",", THIN) if exact >= 1 else f"{exact.normalize():f}"


_LADDERS = {"s": units.TIME, "memory": units.BINARY, "bytes": units.DECIMAL, "bytes/s": units.DECIMAL}
"""Units that are written with the prefix that fits the value."""
_PERCENT = f"{THIN}%"
_TIMES = f"{THIN}×"
_UNITS: dict[str, tuple[str, Callable[[float], str], str]] = {
    "1": ("1", number, ""),
    "count": ("1", grouped, ""),
    "share": ("1", percents, _PERCENT),
    "± share": ("1", lambda value: f"± {percents(value)}", _PERCENT),
    "failed": ("1", lambda value: percents(value, limits=FAILED_LIMITS), _PERCENT),
    "points": ("1", lambda value: percents(value, signed=True), f"{THIN}points"),
    "detectable": ("1", lambda value: percents(value) if value <= 1 else "> 100", _PERCENT),
    "times": ("1", number, _TIMES),
    "ratio": ("1", lambda value: number(value, 4 if 1 <= value < 1.0995 else 3), _TIMES),
    "to 1": ("1", number, " to 1"),
    "p": ("1", lambda p: "< 0.001" if p < 0.001 else f"{p:.2f}" if p >= 0.1 else f"{p:.3f}", ""),
    "score": ("1", lambda value: number(value, 4), ""),
    "money": ("1", amount, ""),
    "hundredths": ("1", lambda value: f"{value:,.2f}".replace(",", THIN), ""),
    "1/s": ("1/s", number, "/s"),
    "count/s": ("1/s", grouped, "/s"),
    "rate": ("1/s", units.all_digits, "/s"),
    "MB/s": ("bytes/s", lambda value: f"{value / 1e6:,.1f}".replace(",", THIN), " MB/s"),
    "KiB": ("bytes", lambda value: f"{value / 1024:g}", f"{THIN}KiB"),
    "duration": ("s", units.span, ""),
    "seconds": ("s", lambda value: f"{value:g}", f"{THIN}s"),
    "Hz": ("Hz", lambda value: number(value / 1e9), " GHz"),
}
"""Unit → the base unit of its values, how a number is written, and what follows it. Ratios near 1 have a third decimal
on both sides, so that a small difference can be seen; a rate that was asked for has all its digits. A currency's ISO
4217 code is a unit, too."""


def base_unit(unit: str) -> str:
    """The unit of the values that programs get."""
    if unit in _LADDERS:
        return "bytes" if unit == "memory" else unit
    return _UNITS[unit][0] if unit in _UNITS else unit


def written(value: float, unit: str) -> tuple[str, str]:
    """The number as people read it, and the unit that follows it: (0.0123, "s") → ("12.3", " ms")."""
    if unit in _LADDERS:
        suffix, factor = scale(unit, [value])
        return number(value / factor), _gap(suffix) + suffix
    if len(unit) == 3 and unit.isupper():
        return amount(value), f" {unit}"
    _, figure, suffix = _UNITS.get(unit, (unit, number, f"{THIN}{unit}"))
    return figure(value), suffix


def quantity(value: float | None, unit: str) -> str:
    """A value in base units with a fitting unit: (0.0123, "s") → 12.3 ms."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return "".join(written(value, unit))


def signed(seconds: float) -> str:
    sign = "+" if seconds > 0 else "−" if seconds < 0 else ""
    return sign + quantity(abs(seconds), "s")


def failed_note(trials: Sequence[Record]) -> str:
    """`2 % failed`, to stand beside a rate; empty where none failed, or nobody counted."""
    share = failed_share(trials)
    return f"{failed_percent(share)} failed" if share else ""


def percent(share: float) -> str:
    """A share or a difference that may not be known."""
    return in_percent(share) if math.isfinite(share) else NOT_KNOWN


def confidence(share: float) -> str:
    """Of an interval: 0.95 → 95 %, 0.975 → 97.5 %, 0.99583 → 99.6 %."""
    return f"{share * 100:.3g}{THIN}%"


def moment(started_at: str) -> str:
    """`2026-11-21 01:00:00 UTC` of a record's start."""
    return started_at.replace("T", " ").removesuffix("Z").removesuffix("+00:00") + " UTC"


def unit_of(metric: str) -> str:
    """The unit a metric is shown in: shares and fractions as `share`, unknown metrics as plain numbers."""
    name = base_name(metric)
    if name.endswith(("_share", "_fraction")):
        return "share"
    known = metrics().get(name)
    return known.unit if known else "1"


def measured(summary: Summary | None, unit: str) -> str:
    """The centre without the spread."""
    return quantity(summary.centre if summary else None, unit)


def span(summary: Summary, unit: str) -> str:
    """`3.1 to 3.4 ms`: smallest to largest of the repeats, in one unit; or that there is no spread."""
    if summary.n == 1:
        return "n=1: no spread"
    return between(summary.low, summary.high, unit)


def between(low: float, high: float, unit: str, bare: bool = False) -> str:
    """Two values in one unit. `bare`: without it."""
    if unit in _LADDERS:
        name, factor = scale(unit, [low, high])
        first, last, suffix = number(low / factor), number(high / factor), _gap(name) + name
    else:
        first, last = written(low, unit)[0], written(high, unit)[0]
        suffix = written(low, unit)[1]
    if math.isinf(high):
        return f"{first}{'' if bare or suffix == _TIMES else suffix} to {NO_END}"
    return f"{first} to {last}{'' if bare or suffix == _TIMES else suffix}"


def times(ratio: float | None) -> str:
    return quantity(ratio, "times")


def scale(unit: str, values: Sequence[float]) -> tuple[str, float]:
    """The unit to show `values` in and what to divide them by; chosen by the largest."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit in _LADDERS:
        name, factor = units.chosen(most, _LADDERS[unit])
        return name + ("/s" if unit == "bytes/s" else ""), factor
    if unit == "share":
        return "%", 0.01
    return ("/s", 1.0) if unit == "1/s" else ("" if unit == "1" else unit, 1.0)


def _gap(suffix: str) -> str:
    return "" if suffix.startswith("/") or not suffix else THIN
