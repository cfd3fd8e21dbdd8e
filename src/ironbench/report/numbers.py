"""Formats numbers for people with three significant digits and a suitable unit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from ironbench import units
from ironbench.catalogue import base_name, metrics
from ironbench.model.judging_limits import FAILED_LIMITS
from ironbench.model.record import Record
from ironbench.study.subjects import failed_percent, failed_share
from ironbench.study.summarise import Summary
from ironbench.words import THIN, grouped, in_percent, percents

NOT_KNOWN = "not known"
NO_END = "∞"
"""Text for an upper bound that is infinite."""


def number(value: float, digits: int = 3) -> str:
    """Formats a number with `digits` significant digits and thousands separators: 1234567 → 1,230,000; 0.01234 →
    0.0123."""
    return units.number(value, digits) if math.isfinite(value) else NOT_KNOWN


def amount(value: Decimal | float) -> str:
    """Formats a sum of money or a number of units. Cents are shown only if there are any. Examples: 247392 → 247,392;
    0.1107 → 0.1107."""
    exact = Decimal(str(value))
    if exact == exact.to_integral_value():
        return grouped(float(exact))
    return f"{exact:,.2f}" if exact >= 1 else f"{exact.normalize():f}"


_JUST_ABOVE_1 = 1.0995
"""Ratios from 1 up to this value are shown with three decimals, so that readers see small differences."""


def _ratio_digits(ratio: float) -> int:
    return 4 if 1 <= ratio < _JUST_ABOVE_1 else 3


_LADDERS = {"s": units.TIME, "memory": units.BINARY, "bytes": units.DECIMAL, "bytes/s": units.DECIMAL}
"""Units that are shown with a prefix such as milli or kilo, mapped to their possible prefixes. The value determines
which prefix is used."""
_PERCENT = "%"
_TIMES = "x"
_UNITS: dict[str, tuple[str, Callable[[float], str], str]] = {
    "1": ("1", number, ""),
    "count": ("1", grouped, ""),
    "share": ("1", percents, _PERCENT),
    "± share": ("1", lambda value: f"± {percents(value)}", _PERCENT),
    "failed": ("1", lambda value: percents(value, limits=FAILED_LIMITS), _PERCENT),
    "points": ("1", lambda value: percents(value, signed=True), f"{THIN}points"),
    "detectable": ("1", lambda value: percents(value) if value <= 1 else "> 100", _PERCENT),
    "times": ("1", number, _TIMES),
    "ratio": ("1", lambda value: number(value, _ratio_digits(value)), _TIMES),
    "change": ("1", lambda change: percents(change, signed=True, limits=(-1.0,)), _PERCENT),
    "to 1": ("1", number, " to 1"),
    "p": ("1", lambda p: "< 0.001" if p < 0.001 else f"{p:.2f}" if p >= 0.1 else f"{p:.3f}", ""),
    "score": ("1", lambda value: number(value, 4), ""),
    "money": ("1", amount, ""),
    "hundredths": ("1", lambda value: f"{value:,.2f}", ""),
    "1/s": ("1/s", number, "/s"),
    "count/s": ("1/s", grouped, "/s"),
    "1/min": ("1/min", grouped, "/min"),
    "rate": ("1/s", units.all_digits, "/s"),
    "MB/s": ("bytes/s", lambda value: f"{value / 1e6:,.1f}", " MB/s"),
    "KiB": ("bytes", lambda value: f"{value / 1024:g}", f"{THIN}KiB"),
    "duration": ("s", units.span, ""),
    "seconds": ("s", lambda value: f"{value:g}", f"{THIN}s"),
    "Hz": ("Hz", lambda value: number(value / 1e9), " GHz"),
}
"""Maps each unit to its base unit, the function that formats a number, and the suffix after the number.

A `change` is a ratio minus 1, shown as +26% or −13%. A requested rate is shown with all its digits. The ISO 4217 code
of a currency is also a unit.
"""


def base_unit(unit: str) -> str:
    """Returns the base unit of `unit`, such as `bytes/s` for `MB/s`. Cells contain values in base units, and programs
    get them in base units."""
    if unit in _LADDERS:
        return "bytes" if unit == "memory" else unit
    return _UNITS[unit][0] if unit in _UNITS else unit


def written(value: float, unit: str) -> tuple[str, str]:
    """Formats a value in base units. Returns the number and the suffix with the unit separately: (0.0123, "s") →
    ("12.3", " ms")."""
    if unit in _LADDERS:
        suffix, factor = scale(unit, [value])
        return number(value / factor), _gap(suffix) + suffix
    if len(unit) == 3 and unit.isupper():
        return amount(value), f" {unit}"
    _, figure, suffix = _UNITS.get(unit, (unit, number, f"{THIN}{unit}"))
    return figure(value), suffix


def quantity(value: float | None, unit: str) -> str:
    """Formats a value in base units with a suitable unit: (0.0123, "s") → 12.3 ms."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    return "".join(written(value, unit))


def signed(seconds: float) -> str:
    sign = "+" if seconds > 0 else "−" if seconds < 0 else ""
    return sign + quantity(abs(seconds), "s")


def failed_note(trials: Sequence[Record]) -> str:
    """Returns the note beside a rate, such as `2% failed`. Returns an empty text if no transaction failed, or if
    failures were not counted."""
    share = failed_share(trials)
    return f"{failed_percent(share)} failed" if share else ""


def percent_change(ratio: float) -> str:
    """Formats a ratio as a change: 1.26 → +26%, 0.00619 → −99%."""
    return quantity(ratio - 1, "change")


def percent(share: float) -> str:
    """Formats a fraction, or a difference of fractions, in percent. Returns `not known` for a value that is not
    finite."""
    return in_percent(share) if math.isfinite(share) else NOT_KNOWN


def confidence(share: float) -> str:
    """Formats a confidence level: 0.95 → 95%, 0.975 → 97.5%, 0.99583 → 99.6%."""
    return f"{share * 100:.3g}%"


def moment(started_at: str) -> str:
    """Formats the start of a record: `2026-11-21 01:00:00 UTC`."""
    return started_at.replace("T", " ").removesuffix("Z").removesuffix("+00:00") + " UTC"


def unit_of(metric: str) -> str:
    """Returns the unit in which a metric is shown. The unit of fractions is `share`. An unknown metric has the unit
    `1`, a plain number."""
    name = base_name(metric)
    if name.endswith(("_share", "_fraction")):
        return "share"
    known = metrics().get(name)
    return known.unit if known else "1"


def measured(summary: Summary | None, unit: str) -> str:
    """Formats the centre of a summary without its range."""
    return quantity(summary.centre if summary else None, unit)


def span(summary: Summary, unit: str) -> str:
    """Formats the range of the repeats, with the same unit for both ends: `3.1 to 3.4 ms`. For a single value, states
    that there is no range."""
    if summary.n == 1:
        return "n=1: no range"
    return range_text(summary.low, summary.high, unit)


def range_text(low: float, high: float, unit: str, bare: bool = False) -> str:
    """Formats a range, with the same unit for both ends. `bare`: whether to omit the unit."""
    if unit in _LADDERS:
        name, factor = scale(unit, [low, high])
        first, last, suffix = number(low / factor), number(high / factor), _gap(name) + name
    else:
        first, last = written(low, unit)[0], written(high, unit)[0]
        suffix = written(low, unit)[1]
        if unit == "ratio" and 0 < low <= high < math.inf:
            decimals = _ratio_decimals(low, high)
            first, last = units.fixed(low, decimals), units.fixed(high, decimals)
    if math.isinf(high):
        return f"{first}{'' if bare or suffix == _TIMES else suffix} to {NO_END}"
    return f"{first} to {last}{'' if bare or suffix == _TIMES else suffix}"


def _ratio_decimals(low: float, high: float) -> int:
    """Returns the number of decimals for both bounds of a ratio's confidence interval: `1.09 to 1.13`, `0.699 to
    1.151`.

    The lower bound has three significant digits, or fewer if the upper bound would otherwise have more than four. If
    both bounds are just above 1, they have three decimals. If a bound that is not 1 would be shown as 1, the number of
    decimals increases to at most three.
    """
    digits = _ratio_digits(low) if high < _JUST_ABOVE_1 else 3
    decimals = min(units.places(low, digits), units.places(high, 4))
    while decimals < 3 and any(bound != 1 and round(bound, decimals) == 1 for bound in (low, high)):
        decimals += 1
    return decimals


def times(ratio: float | None) -> str:
    return quantity(ratio, "times")


def scale(unit: str, values: Sequence[float]) -> tuple[str, float]:
    """Returns the unit in which all `values` are shown, and the number by which to divide them. The unit suits the
    largest value."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit in _LADDERS:
        name, factor = units.chosen(most, _LADDERS[unit])
        return name + ("/s" if unit == "bytes/s" else ""), factor
    if unit == "share":
        return "%", 0.01
    return ("/s", 1.0) if unit == "1/s" else ("" if unit == "1" else unit, 1.0)


def _gap(suffix: str) -> str:
    return "" if suffix.startswith("/") or not suffix else THIN
