"""Times of the SQL commands of scripts, as a file of a record: all of them, and their whole texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ironbench.model.record import Statement
from ironbench.model.redact import redacted_sql

TIMED = "statements.json"
_MOST = 10_000
_LONGEST = 100_000


def written(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as `measures.timed` has them, without passwords."""
    clean = [{**row, "text": redacted_sql(row["text"])} for row in rows]
    return msgspec.json.format(msgspec.json.encode(clean), indent=1)


def read(data: bytes) -> tuple[Statement, ...]:
    """ValueError, msgspec.MsgspecError."""
    statements = msgspec.json.decode(data, type=tuple[Statement, ...])
    if len(statements) > _MOST or any(len(one.text) > _LONGEST or len(one.script) > _LONGEST for one in statements):
        raise ValueError(f"holds more than {_MOST} statements, or a text of more than {_LONGEST} characters")
    for one in statements:
        if one.count < 0 or one.failed < 0 or not math.isfinite(one.mean_s + one.stdev_s) or one.mean_s < 0:
            raise ValueError(f"has impossible times of {one.script}, line {one.line}")
        if any(time is not None and not 0 <= time < math.inf for time in (one.p50_s, one.p95_s, one.p99_s)):
            raise ValueError(f"has impossible percentiles of {one.script}, line {one.line}")
    return statements
