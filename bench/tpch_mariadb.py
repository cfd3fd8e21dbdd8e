"""Compares generating and loading TPC-H-derived rows in MariaDB with parallel `LOAD DATA LOCAL` from ready files.

Needs MariaDB's server and its client program `mariadb` (Debian: mariadb-server-core, mariadb-client-core).
`IRONBENCH_BENCH_SCALE=0.1` uses another scale factor.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.figures import at_most, report
from bench.pairs import interleaved, ratio
from bench.tpch_load import WORKERS, Took, empty_tables, loaded, scripts_of, together, tpch_dataset
from ironbench import engines
from ironbench.engines.mariadb.session import MariadbSession
from ironbench.model.system import Layout, System
from ironbench.workloads import Dataset

PAIRS = 4
SCALE = os.environ.get("IRONBENCH_BENCH_SCALE", "1")
LOAD = "LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table} CHARACTER SET utf8mb4;\n"


def main() -> None:
    dataset = tpch_dataset("mariadb", SCALE)
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as name:
        folder = Path(name)
        system = System("mariadb", "bench", {}, Layout(data=f"{folder}/data"), memory_bytes=1 << 30)
        system, secrets = engines.get("mariadb").validated(system, WORKERS)
        scripts = scripts_of(dataset, folder, LOAD)
        with engines.running(system, secrets, WORKERS) as session:
            assert isinstance(session, MariadbSession)
            by_load_data(session, dataset, scripts)  # also brings the files into the page cache
            ours, ready = interleaved(
                PAIRS, lambda: by_us(session, dataset), lambda: by_load_data(session, dataset, scripts)
            )
    report(
        f"MariaDB, sf={SCALE}: our time, generation included / {WORKERS} LOAD DATA LOCAL of ready files",
        ratio([one.elapsed_s for one in ours], [one.elapsed_s for one in ready]),
        at_most(1.3, "upper end ≤ 1.3"),
    )
    report("  core-seconds, ours / theirs, servers included", ratio([o.cpu_s for o in ours], [r.cpu_s for r in ready]))
    report("  seconds of ironbench, smallest", min(one.elapsed_s for one in ours))


def by_us(session: MariadbSession, dataset: Dataset) -> Took:
    return loaded(session, dataset, empty_tables(session, dataset))


def by_load_data(session: MariadbSession, dataset: Dataset, scripts: list[Path]) -> Took:
    """Loads with one concurrent client for each script."""
    empty_tables(session, dataset)
    connection = session.target()["connection"]
    client = [
        *("mariadb", "--no-defaults", f"--socket={connection['socket']}", f"--user={connection['user']}"),
        *("--local-infile=1", str(connection["database"])),
    ]
    return together([[*client, "-e", f"source {script}"] for script in scripts], session.processes()[0])


if __name__ == "__main__":
    main()
