"""Cost of observers, and duration of `--help`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from bench.figures import at_most, report
from bench.peers import SELECT_ONLY, postgres
from ironbench import _core
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.model.system import Load
from ironbench.trial import observe
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

RUNS = 15
ONE_PERCENT = at_most(0.01, "≤ 1 %")
FEW_CLIENTS, MOST_CLIENTS = 8, 200


def main() -> None:
    help_page()
    with postgres(MOST_CLIENTS, "select-only", {"scale": "10"}) as session:
        for observer in observe.observers():
            said_of(session, observer.name, FEW_CLIENTS)
            if any(_own(observer.name, observe.sources(session, clients=MOST_CLIENTS), grows=True)):
                said_of(session, observer.name, MOST_CLIENTS)


def said_of(session: Session, name: str, clients: int) -> None:
    """Measures the share of one core that an observer uses with this number of clients."""
    sources = observe.sources(session, clients=clients)
    own = _own(name, sources)
    if not own:
        report(f"observer {name}", "has nothing to read on this machine")
        return
    # These two observers measure what the server spends on queries of observers; their own cost is included in every
    # result.
    measuring = [*_own("cpu", sources), *_own("processes", sources)]
    share = _share(session.target("prepared"), {*own, *measuring}, clients)
    report(
        f"observer {name}, {clients} clients, share of one core, server included", share, ONE_PERCENT, f"{share:.2%}"
    )


def _own(name: str, sources: Iterable[Source], grows: bool = False) -> list[Source]:
    """Returns the sources of one observer; optionally only those whose cost grows with the number of backends."""
    own = [source for source in sources if source.name.split(".")[0] == name]
    return [source for source in own if source.backend_cost_s > 0] if grows else own


def help_page() -> None:
    """Runs the same code as the installed `ironbench` in a new interpreter."""
    command = [sys.executable, "-m", "ironbench.start", "--help"]
    times = []
    for _ in range(RUNS):
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        times.append((time.monotonic() - start) * 1e3)
    middle = statistics.median(times)
    spread = f"{middle:.0f} (median of {RUNS}, {min(times):.0f} to {max(times):.0f})"
    report("ironbench --help, ms", middle, at_most(150), spread)


def _share(target: dict[str, Any], sources: Iterable[Source], clients: int) -> float:
    """Returns the CPU time of the sampling threads and of the server's answers to them, as a fraction of one core."""
    load = Load(clients=clients, duration_s=10)
    plan = compiled_plan(target, Tasks([ScriptSource("s", SELECT_ONLY, 1)], {"scale": "10"}), load, sources)
    result = _core.drive(plan)
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    _, budget = observe.observed(Driven("", alive=True, summary=summary, samples=result.samples))
    assert budget is not None
    return budget.observers * (os.cpu_count() or 1)
