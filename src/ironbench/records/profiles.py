"""The file with the sampled stacks of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import msgspec
import numpy as np

from ironbench.model.profile import MOST_FRAMES, SampledStack
from ironbench.records import parquet

_COLUMNS = tuple(field.name for field in fields(SampledStack))
_LONGEST_STACK = 64 * 1024
"""Maximum number of characters of a stack."""


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
