"""Counters that are read only at the start and the end of the measured window. Only the difference is used."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ironbench.model.observation import Sample

_ESCAPED = re.compile(r"\\(.)")
_MEANT = {"t": "\t", "n": "\n", "r": "\r"}
_PATIENCE_S = 2.0
"""Maximum number of seconds between the end of the window and its last reading. The core waits this long for the
reading."""


@dataclass(frozen=True, slots=True)
class WindowEnds:
    first: Sample
    last: Sample

    PERIOD_S: ClassVar[float] = 1e6
    """Sampling period in seconds. The period is longer than any trial, so that no sample is taken during the window.
    The core still reads the source at the start and the end of the window."""

    @staticmethod
    def of(samples: Sequence[Sample], window_s: float) -> WindowEnds | None:
        """Returns the readings that are nearest to the start and the end of the window. Returns None if one of them is
        missing."""
        first = [one for one in samples if one.t_s < window_s / 2]
        last = [one for one in samples if window_s / 2 <= one.t_s <= window_s + _PATIENCE_S]
        if not first or not last:
            return None
        return WindowEnds(min(first, key=lambda one: abs(one.t_s)), min(last, key=lambda one: abs(one.t_s - window_s)))


def fields(sample: Sample) -> Iterator[list[str | None]]:
    """Returns the rows of a reading in COPY's text format, as the core writes them."""
    for line in sample.raw.decode("utf-8", "replace").splitlines():
        yield [None if text == r"\N" else _plain(text) for text in line.split("\t")]


def counters(sample: Sample, keys: int, width: int) -> dict[tuple[str, ...], list[float]]:
    """Maps the first `keys` columns of each row to the other columns as numbers. Skips malformed rows."""
    counters = {}
    for row in fields(sample):
        if len(row) == keys + width:
            with contextlib.suppress(ValueError):
                counters[tuple(text or "" for text in row[:keys])] = [number(text) for text in row[keys:]]
    return counters


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), text) if "\\" in text else text


def number(text: str | None) -> float:
    return float(text) if text else 0.0
