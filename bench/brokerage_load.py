"""Making the brokerage's rows: how many per second of processor time one thread generates, of each table and of all."""

from __future__ import annotations

import json
import time

from bench.figures import at_least, said
from ironbench import _core

CUSTOMERS, DAYS = 1000, 10
RUNS = 3
ASKED = 400_000
"""Rows per second and core."""


def main() -> None:
    rows, best = 0, float("inf")
    for _ in range(RUNS):
        begin = time.process_time()
        rows = _made()
        best = min(best, time.process_time() - begin)
    said(
        f"{rows:,} rows of {CUSTOMERS:,} customers and {DAYS} days, rows/s per core",
        rows / best,
        at_least(ASKED, f"≥ {ASKED:,}"),
        f"{rows / best:,.0f}",
    )


def _made() -> int:
    """Rows that one thread makes, in the form of PostgreSQL's binary COPY, and forgets."""
    plan = {
        "engine": {"kind": "null"},
        "generator": {"rows": "brokerage", "customers": CUSTOMERS, "days": DAYS, "lob": "none", "seed": 0},
        "connections": 1,
    }
    loaded = json.loads(_core.load_rows(json.dumps(plan).encode(), _core.LoadProgress()))
    return int(loaded["rows"])
