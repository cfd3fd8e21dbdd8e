"""Client CPU per transaction and throughput beside pgbench: prepared select-only, 8 clients on 1 thread."""

from __future__ import annotations

import copy
import socket

from bench.pairs import interleaved, ratio, said
from bench.peers import SELECT_ONLY, ours, pgbench, postgres
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

PAIRS = 10
SCALE = 10
SECONDS = 8
SCRIPT = [ScriptSource("select-only", SELECT_ONLY, 1)]


def main() -> None:
    port = _free_port()
    settings = {"listen_addresses": "127.0.0.1", "port": str(port)}
    with postgres(8, "select-only", {"scale": str(SCALE)}, settings) as session:
        for way, io, cpu_aim in (
            ("socket", "auto", "≤ 0.80"),
            ("tcp", "auto", "≤ 0.85"),
            ("socket", "epoll", "≤ 0.95"),
        ):
            target = copy.deepcopy(session.target("prepared", io))
            if way == "tcp":
                target["connection"] |= {"host": "127.0.0.1", "port": port}
            asked = Load(clients=8, threads=1, duration_s=SECONDS, io=io)
            used: list[str] = []

            def mine(target=target, asked=asked, used=used):
                rate, summary = ours(target, SCRIPT, {"scale": str(SCALE)}, asked)
                used.append(summary["io"])
                return rate

            a, b = interleaved(PAIRS, mine, lambda t=target, asked=asked: pgbench(t, asked, "-S", scale=SCALE))
            name = f"{way}, {used[-1]}"
            said(
                f"client CPU per transaction / pgbench ({name})",
                ratio([x.cpu_per_transaction_s for x in a], [x.cpu_per_transaction_s for x in b]),
                f"upper end {cpu_aim}",
            )
            said(
                f"throughput / pgbench ({name})",
                ratio([x.per_second for x in a], [x.per_second for x in b]),
                "lower end > 1.00",
            )
            said(
                f"mean latency / pgbench ({name})",
                ratio([x.latency_s for x in a], [x.latency_s for x in b]),
                "not worse",
            )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
