"""Compares workload `sysbench` with sysbench itself, on MariaDB and PostgreSQL: events per second and client CPU per
event of `oltp_read_write` and `oltp_point_select`, with sysbench's defaults, 8 clients, Unix sockets, side by side.

Both sides use the tables that sysbench has prepared. sysbench has a thread per client; ironbench drives all 8 clients
in one thread.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import Rate, matched_group
from bench.sysbench import measured_process
from ironbench import _core, engines
from ironbench.model.system import Choice, Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import sysbench
from tests.live.raw_mysql import RawMysql
from tests.live.raw_server import RawServer, free_port

PAIRS = int(os.environ.get("IRONBENCH_BENCH_PAIRS", "10"))
SECONDS = int(os.environ.get("IRONBENCH_BENCH_SECONDS", "6"))
TABLES, TABLE_SIZE = 4, 50_000
TESTS = ("oltp_point_select", "oltp_read_write")


@dataclass(frozen=True, slots=True)
class Peer:
    """A running server, with the connection options of both programs."""

    engine: str
    target: dict[str, Any]
    sysbench: Sequence[str]
    """sysbench's options for the connection."""


def main() -> None:
    for server in (_mariadb, _postgres):
        with server() as peer:
            _theirs(peer, "oltp_read_write", "prepare")
            for test in TESTS:
                _compared(peer, test)


@contextmanager
def _mariadb() -> Iterator[Peer]:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        settings = ["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2"]
        settings += ["--performance-schema=OFF"]  # the default; it would slow every statement of both sides
        server = RawMysql(Path(folder), free_port(), settings)
        target = {"kind": "mysql", "connection": server.address(), "protocol": "prepared", "io": "auto"}
        try:
            yield Peer("mariadb", target, [f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=d"])
        finally:
            server.stop()


@contextmanager
def _postgres() -> Iterator[Peer]:
    with RawServer("shared_buffers=1GB", "max_wal_size=4GB", "max_connections=50") as server:
        target = {"kind": "postgres", "connection": server.connection(), "protocol": "prepared", "io": "auto"}
        where = [f"--pgsql-host={server.host}", f"--pgsql-port={server.port}", "--pgsql-user=postgres"]
        yield Peer("postgres", target, ["--db-driver=pgsql", *where, "--pgsql-db=postgres"])


def _compared(peer: Peer, test: str) -> None:
    mine, theirs = interleaved(PAIRS, lambda: _ours(peer, test), lambda: _theirs(peer, test, "run"))
    name = f"sysbench {test}, {peer.engine}"
    cpu = ratio([x.cpu_per_transaction_s for x in mine], [x.cpu_per_transaction_s for x in theirs])
    report(f"client CPU per event / {name}", cpu, at_most(0.6, "upper end ≤ 0.60"))
    rate = ratio([x.per_second for x in mine], [x.per_second for x in theirs])
    report(f"events per second / {name}", rate, at_least(1.0))


def _ours(peer: Peer, test: str) -> Rate:
    workload = sysbench.WORKLOAD
    options = workload.validated({"test": test, "tables": str(TABLES), "table_size": str(TABLE_SIZE)})
    load = Load(clients=8, threads=1, duration_s=SECONDS, max_tries=workload.usual_max_tries, protocol="prepared")
    tasks = Tasks(
        workload.scripts(peer.engine, Choice("sysbench", options)),
        workload.variables(options),
        jobs=workload.inputs(options, load.protocol),
        retried_errors=engines.get(peer.engine).traits.duplicate_key,
    )
    result = _core.drive(compiled_plan(peer.target, tasks, load, ()))
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    rate = summary["transactions"] / summary["elapsed_s"]
    return Rate(rate, summary["client_cpu_per_transaction_s"], result.histograms["response_time"].mean_s)


def _theirs(peer: Peer, test: str, command: str) -> Rate:
    """Runs sysbench. The CPU time includes the start of the process."""
    size = [f"--tables={TABLES}", f"--table-size={TABLE_SIZE}"]
    out, cpu_s = measured_process(
        ["sysbench", test, *peer.sysbench, *size, "--threads=8", f"--time={SECONDS}", command]
    )
    if command == "prepare":
        return Rate(0.0, 0.0, 0.0)
    done = int(matched_group(r"transactions: +(\d+)", out))
    return Rate(
        done / float(matched_group(r"total time: +([\d.]+)s", out)),
        cpu_s / done,
        float(matched_group(r"avg: +([\d.]+)", out)) / 1e3,
    )


if __name__ == "__main__":
    main()
