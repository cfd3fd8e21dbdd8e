"""What looking inside the server costs: throughput with its statements, tables and vacuums read, over that without.

Paired on one server of a distribution with `pg_stat_statements`, whose own cost both sides pay. The server knows nearly
the 5 000 statements that it keeps by default, so that a reading is as long as it gets. On a machine that others use,
throughput has too wide an interval; CPU time per transaction has not.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.figures import at_least, at_most, said
from bench.pairs import interleaved, ratio
from bench.peers import BIN, SELECT_ONLY, ours
from ironbench import engines, observe
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.process import processes
from ironbench.workloads import ScriptSource
from tests.live.raw_server import RawServer

PAIRS = 20
SCALE = 10
SECONDS = 5.0
CLIENTS = 4
LEAST, MOST = 0.99, 1.01
LEAST_KNOWN = 4000
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
INSIDE = ("pg_statements.", "pg_relations.")
_UPDATE = (
    "\\set aid random(1, 100000 * :scale)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"
)


def main() -> None:
    if not PROGRAMS.is_dir():
        said("inside the server", f"there is no server with contrib modules in {PROGRAMS}")
        return
    settings = ("shared_preload_libraries=pg_stat_statements", "shared_buffers=1GB", "max_connections=50")
    with RawServer(*settings, programs=PROGRAMS) as server:
        command = [str(BIN / "pgbench"), "-i", "-q", "-s", str(SCALE), "-h", server.host, "-p", str(server.port)]
        subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
        _fill(server)
        dsn = f"host={server.host} port={server.port} user=postgres dbname=postgres"
        system, secrets = engines.get("postgres").validated(System("postgres", "bench", dsn=dsn), CLIENTS)
        with engines.running(system, secrets, CLIENTS) as session:
            for name, text in (("select", SELECT_ONLY), ("update", _UPDATE)):
                _compared(session, name, text)


def _fill(server: RawServer) -> None:
    """Makes as many different statements known as the server keeps."""
    boss = server.connect()
    boss.query("create extension pg_stat_statements")
    for width in range(1, 70):
        columns = ", ".join(["1"] * width)
        boss.query("; ".join(f"select {columns} where {' and '.join(['1 = 1'] * n)}" for n in range(1, 75)))
    (known,) = boss.query("select count(*) from pg_stat_statements")
    assert int(known[0] or 0) >= LEAST_KNOWN, known
    boss.close()


def _compared(session: Session, name: str, text: str) -> None:
    sources = observe.sources(session, clients=CLIENTS)
    without = [one for one in sources if not one.name.startswith(INSIDE)]
    assert len(without) == len(sources) - 4
    load = Load(clients=CLIENTS, threads=1, duration_s=SECONDS, warmup_s=0.5, seed=1)
    scripts, variables = [ScriptSource(name, text, 1)], {"scale": str(SCALE)}

    def measured(of: Sequence[Source]) -> tuple[float, float]:
        """Throughput, and CPU time of server, clients and observers per transaction."""
        before_s = _cpu_s(session)
        rate, summary = ours(session.target(), scripts, variables, load, of)
        return rate.per_second, (_cpu_s(session) - before_s) / summary["completed"]

    looked, plain = interleaved(PAIRS, lambda: measured(sources), lambda: measured(without))
    rates, cpu = [ratio([x[n] for x in looked], [x[n] for x in plain]) for n in (0, 1)]
    what = f"looking inside / not ({name}, {CLIENTS} clients)"
    said(f"throughput, {what}", rates, at_least(LEAST))
    said(f"CPU of server and client per transaction, {what}", cpu, at_most(MOST))


def _cpu_s(session: Session) -> float:
    """So far, of processes that have ended, too."""
    return sum(processes.cpu_s(pid) for pid in (os.getpid(), *session.processes()))
