"""Measures the limits of the drive loop: transactions per second and core with the null engine, and memory per
client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping

from bench.figures import at_least, at_most, report, report_median
from bench.peers import SELECT_ONLY, ours, postgres
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

RUNS = 7
MEMORY = """
import json, resource, sys
from bench.peers import ours
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource
plan = json.loads(sys.stdin.read())
asked = Load(clients=plan["clients"], threads=2, duration_s=3)
rate, summary = ours(plan["target"], [ScriptSource("s", plan["text"], 1)], {"scale": "1"}, asked)
assert summary["clients"] == plan["clients"] and not summary["aborted"]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def main() -> None:
    script = [ScriptSource("select-only", SELECT_ONLY, 1)]
    rates = [
        ours({"kind": "null"}, script, {"scale": "1"}, Load(clients=8, threads=1, duration_s=2))[1] for _ in range(RUNS)
    ]
    per_core = [s["transactions"] / (s["client_cpu_s"]["user"] + s["client_cpu_s"]["system"]) / 1e6 for s in rates]
    report_median("null engine, full recording, M transactions per core-second", per_core, at_least(3))
    report_median("one record without clock reads, ns", _recording_costs(), at_most(25))
    null = {"kind": "null"}
    report("memory per client, 5000 on null, KB", _per_client(null, "SELECT 1;\n", 5000), at_most(64))
    with postgres(1000, "select-only", {"scale": "1"}) as session:
        text = SELECT_ONLY
        report(
            "memory per client, 1000 on PostgreSQL, KB",
            _per_client(session.target("prepared"), text, 1000),
            at_most(64),
        )


def _recording_costs() -> list[float]:
    command = [
        "cargo",
        "run",
        "--release",
        "--quiet",
        "--locked",
        "-p",
        "ironbench-core",
        "--example",
        "recording_cost",
    ]
    return [float(line) for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def _per_client(target: Mapping[str, object], text: str, clients: int) -> float:
    """Returns the growth of the peak resident memory of a new process from 1 client to `clients`, per client."""
    one, many = (_peak(target, text, n) for n in (1, clients))
    return (many - one) / (clients - 1) / 1024


def _peak(target: Mapping[str, object], text: str, clients: int) -> int:
    plan = json.dumps({"target": target, "text": text, "clients": clients})
    done = subprocess.run([sys.executable, "-c", MEMORY], input=plan, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return int(done.stdout)
