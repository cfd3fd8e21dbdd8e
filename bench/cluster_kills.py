"""Kills a process of a trial with workers at a random time, and checks the result."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter

from bench.figures import equal, report
from ironbench import _core
from ironbench.errors import IronbenchError
from ironbench.host import processes
from ironbench.model.system import Load
from ironbench.printer import Printer
from ironbench.trial.cluster.worker_pool import WorkerPool
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

KILLS = int(os.environ.get("KILLS", "50"))
LOAD = Load(clients=4, workers=2, duration_s=2.0, think_time_s=0.001)
HUNG_S = 10.0
NULL = {"kind": "null", "service_ns": 0}


def main() -> None:
    dice = random.Random(23)
    plan = compiled_plan(NULL, Tasks([ScriptSource("s", "SELECT 1;\n", 1)]), LOAD, ())
    ended: Counter[str] = Counter()
    longest_s, left, unsaid = 0.0, 0, 0
    with WorkerPool(Printer()) as pool:
        for kill in range(KILLS):
            pool.drive(plan, LOAD, _core.Progress())  # makes sure that Ray is running after the previous kill
            began = processes.below(os.getpid())
            victim, struck = dice.choice(began), dice.uniform(0.0, LOAD.duration_s)
            number = dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
            ended[name := f"{processes.command(victim.pid)} {number.name}"] += 1
            strike = threading.Timer(struck, victim.signal, (number,))
            strike.start()
            start_s = time.monotonic()
            try:
                found = pool.drive(plan, LOAD, _core.Progress())
                told = found.failure or found.summary["cause"]
                whole = not told and sum(one.transactions for one in found.workers) == found.summary["transactions"]
            except IronbenchError as error:
                told, whole = str(error), False
            late_s = time.monotonic() - start_s - LOAD.duration_s
            unsaid += int(not told and not whole)
            longest_s = max(longest_s, late_s)
            victim.signal(signal.SIGCONT)
            sys.stderr.write(f"{kill + 1}: {name} after {struck:.1f} s: {told or 'no harm'}, +{late_s:.1f} s\n")
            if told:
                time.sleep(0.2)
                left += sum(one.alive() for one in began)
    for one in sorted(ended):
        report(f"killed: {one}", float(ended[one]))
    report("trials that were neither whole nor voided with a cause", float(unsaid), equal(0.0, "0"))
    report("processes left after a voided trial", float(left), equal(0.0, "0"))
    report("longest beyond a trial's time", longest_s, "", f"{longest_s:.1f} s")
    report(f"hung: longer than {HUNG_S:.0f} s beyond it", float(longest_s > HUNG_S), equal(0.0, "0"))
