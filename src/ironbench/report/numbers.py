"""Numbers as people read them: three significant digits and a fitting unit."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ironbench import units
from ironbench.analyse.subjects import failed_percent, failed_share
from ironbench.analyse.summarise import Summary
from ironbench.catalogue import base_name, metrics
from ironbench.model.record import Record
from ironbench.words import MINUS, THIN, in_percent, percents

NOT_KNOWN = "not known"
MERIT = "queries/h × SF"
"""Unit of TPC-H's figures of merit."""
_QUANTITY = re.compile(rf"([+{MINUS}-]?\d[\d{THIN}]*(?:\.\d+)?)[{THIN} ]?((?:%|×|[a-zA-Zµ][^\d()]*)?(?:/s)?)")
_SECONDS = {**dict(units.TIME), "min": 60.0}


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands in groups: 1234567 → 1 230 000; 0.01234 → 0.0123."""
    return units.number(value, digits) if math.isfinite(value) else NOT_KNOWN


def quantity(value: float | None, unit: str) -> str:
    """A value in base units with a fitting unit: (0.0123, "s") → 12.3 ms."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN
    if unit == "s":
        return units.scaled(value, units.TIME)
    if unit == "memory":
        return units.memory(value)
    if unit in ("bytes", "bytes/s"):
        return units.stored(value) + ("/s" if unit == "bytes/s" else "")
    if unit == "1/s":
        return f"{number(value)}/s"
    if unit == "share":
        return in_percent(value)
    return number(value) if unit == "1" else f"{number(value)}{THIN}{unit}"


def signed(seconds: float) -> str:
    sign = "+" if seconds > 0 else "−" if seconds < 0 else ""
    return sign + quantity(abs(seconds), "s")


def failed(trials: Sequence[Record]) -> str:
    """Failed transactions of all trials together; `–` where nobody counted."""
    share = failed_share(trials)
    return "–" if share is None else failed_percent(share) if share else "0"


def with_failed(trials: Sequence[Record]) -> str:
    """`, 2 % failed`, to follow a rate; empty where none failed, or nobody counted."""
    share = failed_share(trials)
    return f", {failed_percent(share)} failed" if share else ""


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


def between(low: float, high: float, unit: str) -> str:
    """Two values in one unit."""
    if unit == "share":
        return f"{percents(low)} to {in_percent(high)}"
    suffix, factor = scale(unit, [low, high])
    return f"{number(low / factor)} to {number(high / factor)}{_gap(suffix)}{suffix}"


def base_value(text: str) -> tuple[float, str] | None:
    """What a cell shows, in its base unit, as far as its digits go: `12.3 ms (11 to 14 ms)` → (0.0123, "s"), `2.34 ×` →
    (2.34, "1"), `7` → (7, "") where the column's head says the unit. None: it is no quantity."""
    match = _QUANTITY.fullmatch(text.partition(" (")[0].strip())
    if match is None:
        return None
    value = float(match[1].replace(THIN, "").replace(MINUS, "-"))
    name, per_second = match[2].removesuffix("/s"), match[2].endswith("/s")
    if not name:
        return value, "1/s" if per_second else ""
    for factors, unit in ((_SECONDS, "s"), (dict((*units.BINARY, *units.DECIMAL)), "bytes")):
        if name in factors and not (per_second and unit == "s"):
            return value * factors[name], f"{unit}/s" if per_second else unit
    if name == "%" and not per_second:
        return value / 100, "1"
    return (value, "1") if name == "×" else (value, match[2]) if match[2] == MERIT else None


def times(ratio: float | None) -> str:
    return NOT_KNOWN if ratio is None else f"{number(ratio)}{THIN}×"


def ratios(columns: Sequence[Mapping[str, Summary]], metric: str) -> list[str]:
    """Of each further column, of a system each, to the first."""
    first = columns[0].get(metric)
    return [
        times(other.centre / first.centre) if first and first.centre and (other := column.get(metric)) else "–"
        for column in columns[1:]
    ]


def scale(unit: str, values: Sequence[float]) -> tuple[str, float]:
    """The unit to show `values` in and what to divide them by; chosen by the largest."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if unit == "s":
        return units.chosen(most, units.TIME)
    if unit in ("bytes", "bytes/s"):
        name, factor = units.chosen(most, units.DECIMAL)
        return name + ("/s" if unit == "bytes/s" else ""), factor
    if unit == "share":
        return "%", 0.01
    return ("/s", 1.0) if unit == "1/s" else ("" if unit == "1" else unit, 1.0)


def _gap(suffix: str) -> str:
    return "" if suffix.startswith("/") or not suffix else THIN
