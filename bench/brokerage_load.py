"""Measures how fast one thread generates rows of the brokerage tables, and compares a load with `psql \\copy` of the
same rows from files."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from bench.figures import at_least, report
from bench.loading import CONNECTIONS, by_psql, by_us, files
from bench.pairs import interleaved, ratio
from bench.peers import postgres
from ironbench import _core
from ironbench.workloads import Dataset
from ironbench.workloads.brokerage import tables

OPTIONS = {"customers": "1000", "days": "10", "lob": "small", "references": "no"}
RUNS = 3
PAIRS = 10
ASKED = 400_000
"""Target: rows per second and core."""


def main() -> None:
    dataset = tables.dataset("postgres", OPTIONS)
    what = f"{OPTIONS['customers']} customers × {OPTIONS['days']} days"
    _generation(dataset, what)
    with postgres(8, "script", {}) as session, tempfile.TemporaryDirectory() as folder:
        scripts = files(dataset, Path(folder), _columns(dataset))
        ours, psql = interleaved(PAIRS, lambda: by_us(session, dataset), lambda: by_psql(session, dataset, scripts))
    report(
        f"{what}, load rate / psql \\copy of ready files, {CONNECTIONS} connections",
        ratio(psql, ours),
        at_least(0.95, "lower end ≥ 0.95"),
    )


def _columns(dataset: Dataset) -> dict[str, str]:
    """Returns the columns of each table in the order of its definition, which is also the order of the generator."""
    found = {}
    for statement in dataset.schema:
        name, columns = statement.removeprefix("create table ").removesuffix("\n)").split(" (\n")
        found[name] = ", ".join(line.split()[0] for line in columns.splitlines())
    return found


def _generation(dataset: Dataset, what: str) -> None:
    rows, best = 0, float("inf")
    for _ in range(RUNS):
        begin = time.process_time()
        rows = _made(dataset)
        best = min(best, time.process_time() - begin)
    rate = rows / best
    report(f"{what}, {rows:,} rows made per s and core", rate, at_least(ASKED, f"≥ {ASKED:,}"), f"{rate:,.0f}")


def _made(dataset: Dataset) -> int:
    """Returns the number of rows that one thread generates in PostgreSQL's binary COPY format, without storing them."""
    plan = {"engine": {"kind": "null"}, "generator": dataset.generator, "connections": 1}
    loaded = json.loads(_core.load_rows(json.dumps(plan).encode(), _core.LoadProgress()))
    return int(loaded["rows"])
