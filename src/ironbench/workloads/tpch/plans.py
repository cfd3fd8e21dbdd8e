"""How an engine means to run the queries, and how it did: asked in a pass of its own, after the measured window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.model.session import Line
from ironbench.workloads.tpch import texts

DEPTHS = ("no", "shape", "measured")
_PAGE_BYTES = 8192
"""PostgreSQL's block size (`block_size`)."""
_EXPLAIN = {
    ("postgres", "shape"): "EXPLAIN (SETTINGS, SUMMARY, FORMAT JSON) ",
    ("postgres", "measured"): "EXPLAIN (ANALYZE, BUFFERS, SETTINGS, FORMAT JSON) ",
    ("duckdb", "shape"): "EXPLAIN ",
    ("duckdb", "measured"): "EXPLAIN ANALYZE ",
    ("sqlite", "shape"): "EXPLAIN QUERY PLAN ",
    ("sqlite", "measured"): "EXPLAIN QUERY PLAN ",
}
"""SQLite has no plan with times outside its shell."""


@dataclass(frozen=True, slots=True)
class Explained:
    query: int
    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Written to temporary files."""

    def metrics(self) -> dict[str, float]:
        part = f"{{query={texts.name(self.query)}}}"
        found = {}
        if self.planning_s is not None:
            found[f"planning_time_s{part}"] = self.planning_s
        if self.spill_bytes:
            found[f"spill_bytes{part}"] = self.spill_bytes
        return found


def explained(line: Line, engine: str, query: int, sql: str, depth: str) -> Explained:
    """`measured` runs the query. FailureError."""
    rows = line.query(_EXPLAIN[engine, depth] + sql)
    if engine != "postgres":
        return Explained(query, "\n".join(" ".join(value or "" for value in row) for row in rows))
    text = "".join(row[0] or "" for row in rows)
    plan: dict[str, Any] = json.loads(text)[0]
    planning_ms = plan.get("Planning Time")
    written = plan["Plan"].get("Temp Written Blocks")
    return Explained(
        query,
        text,
        None if planning_ms is None else planning_ms / 1000,
        None if written is None else float(written * _PAGE_BYTES),
    )


def file(found: Sequence[Explained]) -> str:
    """All plans as one text."""
    return "\n".join(f"-- {texts.name(one.query)}: {texts.about(one.query)}\n{one.text}\n" for one in found)
