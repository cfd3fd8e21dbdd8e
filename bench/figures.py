"""Measured results, their targets, and whether the targets are met."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Interval(Protocol):
    """A result with a confidence interval."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Between:
    """A ratio with its confidence interval."""

    ratio: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a result."""

    words: str
    holds: Callable[[float | Interval], bool]


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured result; `met` is None if there is no target."""

    bench: str
    what: str
    value: str
    target: str
    met: bool | None


FIGURES: list[Figure] = []
"""All results of this run, in order."""
_NAMES: list[str] = []


def at_most(limit: float, words: str = "") -> Target:
    """Returns the target for an upper bound; for a ratio, it applies to the upper end of the confidence interval."""
    return Target(words or f"≤ {limit:g}", lambda value: _high(value) <= limit)


def at_least(limit: float, words: str = "") -> Target:
    """Returns the target for a lower bound; for a ratio, it applies to the lower end of the confidence interval."""
    return Target(words or f"≥ {limit:g}", lambda value: _low(value) >= limit)


def above(limit: float) -> Target:
    """Returns the target for an exclusive lower bound; for a ratio, it applies to the lower end of the confidence
    interval."""
    return Target(f"> {limit:g}", lambda value: _low(value) > limit)


def within(low: float, high: float) -> Target:
    return Target(f"{low:g} to {high:g}", lambda value: low <= _low(value) and _high(value) <= high)


def not_above(limit: float) -> Target:
    """Returns the target that fails only if the whole confidence interval is above `limit`."""
    return Target(f"not above {limit:g}", lambda value: _low(value) <= limit)


def equal(wanted: float, words: str = "") -> Target:
    return Target(words or f"{wanted:g}", lambda value: _low(value) == wanted == _high(value))


def begin(name: str) -> None:
    """Assigns the following results to the benchmark `name`."""
    _NAMES.append(name)


def report(what: str, value: float | Interval | str, target: Target | str = "", shown: str = "") -> None:
    """Prints and stores a result. `shown`: formatted value, if the number is not enough.

    A target of type `Target` is tested against a number or an interval; a text is only shown.
    """
    met = None
    if isinstance(target, Target):
        assert not isinstance(value, str), what
        met = target.holds(value)
    expected = target.words if isinstance(target, Target) else target
    words = f"[target: {expected}]" if expected else ""
    figure = Figure(_NAMES[-1] if _NAMES else "", what, shown or _written(value), words, met)
    FIGURES.append(figure)
    print(f"{what:<66} {figure.value}   {words}{'  MISSED' if met is False else ''}".rstrip(), flush=True)


def report_median(what: str, values: Sequence[float], target: Target | str = "", digits: int = 2) -> None:
    """Prints and stores the median, with the number of values, their minimum and maximum."""
    middle, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    report(what, statistics.median(values), target, f"{middle} (median of {len(values)}, {low} to {high})")


def failed(what: str) -> None:
    """Records that a benchmark failed and therefore missed its targets."""
    FIGURES.append(Figure(_NAMES[-1], f"did not end: {what}", "–", "", False))


def table(figures: list[Figure]) -> str:
    """Formats all results as a table; missed targets are marked, and listed again at the end."""
    rows = [("benchmark", "result", "measured", "target", "")]
    marks = {True: "met", False: "MISSED", None: ""}
    rows += [(one.bench, one.what, one.value, one.target, marks[one.met]) for one in figures]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    missed = [one for one in figures if one.met is False]
    judged = sum(one.met is not None for one in figures)
    lines += ["", f"{len(figures)} results, {judged} of them with a target, {len(missed)} missed"]
    lines += [f"  missed: {one.bench}: {one.what}: {one.value} {one.target}".rstrip() for one in missed]
    return "\n".join(lines)


def _written(value: float | Interval | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _low(value: float | Interval) -> float:
    return value if isinstance(value, int | float) else value.low


def _high(value: float | Interval) -> float:
    return value if isinstance(value, int | float) else value.high
