"""One observed trial of a script on a test's own server, as a record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from ironbench import _core
from ironbench.model.driven import Driven
from ironbench.model.plan import Plan
from ironbench.model.record import Record, Status
from ironbench.model.system import Cell, Choice, Load, System, Trial
from ironbench.records import measures
from ironbench.trial import observe
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource


def driven(session: Any, script: str, load: Load, block: int = 0, client_cpus: tuple[int, ...] = ()) -> Record:
    sources = observe.sources(session, clients=load.clients)
    system, choice = System("postgres", "test", client_cpus=client_cpus or None), Choice("script")
    trial = Trial(Cell(f"clients={load.clients}", load), block)
    plan = Plan("series", system, choice, (trial,), 0)
    tasks = Tasks([ScriptSource("s", script, 1)])
    result = _core.drive(compiled_plan(session.target(), tasks, load, sources, plan, trial))
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    assert not summary["errors"], summary["error_messages"]
    found = Driven("", alive=True, summary=summary, histograms=result.histograms, samples=result.samples)
    observation, budget = observe.observed(found, load)
    metrics = {**observation.metrics, **measures.metrics(found)}
    elapsed_s = summary["elapsed_s"]
    record = Record("id", "series", system, choice, trial.cell, block, "lab", "", elapsed_s, Status.OK, metrics)
    assert budget is not None
    return replace(record, budget=budget)
