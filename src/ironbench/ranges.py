"""The range of every quantity that a user may state: options, fields of lab files, price sheets, models of devices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ironbench import units
from ironbench.errors import InputError, quoted
from ironbench.words import MINUS, grouped


@dataclass(frozen=True, slots=True)
class Range:
    """From `low` to `high`, both included; `above`: `low` itself is excluded."""

    low: float
    high: float
    unit: str = ""
    """`s`, `bytes`, or none."""
    above: bool = False
    whole: bool = False
    example: str = ""
    note: str = ""
    """What a user should know who missed it."""

    def require(self, subject: str, value: float) -> None:
        """InputError for a value outside, with what is possible. NaN is outside."""
        if (self.low < value if self.above else self.low <= value) and value <= self.high:
            return
        cause = f"{in_words(value, self.unit)} is out of range"
        raise InputError(subject, cause, f"{self} is possible" + (f": {self.note}" if self.note else ""))

    def __str__(self) -> str:
        low, high = in_words(self.low, self.unit), in_words(self.high, self.unit)
        return f"above {low}, at most {high}" if self.above else f"{low} to {high}"


def in_words(value: float, unit: str = "") -> str:
    """A value of a range as people write it: `10 000`, `1GiB`, `30 s`."""
    if not math.isfinite(value) or abs(value) > 1e21:
        return f"{value:g}" if isinstance(value, float) else "a number of so many digits"
    if unit == "bytes":
        return f"{value:g} bytes" if value < 1 else units.exact(int(value))
    if unit == "s":
        return f"{value:g} s" if value < 3600 else units.span(value)
    return grouped(int(value)).replace(MINUS, "-") if value == round(value) else f"{value:g}"


_YEAR_S, _DAY_S = 366 * 86400.0, 86400.0
_MOST_BYTES = float(2**50)
_MOST_WHOLE = 2**63 - 1
"""What TOML and the core can hold."""

RANGES = {
    # How hard a trial drives.
    "clients": Range(1, 10_000, whole=True, example="8"),
    "threads": Range(1, 1024, whole=True, example="2"),
    "workers": Range(0, 1000, whole=True, example="4"),
    "rate": Range(0.001, 1e9, example="500", note="transactions per second; a closed loop has no rate"),
    "duration": Range(0.001, _YEAR_S, "s", example="30s", note="a trial needs time to measure"),
    "transactions": Range(1, 10**15, whole=True, example="1000"),
    "warmup": Range(0.0, _YEAR_S, "s", example="5s"),
    "think_time": Range(0.0, _DAY_S, "s", example="10ms"),
    "reconnect": Range(0, 10**9, whole=True, example="1", note="transactions of a connection; 0 keeps connections"),
    "max_tries": Range(0, 2**31 - 1, whole=True, example="3", note="1 never retries, 0 retries without limit"),
    "command_limit": Range(0.0, _DAY_S, "s", above=True, example="2m"),
    "checkpoint": Range(0.0, _DAY_S, "s", above=True, example="10s"),
    "seed": Range(0, _MOST_WHOLE, whole=True, example="1"),
    # The system.
    "memory": Range(1, _MOST_BYTES, "bytes", example="1GB"),
    "memory_total": Range(1, _MOST_BYTES, "bytes", example="2GB"),
    "capacity": Range(1, _MOST_BYTES, "bytes", example="8GB"),
    "size": Range(16 * 2**20, _MOST_BYTES, "bytes", example="1GiB"),
    "parallelism": Range(1, 1024, whole=True, example="2"),
    "reference_score": Range(0.0, 1e12, above=True, example="31.5"),
    "progress": Range(1, 86400, whole=True, example="5"),
    # A lab, a run, a comparison.
    "repeats": Range(1, 10_000, whole=True, example="6"),
    "blocks": Range(6, 10_000, whole=True, example="12", note="fewer carry no verdict"),
    "stages": Range(1, 10_000, whole=True, example="2"),
    "margin": Range(0.0, 1.0, above=True, example="0.05", note="a share; 0.05 is 5 %"),
    "quiet": Range(0.0, _DAY_S, "s", example="30s"),
    "slice": Range(0.2, 60.0, "s", example="1s"),
    "budget": Range(0.0, _YEAR_S, "s", above=True, example="15m"),
    "limit": Range(0.0, 1e18, above=True, example="0.8"),
    "response_time": Range(0.0, _DAY_S, "s", above=True, example="10ms"),
    # What things cost.
    "price": Range(0.0, 1e15, example="199.5"),
    "exchange_rate": Range(0.0, 1e12, above=True, example="1.08"),
    "pack": Range(1, 10**6, whole=True, example="2"),
    "cores": Range(1, 10**6, whole=True, example="8"),
    "least_cores": Range(0, 10**6, whole=True, example="4"),
    "share": Range(0.0, 1e6, above=True, example="0.6"),
    "sockets": Range(1, 10**6, whole=True, example="2"),
    "servers": Range(1, 10**6, whole=True, example="1"),
    "memory_gb": Range(0.0, 1e9, above=True, example="64"),
    "storage_tb": Range(0.0, 1e9, example="2"),
    "watts": Range(0.0, 1e9, example="300"),
    "years": Range(0.0, 100.0, above=True, example="3"),
    "score": Range(0.0, 1e15, above=True, example="5000"),
    # A model of a device: seconds, bytes, bytes per second, counts.
    "figure": Range(0.0, 1e18, example="7.5 ms"),
}
"""Quantity → its range. A field of a lab file and an option of the command line have the name of their quantity."""


def read(quantity: str, subject: str, written: str | float) -> float:
    """What was written, in base units: seconds, bytes (whole), a number. InputError: no number, or out of range."""
    known = RANGES[quantity]
    readers: dict[str, Callable[[str, str | float], float]] = {"s": units.seconds, "bytes": units.size}
    if known.unit:
        value = readers[known.unit](subject, written)
    else:
        try:
            value = int(written) if known.whole else float(written)
        except (ValueError, OverflowError):
            cause = f"{quoted(str(written))} is not a {'whole ' * known.whole}number"
            option = f"{subject} " if subject.startswith("--") else ""
            raise InputError(subject, cause, f"write for example {option}{known.example}") from None
    known.require(subject, value)
    return value
