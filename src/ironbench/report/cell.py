"""Cells of tables. A cell contains a value with its unit and uncertainty. Only output formats convert cells to text,
and no code parses this text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ironbench.model.record import Record
from ironbench.report.numbers import NOT_KNOWN, base_unit, range_text, written
from ironbench.stats.intervals import LEVEL
from ironbench.study.subjects import failed_share
from ironbench.study.summarise import Summary

CONFIDENCE = 1 - LEVEL
"""Confidence level of intervals that are not corrected for multiple comparisons."""
ESTIMATE = "≈"
"""Character that is written before a number if the number is an estimate or is derived from one."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """A table cell with a value, a range of values, or both."""

    value: float | None = None
    """The value in base units, or None if the cell shows only a range."""
    unit: str = "1"
    """Unit of the value. `numbers.written` defines the units."""
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    """Level of the confidence interval from `low` to `high`. The value is None if `low` and `high` are not a confidence
    interval, but the smallest and the largest measured value."""
    signed: bool = False
    """Whether a plus sign is shown before a positive value."""
    estimate: bool = False
    """Whether the value is an estimate or is derived from one."""
    bare: bool = False
    """Whether the cell omits the unit because it is shown elsewhere, for example in the column's head."""
    note: str = ""
    """A remark about the value, which is shown after it in parentheses."""

    @property
    def alone(self) -> TableCell:
        """Returns the value without its range."""
        return replace(self, low=None, high=None, confidence=None)

    @property
    def range(self) -> TableCell:
        """Returns the range without its value."""
        return replace(self, value=None)

    @property
    def base(self) -> str:
        """The base unit of `value`, `low` and `high`."""
        return base_unit(self.unit)


@dataclass(frozen=True, slots=True)
class Missing:
    """A cell without a value, in a column where other cells have one."""

    words: str = "–"
    """Text that is shown instead of a value."""


ABSENT, EMPTY, UNKNOWN = Missing(), Missing(""), Missing(NOT_KNOWN)
Content = str | TableCell | Missing
"""The content of one table cell. If it is text, it is a name or a word, never a formatted number."""
Row = tuple[Content, ...]


def cell_text(content: Content) -> str:
    """Formats a cell for people, such as `12.3 ms (11.0 to 14.0 ms, 2% failed)`."""
    if isinstance(content, str):
        return content
    if isinstance(content, Missing):
        return content.words
    low, high = content.low, content.high
    bounds = "" if low is None or high is None else range_text(low, high, content.unit, bare=content.bare)
    first, rest = (bounds, "") if content.value is None and bounds else (_value(content), bounds)
    beside = ", ".join(filter(None, (rest, content.note)))
    return f"{ESTIMATE if content.estimate else ''}{first}{f' ({beside})' if beside else ''}"


def _value(content: TableCell) -> str:
    value = content.value
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    figure, unit = written(value, content.unit)
    return f"{'+' if content.signed and value > 0 else ''}{figure}{'' if content.bare else unit}"


def typed(content: Content) -> Any:
    """Converts a cell for programs. Text stays unchanged, and a number comes with its unit. A missing value becomes
    None or the reason why it is missing."""
    if isinstance(content, str):
        return content
    if isinstance(content, Missing):
        return None if content in (ABSENT, EMPTY) else {"missing": content.words}
    fields = {name: getattr(content, name) for name in ("value", "low", "high", "confidence")}
    known = {name: value for name, value in fields.items() if value is not None and math.isfinite(value)}
    words = {"note": content.note} if content.note else {}
    return {**known, "unit": content.base, **({"estimate": True} if content.estimate else {}), **words}


def centre(summary: Summary | None, unit: str) -> TableCell | Missing:
    """Returns a summary's centre without its range."""
    return UNKNOWN if summary is None else TableCell(summary.centre, unit)


def spread(summary: Summary, unit: str) -> TableCell | Missing:
    """Returns a cell with the range of the repeats and without their centre."""
    if summary.n == 1:
        return Missing("n=1: no range")
    return TableCell(None, unit, summary.low, summary.high)


def with_range(summary: Summary, unit: str, note: str = "") -> TableCell:
    """Returns a cell with the centre. If there are several repeats, the cell also contains their range."""
    if summary.n == 1:
        return TableCell(summary.centre, unit, note=note)
    return TableCell(summary.centre, unit, summary.low, summary.high, note=note)


def centre_with_range(summary: Summary | None, unit: str) -> TableCell | Missing:
    """Returns a cell with the centre. If the repeats differ, the cell also contains their range. The value is unknown
    if there is no summary."""
    if summary is None:
        return UNKNOWN
    return with_range(summary, unit) if summary.high > summary.low else TableCell(summary.centre, unit)


def ratios(columns: Sequence[Mapping[str, Summary]], metric: str) -> list[TableCell | Missing]:
    """Returns a cell for each system except the first, with its ratio to the first system. `columns`: the metrics of
    each system."""
    first = columns[0].get(metric)
    return [
        TableCell(other.centre / first.centre, "times")
        if first and first.centre and (other := column.get(metric))
        else ABSENT
        for column in columns[1:]
    ]


def count(number: float, note: str = "") -> TableCell:
    """Returns a cell with a whole number and no unit."""
    return TableCell(number, "count", note=note)


def failed(trials: Sequence[Record]) -> TableCell | Missing:
    """Returns a cell with the fraction of transactions that failed, over all trials. If failures were not counted, the
    cell has no value."""
    share = failed_share(trials)
    return ABSENT if share is None else TableCell(share, "failed") if share else count(0)
