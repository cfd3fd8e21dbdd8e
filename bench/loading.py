"""Compares loading igen-oltp with `psql \\copy` of the same rows from ready files, over the same number of
connections."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.figures import at_least, report
from bench.pairs import interleaved, ratio
from bench.peers import BIN, postgres
from ironbench import _core, workloads
from ironbench.engines.postgres.session import PostgresSession
from ironbench.workloads import Dataset

PAIRS = 10
SCALE = "8"
CONNECTIONS = 2
COLUMNS = {
    "igen_order_line": "customer_id, order_no, line_no, quantity, product_id, price_cents",
    "igen_order": "total_cents, placed_at, customer_id, order_no, line_count, status",
    "igen_customer": "customer_id, region_id, name, email, street, city, since, spent_cents",
    "igen_product": "product_id, category_id, price_cents, name, description",
    "igen_stock": "product_id, region_id, quantity",
}


def main() -> None:
    workload = workloads.get("igen-oltp")
    dataset = workload.dataset("postgres", workload.validated({"scale": SCALE}))
    assert dataset is not None
    with postgres(8, "script", {}) as session, tempfile.TemporaryDirectory() as folder:
        scripts = files(dataset, Path(folder), COLUMNS)
        ours, psql = interleaved(PAIRS, lambda: by_us(session, dataset), lambda: by_psql(session, dataset, scripts))
    report(
        f"igen-oltp load rate / psql \\copy, {CONNECTIONS} connections, {dataset.rows:,} rows",
        ratio(psql, ours),
        at_least(0.95, "lower end ≥ 0.95"),
    )


def _fresh(session: PostgresSession, dataset: Dataset) -> None:
    for table in dataset.tables:
        session.query(f"drop table if exists {table} cascade")
    for statement in dataset.schema:
        session.query(statement)
    session.query("checkpoint")


def by_us(session: PostgresSession, dataset: Dataset) -> float:
    """Returns the seconds to load with ironbench, including the generation of rows."""
    _fresh(session, dataset)
    plan = {"engine": session.target(), "generator": dataset.generator, "connections": CONNECTIONS}
    start = time.monotonic()
    _core.load_rows(json.dumps(plan).encode(), _core.LoadProgress())
    return time.monotonic() - start


def by_psql(session: PostgresSession, dataset: Dataset, scripts: list[Path]) -> float:
    """Returns the seconds to load with one concurrent psql for each script."""
    _fresh(session, dataset)
    connection = session.target()["connection"]
    command = [
        str(BIN / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", connection["host"], "-p", str(connection["port"]),
        "-U", connection["user"], "-d", connection["database"],
    ]  # fmt: skip
    start = time.monotonic()
    running = [subprocess.Popen([*command, "-f", str(script)]) for script in scripts]
    failed = [process for process in running if process.wait()]
    if failed:
        raise RuntimeError("psql failed")
    return time.monotonic() - start


def files(dataset: Dataset, folder: Path, columns_of: Mapping[str, str]) -> list[Path]:
    """Writes the rows as text, with each table split into one part per connection, and a \\copy script for each
    connection."""
    scripts = [folder / f"{worker}.sql" for worker in range(CONNECTIONS)]
    commands: list[list[str]] = [[] for _ in scripts]
    for table, columns in columns_of.items():
        whole = folder / table
        _core.write_rows(json.dumps(dataset.generator).encode(), table, CONNECTIONS, str(whole))
        subprocess.run(["split", "-d", "-n", f"l/{CONNECTIONS}", whole, f"{whole}."], check=True)
        whole.unlink()
        for worker, lines in enumerate(commands):
            lines.append(f"\\copy {table} ({columns}) from '{whole}.{worker:02}'\n")
    for script, lines in zip(scripts, commands, strict=True):
        script.write_text("".join(lines))
    return scripts
