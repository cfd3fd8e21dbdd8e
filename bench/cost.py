"""What watching costs, and how long `--help` takes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.pairs import said
from bench.peers import SELECT_ONLY, ours, postgres
from ironbench import observe
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

RUNS = 15


def main() -> None:
    with postgres(8, "select-only", {"scale": "10"}) as session:
        sources = observe.sources(session)
        for observer in observe.observers():
            own = [source for source in sources if source.name.split(".")[0] == observer.name]
            if not own:
                said(f"observer {observer.name}, share of one core", "has no source here", "≤ 1 %")
                continue
            _, summary = ours(
                session.target("prepared"),
                [ScriptSource("s", SELECT_ONLY, 1)],
                {"scale": "10"},
                Load(clients=8, duration_s=10),
                own,
            )
            share = summary["observer_cpu_s"] / summary["elapsed_s"]
            said(f"observer {observer.name}, share of one core (our thread)", f"{share:.2%}", "≤ 1 %")
    command = [str(Path(sys.executable).parent / "ironbench"), "--help"]
    times = []
    for _ in range(RUNS):
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.monotonic() - start)
    said(
        "ironbench --help, ms",
        f"{statistics.median(times) * 1e3:.0f} (median of {RUNS}, {min(times) * 1e3:.0f} to {max(times) * 1e3:.0f})",
        "≤ 150",
    )
