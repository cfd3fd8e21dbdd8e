"""Cells of tables: a value with its unit and uncertainty. Output formats write them; nothing reads them back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ironbench.model.record import Record
from ironbench.report.numbers import NOT_KNOWN, base_unit, between, written
from ironbench.study.subjects import failed_share
from ironbench.study.summarise import Summary

ESTIMATE = "≈"
"""Precedes every number that is an estimate or rests on one."""
CONFIDENCE = 0.95
"""Confidence of the intervals that do not share their chance of error with others."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value in base units, a range of values, or a value with its range."""

    value: float | None = None
    """None: the cell shows its range alone."""
    unit: str = "1"
    """A unit of `numbers.written`."""
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    """Of the interval from `low` to `high`; None: they are the smallest and largest of the values seen."""
    signed: bool = False
    """Whether a value above zero has a plus sign."""
    estimate: bool = False
    """Whether it is an estimate or rests on one."""
    bare: bool = False
    """Whether the unit stands elsewhere, such as in the column's head."""
    note: str = ""
    """Words that belong to the value; they follow it in brackets."""

    @property
    def alone(self) -> TableCell:
        """The value without its range."""
        return replace(self, low=None, high=None, confidence=None)

    @property
    def range(self) -> TableCell:
        """The range without its value."""
        return replace(self, value=None)

    @property
    def base(self) -> str:
        """The unit of `value`, `low` and `high`."""
        return base_unit(self.unit)


@dataclass(frozen=True, slots=True)
class Missing:
    """No value where others of the column have one."""

    words: str = "–"
    """What is shown instead."""


ABSENT, EMPTY, UNKNOWN = Missing(), Missing(""), Missing(NOT_KNOWN)
Content = str | TableCell | Missing
"""What a table shows at one place; text is a name or a word, never a formatted number."""
Row = tuple[Content, ...]


def shown(content: Content) -> str:
    """The cell as people read it: `12.3 ms (11.0 to 14.0 ms, 2 % failed)`."""
    if isinstance(content, str):
        return content
    if isinstance(content, Missing):
        return content.words
    bounds = "" if content.low is None or content.high is None else _range(content, content.low, content.high)
    first, rest = (bounds, "") if content.value is None and bounds else (_value(content), bounds)
    beside = ", ".join(filter(None, (rest, content.note)))
    return f"{ESTIMATE if content.estimate else ''}{first}{f' ({beside})' if beside else ''}"


def _value(content: TableCell) -> str:
    value = content.value
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    figure, unit = written(value, content.unit)
    return f"{'+' if content.signed and value > 0 else ''}{figure}{'' if content.bare else unit}"


def _range(content: TableCell, low: float, high: float) -> str:
    return between(low, high, content.unit, bare=content.bare)


def typed(content: Content) -> Any:
    """The cell for programs: text as it is, null or the reason where there is no value, else the numbers with their
    unit."""
    if isinstance(content, str):
        return content
    if isinstance(content, Missing):
        return None if content in (ABSENT, EMPTY) else {"missing": content.words}
    fields = {name: getattr(content, name) for name in ("value", "low", "high", "confidence")}
    known = {name: value for name, value in fields.items() if value is not None and math.isfinite(value)}
    words = {"note": content.note} if content.note else {}
    return {**known, "unit": content.base, **({"estimate": True} if content.estimate else {}), **words}


def centre(summary: Summary | None, unit: str) -> TableCell | Missing:
    """The centre without the range."""
    return UNKNOWN if summary is None else TableCell(summary.centre, unit)


def spread(summary: Summary, unit: str) -> TableCell | Missing:
    """The smallest and largest of the repeats without the centre."""
    if summary.n == 1:
        return Missing("n=1: no spread")
    return TableCell(None, unit, summary.low, summary.high)


def with_range(summary: Summary, unit: str, note: str = "") -> TableCell:
    """The centre with the range of the repeats, if there are several."""
    if summary.n == 1:
        return TableCell(summary.centre, unit, note=note)
    return TableCell(summary.centre, unit, summary.low, summary.high, note=note)


def ratios(columns: Sequence[Mapping[str, Summary]], metric: str) -> list[TableCell | Missing]:
    """The ratio of each further system to the first; `columns`: a system's metrics each."""
    first = columns[0].get(metric)
    return [
        TableCell(other.centre / first.centre, "times")
        if first and first.centre and (other := column.get(metric))
        else ABSENT
        for column in columns[1:]
    ]


def count(number: float, note: str = "") -> TableCell:
    """A whole number of things."""
    return TableCell(number, "count", note=note)


def failed(trials: Sequence[Record]) -> TableCell | Missing:
    """Failed transactions of all trials together; absent where nobody counted."""
    share = failed_share(trials)
    return ABSENT if share is None else TableCell(share, "failed") if share else count(0)
