"""Formats the values of notes. A note about several trials can contain a range instead of a number, and several strings
instead of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ironbench import units
from ironbench.model.note import NoteRange
from ironbench.stats.intervals import LEVEL
from ironbench.words import counted, grouped, in_percent, percents, some

Number = float | NoteRange
Strings = str | Sequence[str]

CI = f"{in_percent(1 - LEVEL)} CI"
"""Name of confidence intervals that are not corrected for multiple comparisons: `95% CI`."""


def low_to_high(value: Number, written: Callable[[float], str]) -> str:
    """Formats a number, or a range of numbers: `8 s`, `8 s to 12 s`."""
    if not isinstance(value, NoteRange):
        return written(value)
    low, high = written(value.low), written(value.high)
    return low if low == high else f"{low} to {high}"


def percent(value: Number, *limits: float) -> str:
    """Formats a fraction as a percentage: `12%`, or `5 to 12%`. A value close to one of the `limits` has more digits,
    so that readers see on which side of the limit it is."""
    if isinstance(value, NoteRange):
        low, high = percents(value.low, limits=limits), percents(value.high, limits=limits)
        return f"{low} to {in_percent(value.high, limits=limits)}" if low != high else in_percent(value.high, limits)
    return in_percent(value, limits=limits)


def is_multiple(ratio: float) -> bool:
    """Returns whether a ratio is formatted as a multiple, such as `2.38x`. This form is easier to read than an increase
    by 100% or more."""
    return ratio >= 2


def sized(ratio: float, more: str, less: str, multiple: str) -> str:
    """Formats a ratio as a change: `26% more`, `2.38x as much`. The parameters are the words after an increase, a
    decrease and a multiple."""
    if is_multiple(ratio):
        return f"{units.number(ratio)}x {multiple}"
    return f"{in_percent(abs(ratio - 1))} {more if ratio >= 1 else less}"


def count(value: Number, one: str, many: str = "") -> str:
    """Formats a count: `3 trials`, or `3 to 5 trials`."""
    if isinstance(value, NoteRange):
        low, high = grouped(value.low), grouped(value.high)
        return f"{low} to {counted(value.high, one, many)}" if low != high else counted(value.high, one, many)
    return counted(value, one, many)


def number(value: Number) -> str:
    """Formats a number: `3`, or `3 to 5`."""
    return low_to_high(value, grouped)


def agreed(value: Number, one: str = "was", many: str = "were") -> str:
    """Returns the form of a verb that agrees with a number: `was` for 1, `were` for `0`, `3` and `1 to 3`."""
    return one if number(value) == "1" else many


def span(value: Number) -> str:
    return low_to_high(value, units.span)


def size(value: Number) -> str:
    return low_to_high(value, units.stored)


def in_unit(value: float, unit: str, digits: int = 3) -> str:
    """Formats the value of a metric: `1.44 s`, `52.6 ms`, `500/s`. Unlike `report.numbers.quantity`, this function
    needs no table of units."""
    if unit == "s":
        return f"{value:.{digits}g} s" if value >= 0.9995 else f"{value * 1e3:.{digits}g} ms"
    if unit == "1/s":
        return units.rate(value)
    return f"{value:.{digits + 1}g}" if unit == "1" else f"{value:.{digits + 1}g} {unit}"


def per_second(value: Number) -> str:
    return low_to_high(value, units.rate)


def highest(value: Number) -> float:
    return value.high if isinstance(value, NoteRange) else value


def strings(value: Strings) -> tuple[str, ...]:
    """Returns the strings that are not empty."""
    return tuple(filter(None, (value,) if isinstance(value, str) else value))


def names(value: Strings) -> str:
    """Lists the strings. If there are many, lists only the first ones and states how many more there are."""
    return some(strings(value))


def either(value: Strings, otherwise: str) -> str:
    """Returns the first string, or `otherwise` if there is none. Used for strings that are usually equal in all trials,
    such as the name of a unit of work."""
    return next(iter(strings(value)), otherwise)
