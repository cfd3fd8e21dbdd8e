"""What the server said of a trial, as a file of its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from ironbench.model.inside import Inside
from ironbench.model.redact import redacted_sql

INSIDE = "inside.json"
_MOST = 500
"""Entries of each list."""
_LONGEST = 10_000


def written(inside: Inside) -> bytes:
    """Without passwords: a server shows statements without their values, but not all of them."""
    clean = replace(
        inside,
        statements=tuple(replace(one, text=redacted_sql(one.text)) for one in inside.statements),
        plans=tuple(
            replace(
                one,
                statement=redacted_sql(one.statement),
                text=redacted_sql(one.text),
                failed=redacted_sql(one.failed),
            )
            for one in inside.plans
        ),
        executed=tuple(
            replace(one, statement=redacted_sql(one.statement), text=redacted_sql(one.text)) for one in inside.executed
        ),
    )
    return msgspec.json.format(msgspec.json.encode(clean), indent=1)


def read(data: bytes) -> Inside:
    """ValueError, msgspec.MsgspecError."""
    inside = msgspec.json.decode(data, type=Inside)
    lists: tuple[Sequence[object], ...] = (
        inside.statements,
        inside.tables,
        inside.indexes,
        inside.plans,
        inside.missing,
    )
    if any(len(one) > _MOST for one in (*lists, inside.vacuums, inside.doubts, inside.executed)):
        raise ValueError(f"holds a list of more than {_MOST} entries")
    texts = [one.text for one in inside.statements] + [one.text for one in inside.plans]
    texts += [one.text for one in inside.executed]
    if any(len(text) > _LONGEST for text in texts):
        raise ValueError(f"holds a text of more than {_LONGEST} characters")
    return inside
