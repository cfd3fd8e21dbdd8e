"""Measures the benefit and cost of workers: two workers compared with one, four compared with one at the same rate,
start-up, merging of results, and coordination."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.figures import at_least, at_most, report, within
from bench.pairs import in_turn, interleaved, ratio
from bench.peers import BIN, SELECT_ONLY
from ironbench import _core
from ironbench.model.driven import Driven
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.trial.cluster import parts
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource
from tests.live.raw_server import RawServer

PAIRS = 7
SECONDS = 4.0
RATE = 1000.0
RESULTS, RESULT_S = 1000, 30.0
NULL = {"kind": "null", "service_ns": 0}


def main() -> None:
    with WorkerPool(Printer()) as pool:
        _two_against_one(pool)
        with RawServer() as server:
            _four_against_one(pool, server)
    _merge()


def _two_against_one(pool: WorkerPool) -> None:
    spreads_s, beside_s = list[float](), list[float]()
    tasks = Tasks([ScriptSource("s", "\\set a random(1, 100000)\nSELECT :a;\n", 1)])
    _driven(pool, NULL, tasks, Load(clients=8, workers=2, duration_s=0.5))  # starts the workers

    def by(workers: int) -> float:
        found, took_s = _driven(pool, NULL, tasks, Load(clients=4 * workers, workers=workers, duration_s=SECONDS))
        spreads_s.append(found.metrics["start_spread_s"])
        beside_s.append(took_s - SECONDS)
        return _throughput(found)

    two, one, bare_two, bare_one = in_turn(
        PAIRS, lambda: by(2), lambda: by(1), lambda: _bare(tasks, 2), lambda: _bare(tasks, 1)
    )
    report("throughput of 2 workers over 1, null engine", ratio(two, one), at_least(1.9))
    report(
        "throughput of 2 processes over 1 without Ray, the same plans",
        ratio(bare_two, bare_one),
        "what this machine has",
    )
    report("throughput of 2 workers over 2 processes without Ray", ratio(two, bare_two), "")
    report("spread of starts, highest", max(spreads_s), at_most(0.001, "1 ms"), f"{max(spreads_s) * 1e3:.3f} ms")
    report("coordination of a trial, median", median(beside_s), at_most(1.0, "1 s"), f"{median(beside_s):.2f} s")


def _bare(tasks: Tasks, processes: int) -> float:
    """Runs the plans that workers would get in the same number of processes without Ray, all from the same start
    time."""
    load = Load(clients=4 * processes, workers=processes, duration_s=SECONDS)
    cut = parts.cut(compiled_plan(NULL, tasks, load, ()), processes)
    code = "import sys; from bench.cluster import driven_alone; driven_alone(int(sys.argv[1]), sys.stdin.buffer.read())"
    command = [sys.executable, "-c", code, str(time.time_ns() + 1_500_000_000)]
    begun = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in cut]
    for process, plan in zip(begun, cut, strict=True):
        assert process.stdin is not None
        process.stdin.write(plan)
        process.stdin.close()
    return sum(float(process.stdout.read()) for process in begun if process.stdout is not None)


def driven_alone(begin_ns: int, plan: bytes) -> None:
    progress = _core.Progress()
    progress.begin_at(begin_ns)
    found = json.loads(_core.drive(plan, progress).summary)
    print(found["transactions"] / found["elapsed_s"])


def _four_against_one(pool: WorkerPool, server: RawServer) -> None:
    command = [str(BIN / "pgbench"), "-i", "-q", "-s", "1", "-h", server.host, "-p", str(server.port)]
    subprocess.run([*command, "-U", "postgres", "postgres"], check=True, capture_output=True)
    connection = {"host": server.host, "port": server.port, "user": "postgres", "database": "postgres"}
    target = {"kind": "postgres", "connection": connection, "protocol": "prepared", "io": "auto"}
    tasks = Tasks([ScriptSource("select", SELECT_ONLY, 1)], {"scale": "1"})

    def by(workers: int) -> Driven:
        return _driven(pool, target, tasks, Load(clients=8, workers=workers, rate=RATE, duration_s=SECONDS))[0]

    by(4)
    four, one = interleaved(PAIRS, lambda: by(4), lambda: by(1))
    figures: dict[str, Callable[[Driven], float]] = {
        "throughput": _throughput,
        "response time, p50": lambda driven: driven.histograms["response_time"].quantile(0.5),
        "response time, p99": lambda driven: driven.histograms["response_time"].quantile(0.99),
    }
    for name, of in figures.items():
        found = ratio([of(driven) for driven in four], [of(driven) for driven in one])
        report(f"{name} of 4 workers over 1, {RATE:.0f}/s", found.centre, within(0.97, 1.03), str(found))


def _merge() -> None:
    """Merges results in a separate process, to measure its memory."""
    load = Load(clients=8, rate=2000.0, duration_s=RESULT_S, workers=2)
    whole = compiled_plan(NULL, Tasks([ScriptSource("s", "SELECT 1;\n", 1)]), load, ())
    progress = _core.Progress()
    progress.begin_at(1)
    result = _core.drive(parts.cut(whole, 2)[0], progress).to_bytes()
    code = "import sys; from bench.cluster import merged; merged(sys.stdin.buffer.read())"
    done = subprocess.run([sys.executable, "-c", code], input=result, capture_output=True, check=True)
    took_s, most_bytes = map(float, done.stdout.split())
    what = f"merging {RESULTS} results of {RESULT_S:.0f} s"
    report(f"{what}: time", took_s, at_most(1.0, "1 s"), f"{took_s:.2f} s")
    report(f"{what}: memory", most_bytes / 1e6, at_most(500.0, "500 MB"), f"{most_bytes / 1e6:.0f} MB")


def merged(result: bytes) -> None:
    each = [bytes(bytearray(result)) for _ in range(RESULTS)]
    began = time.monotonic()
    _core.DriveResult.merged(each)
    print(time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _driven(pool: WorkerPool, target: dict[str, Any], tasks: Tasks, load: Load) -> tuple[Driven, float]:
    plan = compiled_plan(target, tasks, load, ())
    began = time.monotonic()
    found = pool.drive(plan, load, _core.Progress())
    assert not found.failure and not found.summary["aborted"], found
    return found, time.monotonic() - began


def _throughput(found: Driven) -> float:
    return float(found.summary["transactions"] / found.summary["elapsed_s"])
