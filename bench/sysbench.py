"""Compares scripts on MariaDB with sysbench (prepared statements, 8 clients on 1 thread, Unix socket), and bulk loading
with loading ready files.

docs/adr/0025-what-a-point-select-costs.md explains what limits the first two results.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figures import above, at_least, at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import Rate, matched_group, ours
from ironbench import _core
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource
from tests.live.raw_mysql import RawMysql
from tests.live.raw_server import free_port

PAIRS = 10
SECONDS = 6
ROWS = 100_000
LOADED = {"rows": "pgbench", "scale": 10}
CONNECTIONS = 2

POINT_SELECT = f"\\set id random(1, {ROWS})\nSELECT c FROM sbtest1 WHERE id = :id;\n"
_RANGES = (
    "SELECT c FROM sbtest1 WHERE id BETWEEN :id AND :past",
    "SELECT sum(k) FROM sbtest1 WHERE id BETWEEN :id AND :past",
    "SELECT c FROM sbtest1 WHERE id BETWEEN :id AND :past ORDER BY c",
    "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN :id AND :past ORDER BY c",
)
_CHANGES = (
    "UPDATE sbtest1 SET k = k + 1 WHERE id = :id",
    "UPDATE sbtest1 SET c = :c WHERE id = :id",
    "DELETE FROM sbtest1 WHERE id = :id;\nINSERT INTO sbtest1 (id, k, c, pad) VALUES (:id, :k, :c, :pad)",
)
_ID = f"\\set id random(1, {ROWS})\n"
# Same statements as sysbench's oltp_read_write.lua, except that its random texts are constant here.
READ_WRITE = "".join(
    [
        "BEGIN;\n",
        POINT_SELECT * 10,
        *(f"{_ID}\\set past :id + 99\n{sql};\n" for sql in _RANGES),
        *(f"{_ID}\\set k random(1, {ROWS})\n{sql};\n" for sql in _CHANGES),
        "COMMIT;\n",
    ]
)
TEXTS = {"c": "-".join(["01234567890"] * 10), "pad": "-".join(["01234567890"] * 5)}


def main() -> None:
    with _server() as server:
        prepare = [*_sysbench(server, "oltp_point_select"), f"--table-size={ROWS}", "prepare"]
        subprocess.run(prepare, check=True, capture_output=True)
        _compared(server, "oltp_point_select", POINT_SELECT, most=0.45, rate=above(1.05))
        _compared(server, "oltp_read_write", READ_WRITE, most=0.6, rate=at_least(1.0))
        _loading(server)


@contextmanager
def _server() -> Iterator[RawMysql]:
    with tempfile.TemporaryDirectory(prefix="ironbench-bench-") as folder:
        settings = ["--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=2"]
        settings += ["--performance-schema=OFF"]  # the default; it would slow every statement of both sides
        server = RawMysql(Path(folder), free_port(), settings)
        try:
            yield server
        finally:
            server.stop()


def _compared(server: RawMysql, name: str, script: str, most: float, rate: Any) -> None:
    target = {"kind": "mysql", "connection": server.address(), "protocol": "prepared", "io": "auto"}
    # Both sides repeat transactions after deadlocks.
    asked = Load(clients=8, threads=1, duration_s=SECONDS, max_tries=0)
    scripts = [ScriptSource(name, script, 1)]
    mine, theirs = interleaved(
        PAIRS, lambda: ours(target, scripts, TEXTS, asked)[0], lambda: _peer(server, name, asked.clients)
    )
    cpu = ratio([x.cpu_per_transaction_s for x in mine], [x.cpu_per_transaction_s for x in theirs])
    report(f"client CPU per transaction / sysbench {name}", cpu, at_most(most, f"upper end ≤ {most:.2f}"))
    report(f"throughput / sysbench {name}", ratio([x.per_second for x in mine], [x.per_second for x in theirs]), rate)


def _sysbench(server: RawMysql, name: str) -> list[str]:
    return ["sysbench", name, f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=d", "--tables=1"]


def _peer(server: RawMysql, name: str, clients: int) -> Rate:
    """Runs sysbench. The CPU time includes the start of the process, which takes 0.02 s of about 3 s."""
    run = [f"--threads={clients}", f"--time={SECONDS}", f"--table-size={ROWS}", "--rand-type=uniform", "run"]
    out, cpu_s = measured_process([*_sysbench(server, name), *run])
    done = int(matched_group(r"transactions: +(\d+)", out))
    latency = float(matched_group(r"avg: +([\d.]+)", out)) / 1e3
    return Rate(done / float(matched_group(r"total time: +([\d.]+)s", out)), cpu_s / done, latency)


def measured_process(command: Sequence[str]) -> tuple[str, float]:
    """Returns the output of a program, and its CPU time in s."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} failed: {out}")
    return out, used.ru_utime + used.ru_stime


def _loading(server: RawMysql) -> None:
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "rows"
        _core.write_rows(json.dumps(LOADED).encode(), "pgbench_accounts", CONNECTIONS, str(whole))
        subprocess.run(["split", "-n", f"l/{CONNECTIONS}", str(whole), f"{folder}/part"], check=True)
        parts = sorted(Path(folder).glob("part*"))
        mine, theirs = interleaved(PAIRS, lambda: _loaded(server), lambda: _ready(server, parts))
    asked = at_least(0.95, "lower end ≥ 0.95")
    report(f"load rate / LOAD DATA LOCAL of ready files, {CONNECTIONS} connections", ratio(theirs, mine), asked)


def _fresh(server: RawMysql) -> None:
    tables = {"accounts": "aid int PRIMARY KEY, bid int, abalance int", "branches": "bid int PRIMARY KEY, bbalance int"}
    tables["tellers"] = "tid int PRIMARY KEY, bid int, tbalance int"
    for name, columns in tables.items():
        server.query(f"CREATE OR REPLACE TABLE pgbench_{name} ({columns}, filler char(88))")


def _loaded(server: RawMysql) -> float:
    """Returns the seconds to load, including the generation of rows."""
    _fresh(server)
    engine = {"kind": "mysql", "connection": server.address(), "protocol": "prepared", "io": "auto"}
    plan = {"engine": engine, "generator": LOADED, "connections": CONNECTIONS}
    start = time.monotonic()
    _core.load_rows(json.dumps(plan).encode(), _core.LoadProgress())
    return time.monotonic() - start


def _ready(server: RawMysql, parts: list[Path]) -> float:
    _fresh(server)
    client = ["mariadb", f"--socket={server.socket}", "--user=root", "--local-infile=1", "d", "-e"]
    loads = [f"LOAD DATA LOCAL INFILE '{part}' INTO TABLE pgbench_accounts" for part in parts]
    start = time.monotonic()
    running = [subprocess.Popen([*client, sql]) for sql in loads]
    ends = [process.wait() for process in running]
    if any(ends):
        raise RuntimeError("LOAD DATA failed")
    return time.monotonic() - start


if __name__ == "__main__":
    main()
