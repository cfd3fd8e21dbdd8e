"""Compares client CPU per transaction and throughput with pgbench and the same protocol: select-only, 8 clients on 1
thread.

Both clients send the same messages for each execution, so that the server and both clients do the same work
(tests/live/test_pgbench_parity.py compares the messages byte by byte).
"""

from __future__ import annotations

import os
import statistics
from typing import Any

from bench.figures import at_least, at_most, not_above, report
from bench.pairs import interleaved, ratio
from bench.peers import SELECT_ONLY, Rate, listening_postgres, ours, pgbench
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

PAIRS = int(os.environ.get("IRONBENCH_BENCH_PAIRS", "10"))
SCALE = 10
SECONDS = 8
SCRIPT = [ScriptSource("select-only", SELECT_ONLY, 1)]
PROTOCOLS = ("simple", "prepared")


def main() -> None:
    with listening_postgres(SCALE) as server:
        # Throughput and latency have targets only for the socket; the other connections are measured for their CPU
        # time.
        for way, io, most in (("socket", "auto", 0.75), ("tcp", "auto", 0.85), ("socket", "epoll", 0.95)):
            connection = server.connection(host="127.0.0.1") if way == "tcp" else server.connection()
            for protocol in PROTOCOLS:
                target = {"kind": "postgres", "connection": connection, "protocol": protocol, "io": io}
                _compared(target, way, Load(clients=8, threads=1, duration_s=SECONDS, io=io), most)


def _compared(target: dict[str, Any], way: str, asked: Load, most: float) -> None:
    used: set[str] = set()

    def mine() -> Rate:
        rate, summary = ours(target, SCRIPT, {"scale": str(SCALE)}, asked)
        used.add(summary["io"])
        return rate

    a, b = interleaved(PAIRS, mine, lambda: pgbench(target, asked, "-S", scale=SCALE))
    name = f"{target['protocol']}, {way}, {'/'.join(sorted(used))}"
    cpu = ratio([x.cpu_per_transaction_s for x in a], [x.cpu_per_transaction_s for x in b])
    report(f"client CPU per transaction / pgbench ({name})", cpu, at_most(most, f"upper end ≤ {most:.2f}"))
    rate = ratio([x.per_second for x in a], [x.per_second for x in b])
    latency = ratio([x.latency_s for x in a], [x.latency_s for x in b])
    first = way == "socket" and asked.io == "auto"
    report(f"throughput / pgbench ({name})", rate, at_least(1.05, "lower end ≥ 1.05") if first else "")
    report(f"mean latency / pgbench ({name})", latency, not_above(1.0) if first else "")
    report("  client CPU per transaction, µs", f"{_median(a):.2f}, pgbench {_median(b):.2f} (medians)")


def _median(rates: list[Rate]) -> float:
    return statistics.median(rate.cpu_per_transaction_s for rate in rates) * 1e6
