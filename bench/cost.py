"""What watching costs, and how long `--help` takes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bench.pairs import said
from bench.peers import SELECT_ONLY, postgres
from ironbench import _core, observe
from ironbench.drive.plan import compiled_plan
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.system import Load
from ironbench.workloads import ScriptSource

RUNS = 15


def main() -> None:
    with postgres(8, "select-only", {"scale": "10"}) as session:
        sources = observe.sources(session)
        # These two tell what the server spends on our questions; their own cost is in every figure.
        measuring = [source for source in sources if source.name.split(".")[0] in ("cpu", "processes")]
        for observer in observe.observers():
            own = [source for source in sources if source.name.split(".")[0] == observer.name]
            if own:
                share = _share(session.target("prepared"), {*own, *measuring})
                said(f"observer {observer.name}, share of one core, server included", f"{share:.2%}", "≤ 1 %")
            else:
                said(f"observer {observer.name}", "has nothing to read on this machine", "≤ 1 %")
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


def _share(target: dict[str, Any], sources: Iterable[Source]) -> float:
    """CPU time of the sampling threads and of the server's answers to them, as a share of one core."""
    load = Load(clients=8, duration_s=10)
    plan = compiled_plan(target, [ScriptSource("s", SELECT_ONLY, 1)], {"scale": "10"}, load, sources)
    result = _core.drive(plan)
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    _, budget = observe.observed(Driven("", alive=True, summary=summary, samples=result.samples))
    assert budget is not None
    return budget.observers * (os.cpu_count() or 1)
