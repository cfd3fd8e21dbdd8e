"""Does a profile contain the whole of a wait of known length?

A C function waits for 200 µs in each transaction (`planted`). Three kinds of transactions are measured, with 3,000 to
20,000 and more switches per second, most of which are not recorded. The result is the wait per transaction according to
the profile. Target: the mean differs from 200 µs by at most 3%.

`IRONBENCH_BENCH_RUNS` is the number of trials of each kind.
"""

from __future__ import annotations

import statistics
import time

from bench import planted
from bench.figures import at_most, report
from bench.peers import listening_postgres, ours
from bench.series import HOME, number_from_environment
from ironbench import _core
from ironbench.model.system import Load
from ironbench.trial.drive.profile import window
from ironbench.workloads import ScriptSource

RUNS = number_from_environment("IRONBENCH_BENCH_RUNS", 8)
SECONDS = 4
WAIT_US = 200
KINDS = {
    "one statement, 2 clients": (f"SELECT planted_wait({WAIT_US});\n", 2),
    "ten statements, 4 clients": (f"SELECT planted_wait({WAIT_US});\n" + "SELECT 1;\n" * 9, 4),
    "an update with WAL flush, 2 clients": (
        f"\\set id random(1, 10000)\nUPDATE planted SET us = {WAIT_US} WHERE id = :id;\n",
        2,
    ),
}


def main() -> None:
    planted.build()
    with listening_postgres(1) as server:
        session = server.connect()
        for statement in (HOME / "planted.sql").read_text().split(";\n"):
            if statement.strip():
                session.query(statement)
        session.close()
        target: dict[str, object] = {
            "kind": "postgres",
            "connection": server.connection(),
            "protocol": "prepared",
            "io": "auto",
        }
        assert server.process is not None
        for name, (script, clients) in KINDS.items():
            found = [
                _wait_us(target, ScriptSource("planted", script, 1), clients, server.process.pid) for _ in range(RUNS)
            ]
            mean = statistics.fmean(found)
            report(f"{name}: planted wait of {WAIT_US} µs, mean of {RUNS}", mean)
            report("  difference from the planted wait", abs(mean / WAIT_US - 1), at_most(0.03))
            report("  range", f"{min(found):.1f} to {max(found):.1f} µs")


def _wait_us(target: dict[str, object], script: ScriptSource, clients: int, postmaster: int) -> float:
    load = Load(clients=clients, threads=1, duration_s=SECONDS, warmup_s=0.3)
    profiler = _core.Profiler(["cpu", "wait"], 99, [postmaster])
    profiler.start()
    _, summary = ours(target, [script], {}, load)
    began_s = summary["started_unix_s"] - (time.time() - time.monotonic())
    profile = profiler.stop([window(began_s, summary["elapsed_s"])])
    lines = zip(profile.reason, profile.stack, profile.seconds, strict=True)
    waited_s = sum(seconds for reason, stack, seconds in lines if reason == "blocked" and "planted_wait" in stack)
    return waited_s / float(summary["transactions"]) * 1e6
