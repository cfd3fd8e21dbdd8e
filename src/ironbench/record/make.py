"""Puts one record together from everything the stages before it know."""

from __future__ import annotations

import shutil

import msgspec

from ironbench import workloads
from ironbench.load import Loaded
from ironbench.machine.fingerprint import fingerprint
from ironbench.model.driven import Driven
from ironbench.model.observation import Observation
from ironbench.model.plan import Plan
from ironbench.model.record import Budget, Record
from ironbench.model.session import Session
from ironbench.model.system import Trial
from ironbench.record import judge, measures
from ironbench.record.software import software
from ironbench.record.store import Evidence, Store


def keep(
    store: Store,
    plan: Plan,
    session: Session,
    loaded: Loaded,
    trial: Trial,
    driven: Driven,
    observed: tuple[Observation, Budget | None],
) -> Record:
    """Judges the trial, writes its record and evidence, and returns the record."""
    observation, budget = observed
    workload = workloads.get(plan.choice.workload)
    warnings = judge.warnings(
        plan.system, trial.cell.load, driven, observation, budget, workload.writes(plan.choice.options)
    )
    status, cause = judge.status(driven, warnings)
    record = Record(
        id=f"{plan.series}-{trial.cell.name.replace('=', '')}-{trial.purpose[0]}{trial.block}",
        series=plan.series,
        system=plan.system,
        choice=plan.choice,
        cell=trial.cell,
        block=trial.block,
        purpose=trial.purpose,
        started_at=driven.started_at,
        elapsed_s=driven.summary.get("elapsed_s", 0.0),
        status=status,
        metrics=measures.concise(
            {**loaded.metrics(), **capacity(session), **observation.metrics, **measures.metrics(driven)}
        ),
        checks=driven.checks,
        warnings=warnings,
        cause=cause,
        budget=budget or Budget(),
        machine=store.keep_shared("machines", msgspec.to_builtins(fingerprint())),
        engine=store.keep_shared("engines", session.facts()) if driven.alive else "",
        software=software(),
    )
    evidence = Evidence(driven.timeline, driven.seconds, observation.series, driven.histograms, driven.log)
    return store.keep(record, evidence)


def capacity(session: Session) -> dict[str, float]:
    """How full each role's file system is: flash slows down when nearly full, a disk when its inner tracks are used."""
    found = {}
    for role, directory in session.directories().items():
        usage = shutil.disk_usage(directory)
        found[f"capacity_used_share{{role={role}}}"] = usage.used / usage.total
    return found
