"""The brokerage workload on PostgreSQL: CPU share of the client, with client-side and server-side logic, and
repeatability.

Takes about five minutes. `IRONBENCH_BENCH_PAIRS=2` makes only two runs of each kind.
"""

from __future__ import annotations

import os
import time
from typing import Any

import msgspec

from bench.figures import at_most, report_median
from bench.peers import postgres
from bench.series import number_from_environment
from ironbench import _core, workloads
from ironbench.engines.postgres.session import PostgresSession
from ironbench.host import processes
from ironbench.model.system import Choice, Load
from ironbench.trial.drive.run import Tasks, compiled_plan

RUNS = 5
LEAST_RUNS = 2
"""Number of runs for results without a target."""
DURATION_S = 10.0
OPTIONS = {"customers": "1000", "days": "10", "lob": "none", "price_period": "5", "inputs": "scaled"}
CLIENTS = (4, 16, 64)
MOST_OF_CPU = 0.15
SETTLE_S = 0.5
"""Time until a server that has ended is included in the CPU time of its parent."""


def main() -> None:
    runs = number_from_environment("IRONBENCH_BENCH_PAIRS", RUNS)
    with postgres(2 * max(CLIENTS) + 1, "brokerage", OPTIONS) as session:
        limit = at_most(MOST_OF_CPU, f"≤ {MOST_OF_CPU:g}")
        for logic, wanted in (("server", limit), ("client", "")):
            found = [_driven(session, 8, logic=logic) for _ in range(runs)]
            report_median(
                f"client CPU / all CPU, logic={logic}, 8 clients", [one["share"] for one in found], wanted, digits=3
            )
            report_median("  client CPU per transaction, µs", [one["client_us"] for one in found], digits=3)
            report_median("  server CPU per transaction, µs", [one["server_us"] for one in found], digits=3)
        for clients in CLIENTS:
            for logic in ("client", "server"):
                found = [_driven(session, clients, logic=logic) for _ in range(min(runs, LEAST_RUNS))]
                report_median(
                    f"tries of a result that were repeated, {clients} clients, {logic}",
                    [x["again"] for x in found],
                    digits=3,
                )
                report_median("  results per second", [x["results"] for x in found], digits=3)


def _driven(session: PostgresSession, clients: int, **options: str) -> dict[str, float]:
    workload = workloads.get("brokerage")
    validated = workload.validated(OPTIONS | options)
    load = Load(clients, duration_s=DURATION_S, max_tries=workload.usual_max_tries, seed=time.time_ns() >> 1)
    before = workload.before(session, validated)
    scripts = workload.scripts(session.engine, Choice("brokerage", validated))
    jobs = workload.jobs(session, validated, load)
    plan = compiled_plan(session.target(), Tasks(scripts, workload.variables(validated), jobs=jobs), load, ())
    began_s = _server_cpu_s(session)
    summary = msgspec.json.decode(_core.drive(plan).summary, type=dict[str, Any])
    time.sleep(SETTLE_S)
    server_s = _server_cpu_s(session) - began_s
    broken = [check for check in workload.check(session, validated, before, summary) if not check.passed]
    if summary["failed"] or broken:
        raise RuntimeError(f"{summary['error_messages']} {broken}")
    cpu, done = summary["client_cpu_s"], summary["transactions"]
    client_s = cpu["user"] + cpu["system"]
    result = next(one for one in summary["scripts"] if one["name"] == "trade_result")
    return {
        "share": client_s / (client_s + server_s),
        "client_us": client_s / done * 1e6,
        "server_us": server_s / done * 1e6,
        "again": result["retries"] / max(1, result["retries"] + result["transactions"]),
        "results": result["transactions"] / summary["elapsed_s"],
    }


def _server_cpu_s(session: PostgresSession) -> float:
    return sum(processes.cpu_s(pid) for pid in session.processes() if pid != os.getpid())
