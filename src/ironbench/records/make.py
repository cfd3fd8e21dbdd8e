"""Makes the record of a trial."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import shutil

import msgspec

from ironbench import _core, engines, workloads
from ironbench.host.fingerprint import fingerprint
from ironbench.model.driven import Driven
from ironbench.model.observation import NOT_OBSERVED, Observation
from ironbench.model.plan import Plan, record_id
from ironbench.model.record import SLICES, TRIALS, Budget, Record
from ironbench.model.redact import redacted, redacted_sql
from ironbench.model.session import Session
from ironbench.model.system import System, Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.records import attached, judge, measures
from ironbench.records.described import describe
from ironbench.records.store import Store
from ironbench.trial.drive import checkpoints
from ironbench.trial.load import Loaded, restore


def keep(
    store: Store,
    plan: Plan,
    trial: Trial,
    driven: Driven,
    notes: TrialNotes,
    *,
    loaded: Loaded | None = None,
    observation: Observation | None = None,
    budget: Budget | None = None,
    session: Session | None = None,
) -> Record:
    """Judges the trial, writes its record and evidence, and returns the record. `notes`: notes from the preparation of
    the trial. `session`: None if no engine was started."""
    observation = observation or NOT_OBSERVED
    prepared = notes.merge(driven.prepared.conditions, driven.prepared.warnings)
    workload = workloads.get(plan.choice.workload)
    options = plan.choice.options
    # Work that ends by itself has no steady state, so its checkpoints are not checked. The write backlog that it leaves
    # behind is measured instead.
    endless = workload.usual_duration_s(options) is not None
    cycles = endless and checkpoints.made(plan.system, plan.choice)
    seen = judge.warnings(plan.system, trial.cell.load, driven, observation, budget, cycles)
    figures, doubts = workload.assessed(driven, seen)
    before = prepared.warnings
    if driven.summary and judge.wrote(driven, observation) is False:
        before = tuple(one for one in before if one.code != restore.AS_FOUND)
    facts = session.facts() if driven.alive and session else None
    settings = {**(facts or {}).get("settings", {}), **plan.system.settings}
    lossy = judge.durability(engines.find(plan.system.engine), settings)
    warnings = (*before, *seen, *doubts, *lossy)
    status, causes = judge.status(driven, warnings)
    known = {
        **(loaded.metrics() if loaded else {}),
        **(capacity(session) if session else {}),
        **observation.metrics,
        **measures.metrics(driven, workload.script_figures),
        **figures,
    }
    machine = store.keep_shared("machines", msgspec.to_builtins(fingerprint()))
    record = Record(
        id=record_id(plan.series, trial),
        series=plan.series,
        system=plan.system,
        choice=plan.choice,
        cell=trial.cell,
        block=trial.block,
        purpose=trial.purpose,
        started_at=driven.started_at,
        elapsed_s=driven.summary.get("elapsed_s", 0.0),
        status=status,
        metrics=measures.concise(known if workload.counts_all(options) else measures.of_no_unit(known)),
        checks=driven.checks,
        warnings=warnings,
        causes=causes,
        budget=budget or Budget(),
        machine=machine,
        server_machine=_server_machine(plan.system, session, driven, machine),
        engine="" if facts is None else store.keep_shared("engines", facts),
        scripts={
            name: store.keep_shared("scripts", {"text": redacted_sql(text)}) for name, text in driven.scripts.items()
        },
        software=software(),
        stage=trial.stage,
        attempt=trial.attempt,
        conditions=dict(prepared.conditions),
        method=SLICES if plan.turns_since else TRIALS,
        turns_since=plan.turns_since,
        seed_given=plan.seed_given,
        search_range=plan.search_range,
        limits=plan.limits,
        requirements=plan.requirements,
        search_result=prepared.search_result,
        crash=plan.crash,
        profile=plan.profile,
        power_cut=driven.power_cut,
        answers=driven.answers,
        commands=prepared.commands,
        statements=measures.statements(driven),
        tags={name: redacted(text, name) for name, text in plan.tags.items()},
        described=describe(plan.choice, plan.system.engine, trial.cell.load.clients),
    )
    files: dict[str, bytes] = {}
    if timed := measures.timed(driven):
        files[attached.TIMED] = attached.written_timed(timed)
    if prepared.output:
        files["commands.log"] = prepared.output.encode()
    if driven.workers:
        keys = {number: store.keep_shared("machines", one) for number, one in driven.fingerprints.items()}
        files[attached.WORKERS] = attached.written_workers(driven.workers, keys)
    if driven.inside_server:
        files[attached.INSIDE] = attached.written_inside(driven.inside_server)
    return store.keep(record, driven, observation, files, driven.profile.stacks if driven.profile is not None else ())


def _server_machine(system: System, session: Session | None, driven: Driven, here: str) -> str:
    """Returns the content key of the fingerprint of the machine on which an existing server runs. Returns "" if the
    machine is unknown, or if ironbench started the engine itself. `here`: content key of this machine's fingerprint."""
    if driven.elsewhere:
        return driven.elsewhere.machine
    return here if system.dsn is not None and session is not None and session.processes() else ""


def capacity(session: Session) -> dict[str, float]:
    """Returns for each role of a directory, such as `data`, the used fraction of the directory's file system. Flash
    drives become slower when they are nearly full. Rotating disks become slower when their inner tracks are used.

    Skips directories that belong to another user and are not accessible.
    """
    shares = {}
    for role, directory in session.directories().items():
        try:
            usage = shutil.disk_usage(directory)
        except PermissionError:
            continue
        if usage.total == 0:  # a file system without a size, such as ramfs (statfs(2))
            continue
        shares[f"capacity_used_share{{role={role}}}"] = usage.used / usage.total
    return shares


@functools.cache
def software() -> dict[str, str]:
    """Returns the versions of ironbench, its build profile, Python, and the packages that can affect a result."""
    packages = {"numpy", *(one for name in engines.names() for one in engines.get(name).traits.packages)}
    return {
        "ironbench": _core.VERSION,
        "build": _core.BUILD_PROFILE,
        "python": platform.python_version(),
        **{name: version for name in sorted(packages) if (version := _version(name))},
    }


def _version(package: str) -> str:
    """Returns the version of a package. Returns "" if the package belongs to an extra that is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
