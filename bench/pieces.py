"""Large data in pieces: workers generate a sample of the pieces of TPC-H scale factor 10,000 for a null sink.

The measured generation rate is compared with the plan for 32 machines (`ironbench lab plan`).
"""

from __future__ import annotations

import json
import os

from bench.figures import at_least, at_most, report
from ironbench import _core
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.load.estimate import MADE_ROWS_PER_S
from ironbench.trial.load.space import CHILD_BYTES
from ironbench.units import span
from ironbench.workloads import tpch_tables

SCALE_FACTOR = "10000"
MACHINES = 32
SHARE = 2_000
"""One of this many pieces is generated. The generated pieces are spread evenly over all pieces."""
WORKERS = min(2, len(os.sched_getaffinity(0)))
NULL = {"kind": "null", "service_ns": 0}


def main() -> None:
    dataset = tpch_tables.dataset("postgres", {"sf": SCALE_FACTOR})
    pieces = _core.cut_rows(json.dumps(dataset.generator).encode(), MACHINES, b"[]")
    # Pieces outside the sample are declared as already done.
    done = [
        {"table": table, "first": first, "past": past}
        for number, (table, first, past) in enumerate(pieces)
        if number % SHARE
    ]
    made = len(pieces) - len(done)
    plan = {"engine": NULL, "generator": dataset.generator, "connections": 1, "done": done, "note": ""}
    load = Load(clients=WORKERS, workers=WORKERS)
    with WorkerPool(Printer()) as pool:
        found = pool.copied(plan, load, lambda rows, size: None)
    assert not found["lost"], found
    each_per_s = found["rows"] / found["elapsed_s"] / WORKERS
    report("pieces of TPC-H scale factor 10,000", float(len(pieces)), "", f"{len(pieces):,}, of which {made} were made")
    report(
        "rows made", float(found["rows"]), "", f"{found['rows']:,} in {found['elapsed_s']:.1f} s by {WORKERS} workers"
    )
    report(
        "rows/s of one worker's core / the plan's", each_per_s / MADE_ROWS_PER_S, at_least(1.0), f"{each_per_s:,.0f}/s"
    )
    most = max(found["memory_bytes"])
    report("memory of a worker / the plan's", most / CHILD_BYTES, at_most(1.0), f"{most / 1e6:.0f} MB")
    whole_s = dataset.rows / each_per_s / MACHINES
    report(f"all rows by one core of each of {MACHINES} machines at this rate", whole_s, "", span(whole_s))
