"""Compares client CPU per prepared select over ODBC with a bare pyodbc loop that executes only the same statement."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import msgspec

from bench.figures import at_most, report
from bench.pairs import interleaved, ratio
from bench.peers import SELECT_ONLY, Rate, listening_postgres
from ironbench import _core, engines
from ironbench.host.job import ANYWHERE
from ironbench.model.session import Session
from ironbench.model.system import Load, System
from ironbench.trial.drive.run import Tasks, compiled_plan, drive_in_child
from ironbench.workloads import ScriptSource

PAIRS = 20
SCALE = 10
SECONDS = 2
MOST = 1.1
DRIVER = "PostgreSQL Unicode"
BARE = """
import json, random, resource, sys, threading, time
import pyodbc

connection, clients, seconds, rows = json.loads(sys.argv[1])
done = []

def work(number):
    cursor = pyodbc.connect(connection, autocommit=True).cursor()
    draw, now, sql, count = random.Random(number).random, time.perf_counter, SQL, 0
    gate.wait()
    end = now() + seconds
    while now() < end:
        cursor.execute(sql, 1 + int(rows * draw())).fetchall()
        count += 1
    done.append(count)

gate = threading.Barrier(clients + 1)
threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
gate.wait()
before = resource.getrusage(resource.RUSAGE_SELF)
for thread in threads:
    thread.join()
after = resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
print(json.dumps([sum(done) / seconds, cpu / sum(done), clients * seconds / sum(done)]))
""".replace("SQL", repr("SELECT abalance FROM pgbench_accounts WHERE aid = ?"))


def main() -> None:
    with listening_postgres(SCALE) as server:
        where = f"Server={server.host};Port={server.port};Database=postgres;UID=postgres"
        connection = f"Driver={{{DRIVER}}};{where}"
        dsn = f"odbc:{connection}"
        engine = engines.get("odbc").engine_for(dsn)
        system, secrets = engine.validated(System(engine.name, "bench", dsn=dsn), 8)
        with engines.running(system, secrets, 8) as session:
            for clients in (1, 8):
                _compared(session, connection, clients)


def _compared(session: Session, connection: str, clients: int) -> None:
    mine, bare = interleaved(PAIRS, lambda: _ours(session, clients), lambda: _bare(connection, clients))
    name = "1 client" if clients == 1 else f"{clients} clients, a thread each"
    cpu = ratio([x.cpu_per_transaction_s for x in mine], [x.cpu_per_transaction_s for x in bare])
    report(f"client CPU per transaction / bare pyodbc ({name})", cpu, at_most(MOST, f"upper end ≤ {MOST}"))
    rate = ratio([x.per_second for x in mine], [x.per_second for x in bare])
    report(f"throughput / bare pyodbc ({name})", rate)
    report("  client CPU per transaction, µs", f"{_median(mine):.2f}, bare {_median(bare):.2f} (medians)")


def _ours(session: Session, clients: int) -> Rate:
    load = Load(clients=clients, duration_s=SECONDS)
    tasks = Tasks([ScriptSource("select-only", SELECT_ONLY, 1)], {"scale": str(SCALE)})
    result = drive_in_child(compiled_plan(session.target(), tasks, load, ()), _core.Progress(), ANYWHERE)
    summary = msgspec.json.decode(result.summary, type=dict[str, object])
    assert isinstance(summary["transactions"], int) and not summary["aborted"]
    cpu = summary["client_cpu_per_transaction_s"]
    assert isinstance(cpu, float)
    rate = summary["transactions"] / SECONDS
    return Rate(rate, cpu, result.histograms["response_time"].mean_s)


def _bare(connection: str, clients: int) -> Rate:
    asked = json.dumps([connection, clients, SECONDS, SCALE * 100_000])
    done = subprocess.run([sys.executable, "-c", BARE, asked], check=True, capture_output=True, text=True)
    return Rate(*json.loads(done.stdout))


def _median(rates: list[Rate]) -> float:
    return statistics.median(rate.cpu_per_transaction_s for rate in rates) * 1e6


if __name__ == "__main__":
    main()
