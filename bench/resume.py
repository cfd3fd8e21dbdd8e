"""Kills a lab on PostgreSQL at 50 random times (target: nothing lost, incomplete, out of order or left running).

Takes about 5 minutes. `IRONBENCH_BENCH_KILLS=3` makes only three kills.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from bench.figures import equal, report
from bench.kills import SOURCE, killed
from bench.series import DATA, number_from_environment

LONGEST_S = 4.0
LAB = """
question = "Do two clients get more done than one?"
[workload]
name = "igen-oltp"
[workload.with]
scale = 1
[load]
duration = "0.6s"
warmup = "0s"
[vary]
"load.clients" = [1, 2]
[measure]
repeats = 8
quiet = "0s"
"""


def _say(line: str) -> None:
    sys.stderr.write(f"  {line}\n")


def main() -> None:
    kills = number_from_environment("IRONBENCH_BENCH_KILLS", 50)
    with tempfile.TemporaryDirectory(prefix="ironbench-kills-", dir=DATA) as folder:
        home = Path(folder)
        (home / "runtime").mkdir(mode=0o700)
        file = home / "kills.toml"
        file.write_text(LAB)
        environment = os.environ | {
            "PYTHONPATH": str(SOURCE),
            "XDG_RUNTIME_DIR": str(home / "runtime"),
            "IRONBENCH_DATA": str(home / "data"),
        }
        seen = killed(file, home, kills, LONGEST_S, 1, environment, _say)
    for fault in seen.faults:
        report("  fault", fault)
    report(f"resume: faults after {seen.kills} kills of {seen.labs} labs", len(seen.faults), equal(0))
    report("  trials planned; kills after a plan was written", f"{seen.trials}; {seen.begun}")
