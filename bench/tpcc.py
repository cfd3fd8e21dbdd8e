"""Compares workload `tpcc` with `go-tpc tpcc run` on PostgreSQL and MariaDB: New-Orders per minute and client CPU per
New-Order, with client SQL and without pacing, on the same data, interleaved. On PostgreSQL, `tpcc` is also measured
with the stock updates of an order in one batch.

Both programs connect over TCP, because go-tpc cannot use Unix sockets, and have 4 clients, which ironbench drives in a
single thread. Committed New-Orders are counted by the growth of `d_next_o_id`. Needs `go-tpc` on the path: see
`bench/tpcc_load.py`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import msgspec

from bench import tpcc_load
from bench.figures import at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.sysbench import measured_process
from bench.tpcc_load import Served
from ironbench import _core, engines
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads.base import one_row
from ironbench.workloads.tpcc import WORKLOAD

PAIRS = int(os.environ.get("IRONBENCH_BENCH_PAIRS", "10"))
SECONDS = int(os.environ.get("IRONBENCH_BENCH_SECONDS", "10"))
CLIENTS = 4


@dataclass(frozen=True, slots=True)
class Ran:
    per_minute: float
    """Committed New-Orders."""
    cpu_s: float
    """Client CPU time per committed New-Order, including all other transactions."""


def main() -> None:
    for served in (tpcc_load.postgres_served, tpcc_load.mariadb_served):
        with served() as server:
            tpcc_load.empty(server, "ours")
            with tpcc_load.opened(server, "ours") as session:
                tpcc_load.filled(session)
                _compared(server, session)
                if engines.get(server.engine).can("pipelines"):
                    _compared(server, session, batch="true")


def _compared(served: Served, session: Session, batch: str = "false") -> None:
    mine, theirs = interleaved(PAIRS, lambda: _ours(session, batch), lambda: _theirs(served, session))
    name = f"{served.engine}, {tpcc_load.WAREHOUSES} warehouses, {CLIENTS} clients"
    if batch == "true":
        name += ", batch=true"
    cpu = ratio([one.cpu_s for one in mine], [one.cpu_s for one in theirs])
    report(f"client CPU per New-Order / go-tpc, {name}", cpu, at_most(0.35, "upper end ≤ 0.35"))
    rate = ratio([one.per_minute for one in mine], [one.per_minute for one in theirs])
    report(f"NOPM / go-tpc, {name}", rate, at_least(1.1, "lower end ≥ 1.1"))
    report("  NOPM of go-tpc, largest", max(one.per_minute for one in theirs))


def _orders(session: Session) -> int:
    return one_row(session, "select sum(d_next_o_id) from district")[0]


def _ours(session: Session, batch: str) -> Ran:
    options = WORKLOAD.validated({"warehouses": tpcc_load.WAREHOUSES, "affinity": "home", "batch": batch})
    load = Load(CLIENTS, threads=1, duration_s=SECONDS, warmup_s=0.0, max_tries=WORKLOAD.usual_max_tries)
    jobs = WORKLOAD.jobs(session, options, load)
    tasks = Tasks(WORKLOAD.scripts(session.engine, Choice("tpcc", options)), WORKLOAD.variables(options), jobs=jobs)
    before = _orders(session)
    result = _core.drive(compiled_plan(session.target(), tasks, load, ()))
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    assert not summary["failed"], summary["error_messages"]
    orders = _orders(session) - before
    return Ran(60 * orders / summary["elapsed_s"], sum(summary["client_cpu_s"].values()) / orders)


def _theirs(served: Served, session: Session) -> Ran:
    """Runs go-tpc. The CPU time includes the start of the process."""
    before = _orders(session)
    flags = ["-T", str(CLIENTS), "--time", f"{SECONDS}s"]
    _, cpu_s = measured_process([*tpcc_load.go_tpc(served, "ours"), *flags, "run"])
    orders = _orders(session) - before
    return Ran(60 * orders / SECONDS, cpu_s / orders)


if __name__ == "__main__":
    main()
