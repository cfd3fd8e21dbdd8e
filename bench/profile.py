"""Compares throughput with and without the profiler: single-row SELECT and UPDATE, 8 clients.

Two kinds of profile are compared with runs without a profile, interleaved: CPU samples at 99 Hz, and CPU samples
together with samples of waits.
"""

from __future__ import annotations

import os
from functools import partial

from bench.figures import at_least, report
from bench.pairs import in_turn, ratio
from bench.peers import SELECT_ONLY, listening_postgres, ours
from ironbench import _core
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

PAIRS = int(os.environ.get("IRONBENCH_BENCH_PAIRS", "20"))
SCALE = 10
SECONDS = 8
HZ = 99
UPDATE = "\\set aid random(1, 100000 * :scale)\nUPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;\n"


def main() -> None:
    with listening_postgres(SCALE) as server:
        target = {"kind": "postgres", "connection": server.connection(), "protocol": "prepared", "io": "auto"}
        assert server.process is not None
        for name, script in (("select-only", SELECT_ONLY), ("update", UPDATE)):
            rate = partial(_rate, target, ScriptSource(name, script, 1), server.process.pid)
            none, cpu, both = in_turn(PAIRS, partial(rate, []), partial(rate, ["cpu"]), partial(rate, ["cpu", "wait"]))
            report(
                f"throughput with CPU samples / without ({name})", ratio(cpu, none), at_least(0.98, "lower end ≥ 0.98")
            )
            report(f"throughput with waits / without ({name})", ratio(both, none), at_least(0.95))


def _rate(target: dict[str, object], script: ScriptSource, postmaster: int, kinds: list[str]) -> float:
    load = Load(clients=8, threads=1, duration_s=SECONDS)
    if not kinds:
        return ours(target, [script], {"scale": str(SCALE)}, load)[0].per_second
    profiler = _core.Profiler(kinds, HZ, [postmaster])
    profiler.start()
    try:
        return ours(target, [script], {"scale": str(SCALE)}, load)[0].per_second
    finally:
        profile = profiler.stop([])
        report(f"  sampling thread, CPU seconds ({'+'.join(kinds)})", profile.sampler_cpu_s)
        report(f"  lost records ({'+'.join(kinds)})", str(profile.lost))
