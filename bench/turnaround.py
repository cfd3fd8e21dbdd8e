"""Measures the time from the last byte of an answer to the submission of the next query in the streams of tpch, by size
of the answer."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from bench.figures import at_most, report
from ironbench import engines
from ironbench.model.system import Layout, System
from ironbench.workloads.tpch import streams
from ironbench.workloads.tpch.streams import Query, Stream

QUERIES = {1: 60, 20_000: 60, 1_000_000: 12}
"""Rows of each answer → number of queries."""
LONGEST_US = 200.0
NUMBERS = {
    "postgres": "SELECT n, repeat('x', 50) FROM generate_series(1, {rows}) AS s(n)",
    "duckdb": "SELECT range, repeat('x', 50) FROM range({rows})",
    "sqlite": "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {rows}) "
    "SELECT n, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' FROM s",
}


def main() -> None:
    for name, sql in NUMBERS.items():
        with tempfile.TemporaryDirectory() as folder:
            system = System(name, name, layout=Layout(str(Path(folder) / "data")))
            system, secrets = engines.get(name).validated(system, 1)
            with engines.running(system, secrets, 1) as session:
                line = session.line()
                for rows, queries in QUERIES.items():
                    stream = Stream(0, [Query("q01", sql.format(rows=rows), line, 60.0)] * queries)
                    streams.run([stream], lambda: False, lambda done, running: None)
                    gaps_us = sorted(gap * 1e6 for gap in streams.gaps_s(stream.ran))
                    assert all(one.rows == rows for one in stream.ran)
                    middle = statistics.median(gaps_us)
                    shown = f"{middle:.0f} µs (p90 {gaps_us[int(len(gaps_us) * 0.9)]:.0f})"
                    report(f"{name}, after {rows} rows, median", middle, at_most(LONGEST_US, "≤ 200 µs"), shown)
                line.close()
