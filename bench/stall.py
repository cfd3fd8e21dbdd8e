"""An open loop at 70% of capacity while every backend is stopped for 1 s: response times must include the backlog.

Transactions become due while the server is stopped. Afterwards the queue drains at the capacity C while arrivals
continue at 0.7 C, so a transaction that became due t seconds after the stop began (0 ≤ t ≤ 1/0.3) waits 1 s - 0.3 t.
Arrivals last 20 s. Those that become due in the first 3.33 s after the stop (16.7%) wait for the backlog; all others
take only the service time. The slowest share q of all arrivals therefore waits at least 1 s - 0.3 · q · 20 s: p90 (q =
0.10) is 0.40 s, p99 (q = 0.01) is 0.94 s, p99.9 (q = 0.001) is 0.994 s.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import msgspec

from bench.figures import report, within
from bench.peers import SELECT_ONLY, ours, postgres
from ironbench import _core
from ironbench.model.session import Session
from ironbench.model.system import Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

SECONDS, STOP_S, SHARE = 20.0, 1.0, 0.7
SCRIPT = [ScriptSource("select-only", SELECT_ONLY, 1)]


def main() -> None:
    with postgres(8, "select-only", {"scale": "1"}) as session:
        target, variables = session.target("prepared"), {"scale": "1"}
        # With pauses between arrivals the server is slower; the relevant capacity is the capacity during the drain.
        capacity = min(ours(target, SCRIPT, variables, Load(clients=8, duration_s=4))[0].per_second for _ in range(3))
        asked = Load(clients=8, duration_s=SECONDS, rate=SHARE * capacity, arrivals="poisson", seed=7)
        stopper = threading.Timer(5.0, _stop_for_a_while, args=(session,))
        stopper.start()
        result = _core.drive(compiled_plan(target, Tasks(SCRIPT, variables), asked, ()))
        stopper.join()
        summary = msgspec.json.decode(result.summary)
    response, service = result.histograms["response_time"], result.histograms["service_time"]
    for name, quantile in (("p90", 0.90), ("p99", 0.99), ("p99.9", 0.999)):
        due = STOP_S - (1 - SHARE) * (1 - quantile) * SECONDS
        measured = response.quantile(quantile)
        report(
            f"response time {name} / backlog curve ({due * 1e3:.0f} ms)",
            measured / due,
            within(0.90, 1.10),
            f"{measured / due:.3f} ({measured * 1e3:.0f} ms)",
        )
    report("service time p99, ms", f"{service.quantile(0.99) * 1e3:.2f}")
    report("lateness p99, µs", f"{summary['lateness_p99_s'] * 1e6:.0f}")


def _stop_for_a_while(session: Session) -> None:
    backends = [
        int(row[0] or 0)
        for row in session.query(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    ]
    for pid in backends:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_S)
    for pid in backends:
        os.kill(pid, signal.SIGCONT)
