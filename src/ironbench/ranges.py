"""Ranges of numbers, sizes and times that users enter."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ironbench import units
from ironbench.errors import InputError, quoted
from ironbench.words import MINUS, grouped


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `low` to `high`, both included. If `above` is true, `low` is excluded."""

    low: float
    high: float
    unit: str = ""
    """Unit of the values: `s`, `bytes`, or "" for plain numbers."""
    above: bool = False
    whole: bool = False
    example: str = ""
    note: str = ""
    """Explanation that is shown to a user whose value is out of range."""

    def require(self, subject: str, value: float) -> None:
        """Raises InputError if the value is outside the range; NaN is always outside."""
        if (self.low < value if self.above else self.low <= value) and value <= self.high:
            return
        cause = f"{in_words(value, self.unit)} is out of range"
        raise InputError(subject, cause, f"possible values: {self}" + (f" ({self.note})" if self.note else ""))

    def read(self, subject: str, written: str | float) -> float:
        """Returns the value in base units: seconds, whole bytes, or a number. Raises InputError if the text is not a
        number or the number is out of range."""
        if self.unit == "s":
            value: float = units.seconds(subject, written)
        elif self.unit == "bytes":
            value = units.size(subject, written)
        else:
            value = self.number(subject, written)
        self.require(subject, value)
        return value

    def number(self, subject: str, written: str | float) -> float:
        """Parses a number without a unit. Does not check the range. Raises InputError if the text is not a number. If
        `whole` is true, also raises InputError if the number is not whole."""
        try:
            return int(written) if self.whole else float(written)
        except (ValueError, OverflowError):
            cause = f"{quoted(str(written))} is not a {'whole ' * self.whole}number"
            option = f"{subject} " if subject.startswith("--") else ""
            raise InputError(subject, cause, f"write for example {option}{self.example}") from None

    def __str__(self) -> str:
        low, high = in_words(self.low, self.unit), in_words(self.high, self.unit)
        return f"above {low}, at most {high}" if self.above else f"{low} to {high}"


def in_words(value: float, unit: str = "") -> str:
    """Formats a value of a range, such as `10 000`, `1GiB` or `30 s`."""
    if not math.isfinite(value) or abs(value) > 1e21:
        return f"{value:g}" if isinstance(value, float) else "a number with this many digits"
    if unit == "bytes":
        return f"{value:g} bytes" if value < 1 else units.exact(int(value))
    if unit == "s":
        return f"{value:g} s" if value < 3600 else units.span(value)
    return grouped(int(value)).replace(MINUS, "-") if value == round(value) else f"{value:g}"


DAY_S = 86400.0
YEAR_S = 366 * DAY_S
MOST_BYTES = float(2**50)
MOST_WHOLE = 2**63 - 1
"""The largest whole number that TOML and the core can represent."""
