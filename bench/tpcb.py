"""Compares the throughput of tpcb-like with pgbench on the same database, without observers."""

from __future__ import annotations

from bench.figures import at_least, report
from bench.pairs import interleaved, ratio
from bench.peers import ours, pgbench, postgres
from ironbench import workloads
from ironbench.model.system import Choice, Load

PAIRS = 12
SCALE = 10


def main() -> None:
    workload = workloads.get("tpcb-like")
    options = workload.validated({"scale": str(SCALE)})
    with postgres(8, "tpcb-like", {"scale": str(SCALE)}) as session:
        target = session.target("prepared")
        asked = Load(clients=8, threads=1, duration_s=10)
        scripts = workload.scripts("postgres", Choice("tpcb-like", options))
        a, b = interleaved(
            PAIRS,
            lambda: ours(target, scripts, workload.variables(options), asked)[0],
            lambda: pgbench(target, asked, "-b", "tpcb-like", scale=SCALE),
        )
        report(
            "tpcb-like throughput / pgbench",
            ratio([x.per_second for x in a], [x.per_second for x in b]),
            at_least(0.97, "lower end ≥ 0.97"),
        )
        report(
            "tpcb-like client CPU / pgbench",
            ratio([x.cpu_per_transaction_s for x in a], [x.cpu_per_transaction_s for x in b]),
        )
