"""The file with the sampled stacks of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ironbench.model.profile import MOST_FRAMES, SampledStack
from ironbench.records import parquet
from ironbench.words import cut

if TYPE_CHECKING:
    from ironbench._core import Profile

_COLUMNS = tuple(field.name for field in fields(SampledStack))
_LONGEST_STACK = 64 * 1024
"""Maximum number of characters of a stack."""
_LONGEST_NAME = 400
"""Maximum number of characters of a frame. Names of C++ templates are cut to this length."""


def write_profile(path: Path, stacks: Sequence[SampledStack]) -> None:
    """Writes one row per stack, with the fields of `SampledStack` as columns. Raises OSError."""
    table = {}
    for name in _COLUMNS:
        kind = {"samples": "i8", "seconds": "f8"}.get(name, "O")
        table[name] = np.array([getattr(one, name) for one in stacks], dtype=kind)
    parquet.write_table(path, table)


def read_profile(path: Path) -> tuple[SampledStack, ...]:
    """Reads and validates the stacks. Raises ValueError if the file has other columns or impossible values."""
    table = parquet.read_table(path)
    if tuple(table) != _COLUMNS:
        raise ValueError(f"has the columns {', '.join(table)[:200]} instead of {', '.join(_COLUMNS)}")
    if any(isinstance(column, np.ma.MaskedArray) for column in table.values()):
        raise ValueError("has missing values")
    rows = [
        dict(zip(_COLUMNS, row, strict=True)) for row in zip(*(table[name].tolist() for name in _COLUMNS), strict=True)
    ]
    stacks = msgspec.convert(rows, tuple[SampledStack, ...])
    for one in stacks:
        for text in (one.stack, one.waker):
            if len(text) > _LONGEST_STACK or text.count(";") >= MOST_FRAMES or not text.isprintable():
                raise ValueError(f"has the stack {text[:40]!r}…, which is too long or not printable")
    return stacks


def stacks(profile: Profile) -> tuple[SampledStack, ...]:
    """Converts the samples of a trial so that `read_profile` accepts the file: replaces control characters in names,
    shortens long names, and keeps only the innermost frames of deep stacks."""
    columns = (profile.kind, profile.role, map(_printable, profile.thread), profile.reason)
    texts = (map(_limited, profile.stack), map(_limited, profile.waker))
    return tuple(map(SampledStack, *columns, *texts, profile.samples, profile.seconds))


def _limited(stack: str) -> str:
    return ";".join(cut(_printable(frame), _LONGEST_NAME) for frame in stack.split(";")[-MOST_FRAMES:])


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)
