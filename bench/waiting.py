"""Checks transactions that are still waiting at the end of an open loop, and the schedule that all threads share.

A server is stopped for the last 1, 2 and 5 s of 20 s of arrivals at a fixed 100/s. If it resumes 1 s after the window,
the transactions that became due during the stop wait until then: with a stop of k s, a transaction due t s after its
start waits k + 1 s - t. The 20 slowest of 2,000 transactions are the first that became due in the stop, so p99 is k + 1
s - 0.2 s. If the server does not resume during the drain, too many transactions never end for a 99th percentile to be
reported.

The simulated server answers after 50 ms. Eight clients can do 160/s; at 128/s the arrivals, and therefore the queue,
are the same for any number of threads, because the seed is the same. Other programs only delay timers, so the shortest
of three passes counts.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from typing import Any

import msgspec

from bench.figures import at_most, report, within
from bench.peers import SELECT_ONLY, postgres
from ironbench import _core
from ironbench.model.session import Session
from ironbench.model.system import Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

SECONDS, RATE = 20.0, 100.0
SCRIPT = [ScriptSource("select-only", SELECT_ONLY, 1)]
SERVICE_S, CLIENTS, SHARE = 0.050, 8, 0.8
VARIABLES = {"scale": "1"}


def main() -> None:
    with postgres(CLIENTS, "select-only", VARIABLES) as session:
        for stopped_s in (1.0, 2.0, 5.0):
            _continued(session, stopped_s)
        _never_continued(session)
    _threads()
    _cost()


def _continued(session: Session, stopped_s: float) -> None:
    summary, histograms = _stopped(session, stopped_s, stopped_s + 1.0)
    exact_s = stopped_s + 1.0 - 0.01 * SECONDS
    p99_s = histograms["response_time"].quantile(0.99)
    report(
        f"p99, server stopped for the last {stopped_s:g} s / exact ({exact_s:.2f} s)",
        p99_s / exact_s,
        within(0.90, 1.10),
        f"{p99_s / exact_s:.3f} ({p99_s:.2f} s, {summary['censored']} never ended)",
    )


def _never_continued(session: Session) -> None:
    summary, _ = _stopped(session, 2.0, 9.0)
    share = summary["censored"] / summary["due"]
    report("share that never ended, stopped for the last 2 s and longer", share, within(0.09, 0.11), f"{share:.3f}")


def _stopped(session: Session, before_end_s: float, for_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
    load = Load(clients=CLIENTS, duration_s=SECONDS, rate=RATE, arrivals="fixed")
    progress = _core.Progress()
    plan = compiled_plan(session.target("prepared"), Tasks(SCRIPT, VARIABLES), load, ())

    def stop() -> None:
        while progress.phase != "run":
            time.sleep(0.002)
        backends = _backends(session)
        time.sleep(max(0.0, SECONDS - before_end_s - progress.elapsed_s))
        for pid in backends:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(for_s)
        for pid in backends:
            os.kill(pid, signal.SIGCONT)

    stopper = threading.Thread(target=stop)
    stopper.start()
    result = _core.drive(plan, progress)
    stopper.join()
    return msgspec.json.decode(result.summary), dict(result.histograms)


def _backends(session: Session) -> list[int]:
    sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    return [int(row[0] or 0) for row in session.query(sql)]


def _threads() -> None:
    counts, rate = (1, 2, 4, 8), SHARE * CLIENTS / SERVICE_S
    p99_s = dict.fromkeys(counts, math.inf)
    for threads in counts * 3:
        load = Load(clients=CLIENTS, threads=threads, duration_s=8.0, rate=rate, seed=3)
        p99_s[threads] = min(p99_s[threads], _null(load, SERVICE_S)[1]["response_time"].quantile(0.99))
    most = max(p99_s.values()) / min(p99_s.values())
    each = ", ".join(f"{value * 1e3:.1f}" for value in p99_s.values())
    report("p99 with 1, 2, 4, 8 threads, longest / shortest", most, at_most(1.10), f"{most:.3f} ({each} ms)")


def _cost() -> None:
    """Measures the cost of the schedule. The engine answers immediately, and the rate cannot be sustained, so the open
    loop differs from the closed loop only by the schedule."""
    for threads in (1, 2):
        closed, opened = (
            _null(Load(clients=CLIENTS, threads=threads, duration_s=2.0, rate=rate), 0.0)[0]
            for rate in (None, 5_000_000.0)
        )
        cost = [one["client_cpu_per_transaction_s"] * 1e9 for one in (closed, opened)]
        report(
            f"client CPU per transaction, closed and open loop, {threads} threads, ns", f"{cost[0]:.0f}, {cost[1]:.0f}"
        )


def _null(load: Load, service_s: float) -> tuple[dict[str, Any], dict[str, Any]]:
    target = {"kind": "null", "service_ns": round(service_s * 1e9)}
    result = _core.drive(compiled_plan(target, Tasks([ScriptSource("one", "SELECT 1;\n", 1)]), load, ()))
    return msgspec.json.decode(result.summary), dict(result.histograms)
