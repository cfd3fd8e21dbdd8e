"""Drives one trial: counters before, the core's timed window, the workload's checks after."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ironbench import workloads
from ironbench.drive.plan import compiled_plan
from ironbench.drive.run import run
from ironbench.errors import IronbenchError
from ironbench.model.driven import Driven
from ironbench.model.observation import Source
from ironbench.model.plan import Plan
from ironbench.model.session import Session
from ironbench.model.system import Trial
from ironbench.printer import Printer


def drive(plan: Plan, session: Session, trial: Trial, sources: Iterable[Source], printer: Printer) -> Driven:
    """One trial from start to end. An engine that fails is not an exception: the result says so."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        return _driven(plan, session, trial, sources, printer, started)
    except IronbenchError as error:
        printer.error(error)
        return Driven(started, alive=session.alive(), failure=str(error))


def _driven(
    plan: Plan, session: Session, trial: Trial, sources: Iterable[Source], printer: Printer, started: str
) -> Driven:
    workload, options, load = workloads.get(plan.choice.workload), plan.choice.options, trial.cell.load
    compiled = compiled_plan(
        session.target(load.protocol, load.io),
        workload.scripts(session.engine, plan.choice),
        {**workload.variables(options), **plan.choice.defines},
        load,
        sources,
        plan.system.client_cpus or (),
    )
    before = workload.before(session, options)
    title = f"{plan.system.label}  {trial.cell.name}  {trial.purpose} {trial.block + 1}"
    with tempfile.TemporaryDirectory(prefix="ironbench-trial-") as folder, printer.bar(title) as show:
        log = Path(folder) / "child.log"
        result = run(compiled, load, session.engine in LIBRARIES, plan.system.server_cpus, log, show)
        written = log.read_bytes() if log.exists() else b""
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    alive = session.alive()
    checks = workload.check(session, options, before, summary) if alive and not summary["aborted"] else ()
    return Driven(
        started,
        alive,
        summary=summary,
        timeline=result.timeline,
        seconds=result.seconds,
        histograms=result.histograms,
        samples=result.samples,
        checks=checks,
        log=written,
    )


LIBRARIES = frozenset({"sqlite"})
"""Engines that live in a child process of their own while a trial runs (design §4)."""
