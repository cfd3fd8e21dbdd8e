"""The plan of `ironbench run`: validates the command's options for this machine, for a new or a resumed run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from secrets import randbelow

from msgspec.structs import replace as with_fields

from ironbench import engines, workloads
from ironbench.devices import arrange, expression
from ironbench.engines.base import Engine
from ironbench.errors import InputError, quoted, written
from ironbench.fields.lab import range_of
from ironbench.fields.run import RunFile, RunSection
from ironbench.fields.sections import DeviceSection, LayoutSection
from ironbench.host.fingerprint import content_key, fingerprint
from ironbench.lab import profiling, server_control, size
from ironbench.lab.build import Builder
from ironbench.model.plan import Plan
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.search import Search
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan import profiles, resolve, sweep, tags
from ironbench.records import Store, index
from ironbench.records.index import Listed
from ironbench.words import clean

_OF_DEVICES = ("capacity", "fs", "backing")


def planned(asked: RunFile) -> tuple[Plan, Secrets]:
    """Returns the validated plan. Raises InputError that names the invalid option."""
    own, repeats = asked.run, asked.measure.repeats or 1
    search = sweep.search(asked.load.clients, asked.load.rate, asked.load.limit, repeats)
    configurations = _configurations(asked, search)
    seed = randbelow(1 << 31) if asked.measure.seed is None else asked.measure.seed
    builder = Builder(seed, asked.measure.crash)
    setups = [builder.setup(name, sections) for name, sections in configurations]
    if setups[0].cell.load.rate_share is not None:
        cause = f"{asked.load.rate} is a percentage of a baseline's peak throughput, but only a lab measures a baseline"
        raise InputError(written("load.rate"), cause, "write for example --rate 500")
    server_control.require_use(setups)
    profile = profiles.read(asked.measure.profile)
    profiling.require(profile, setups)
    if asked.system.server and not (own.observe or asked.system.control):
        cause = "cannot be combined with --no-observe, because the machine would not be sampled"
        raise InputError("--server", cause, "remove one of the two")
    if asked.measure.budget:
        repeats, setups = _within_budget(asked, search, setups)
    _require_undecided(asked, engines.get(setups[0].system.engine))
    last, cells = setups[-1], [setup.cell for setup in setups]
    if search is None and cells[0].load.curve is None:
        # The workload may have changed the number of clients (`Workload.suited`).
        cells = [replace(cell, name=f"clients={cell.load.clients}") for cell in cells]
    name = asked.workload.name
    if own.progress is not None and workloads.get(name).drives:
        cause = f"workload {name} runs its own code and has no script transactions to report"
        raise InputError("--progress", cause, "remove --progress")
    if own.log_transactions or own.sampling_rate != 1.0:
        _require_log(own, setups[0])
    plan = sweep.plan(last.system, last.choice, cells, repeats, search)
    noted = resolve.texts(asked.tag)
    tags.validate("--tag", noted)
    plan = replace(
        plan,
        observe=own.observe,
        traces=str(Path(own.trace).absolute()) if own.trace else "",
        crash=asked.measure.crash,
        profile=profile,
        progress_s=own.progress,
        transaction_log=str(Path(own.log_transactions).absolute()) if own.log_transactions else "",
        sampling_rate=own.sampling_rate,
        seed_given=asked.measure.seed is not None,
        tags=noted,
    )
    return plan, builder.secrets[last.cell.name]


def _require_log(own: RunSection, setup: Setup) -> None:
    """Raises InputError if no transaction log can be written."""
    option, file = "--log-transactions", Path(own.log_transactions).absolute()
    workload, load = workloads.get(setup.choice.workload), setup.cell.load
    if not own.log_transactions:
        raise InputError("--sampling-rate", f"applies only to {option}", f"add {option} FILE")
    if not workload.in_parts(setup.system.engine, setup.choice.options):
        raise InputError(
            option, f"workload {workload.name} has no scripts whose transactions could be logged", f"remove {option}"
        )
    if load.workers or load.cluster:
        cause = "several processes generate the load, but only one can write the file"
        raise InputError(option, cause, f"use --threads instead of {'--workers' if load.workers else '--cluster'}")
    if file.exists():
        raise InputError(option, f"{file} already exists and would be overwritten", "use the name of a new file")
    if not (file.parent.is_dir() and os.access(file.parent, os.W_OK | os.X_OK)):
        raise InputError(
            option, f"{file.parent} is not a writable directory", "create the directory, or use another one"
        )


def resumed(asked: RunFile, store: Store) -> tuple[Plan, Secrets]:
    """Returns the plan of the newest run of the same command on this machine. Raises InputError if there is no such
    run."""
    plan, secrets = planned(asked)
    machine, cells = content_key(fingerprint()), {trial.cell.name for trial in plan.trials}
    loads = {trial.cell.load for trial in plan.trials}

    @cache
    def like(server: str) -> set[str]:
        """Returns the keys (`index.alike`) of the plan's trials in the index, one for each load. `server`: machine of
        the database server. If ironbench did not start the server, its machine is known only from the records."""
        return {index.alike(plan.system, plan.choice, load, (server, machine)) for load in loads}

    rows: dict[str, list[Listed]] = {}
    for row in store.listed():
        rows.setdefault(row.series, []).append(row)
    for series, of_it in sorted(rows.items(), reverse=True):
        swept = {row.cell for row in of_it if row.purpose == Purpose.SWEEP}
        if not any(row.alike in like(row.machine) for row in of_it) or not (plan.search or swept <= cells):
            continue
        before = store.records([row.id for row in of_it])
        if before and not _alike(plan, before[0]):
            continue
        # The seed determines the order of trials. With --resume, the user may omit --seed, but no other option.
        if before and asked.measure.seed in (None, before[0].cell.load.seed):
            other = {name: text for name, text in plan.tags.items() if before[0].tags.get(name) != text}
            for name, text in other.items():
                cause = f"--resume continues the run {series}, which does not have this tag"
                raise InputError(f"--tag {name}={text}", cause, "remove --tag or --resume")
            measure = with_fields(asked.measure, seed=before[0].cell.load.seed)
            plan, secrets = planned(with_fields(asked, measure=measure))
            known = before[0].seed_given
            return replace(plan, series=series, seed_given=known, tags=before[0].tags), secrets
    cause = f"{asked.run.results} has no run of this command on this machine"
    raise InputError("--resume", cause, "remove --resume to start a new run")


def _alike(plan: Plan, record: Record) -> bool:
    """Returns whether a record and the plan are from the same command. The caller has already checked that work and
    load are equal. This function compares workload options, search, power cut and profile."""
    searched = (record.search_range, record.limits) == (plan.search_range, plan.limits)
    how = (record.crash, record.profile) == (plan.crash, plan.profile)
    return searched and how and record.choice.options == plan.choice.options


def measured(store: Store, series: str) -> list[Record]:
    """Returns the records that the run has so far."""
    return store.records([row.id for row in store.listed() if row.series == series])


def _within_budget(asked: RunFile, search: Search | None, setups: Sequence[Setup]) -> tuple[int, list[Setup]]:
    """Chooses the number of blocks and the trial length with which the run detects the smallest difference within the
    budget. Returns the number of blocks, and the setups with the chosen trial length. Raises InputError."""
    budget_s = range_of("measure.budget").read("--budget", asked.measure.budget)
    if search:
        raise InputError(
            "--budget", "cannot be combined with a search, which determines the number of trials", "remove --budget"
        )
    if asked.measure.repeats is not None:
        raise InputError("--budget", "cannot be combined with --repeats", "remove one of the two")
    if any(setup.cell.load.curve is not None for setup in setups):
        raise InputError(
            "--budget",
            "cannot be combined with a load curve, which sets the length of a trial",
            "use --repeats instead",
        )
    if any(setup.cell.load.transactions is not None for setup in setups):
        hint = "use --duration instead of --transactions, or --repeats instead of --budget"
        raise InputError("--budget", "needs trials with a known duration", hint)
    if any(setup.cell.load.duration_s is None for setup in setups):
        cause = "needs trials with a known duration, but these trials end when their work is done"
        raise InputError("--budget", cause, "use --repeats instead of --budget")
    blocks, trial_s = size.of_run(setups, asked.load.duration != "", budget_s)
    return blocks, [size.of_length(setup, trial_s) for setup in setups]


def _require_undecided(asked: RunFile, engine: Engine) -> None:
    """Raises InputError if an option has no effect because a zero-latency part replaces what the option sets. A lab may
    declare both, because they can belong to different values of a factor.
    """
    think_s = range_of("load.think_time").read("--think-time", asked.load.think_time)
    decided: Mapping[str, Mapping[str, bool]] = {
        "log": {"--log": bool(asked.layout.log)},
        "temp": {"--temp": bool(asked.layout.temp)},
        "data": {"--memory-total": bool(asked.limits.memory_total), "--cache": asked.load.cache not in ("", "hot")},
        "client": {"--client-cpus": bool(asked.limits.client_cpus), "--think-time": think_s > 0},
    }
    for part in asked.system.ideal:
        names = engine.traits.ideal_settings.get(part, ())
        own = {f"--set {name}": name.lower().replace("-", "_") in names for name in asked.system.set}
        for option, given in {**decided.get(part, {}), **own}.items():
            if given:
                cause = f"cannot be combined with --ideal {part}, which determines this value"
                raise InputError(option, cause, "remove one of the two")


def _configurations(asked: RunFile, search: Search | None) -> list[tuple[str, RunFile]]:
    """Returns the name and the options of each configuration. The configurations differ in the number of clients or, in
    a search for a rate, in the rate. Raises InputError."""
    varied = search.of if search else "clients"
    if varied == "rate" and len(asked.sweep) > 1:
        cause = "a search for a rate needs a single number of clients"
        raise InputError(
            written("load.clients"), cause, "use one number of clients, or search for the best number of clients"
        )
    values = (search.low, search.high) if search else tuple(asked.sweep) or (asked.load.clients,)
    _require_label(asked.system.label)
    layout = LayoutSection(**{role: _place(role, getattr(asked.layout, role)) for role in arrange.ROLES})
    fixed = with_fields(asked, layout=layout, devices=_devices(asked, layout))
    found = []
    for value in values:
        load = with_fields(asked.load, limit=[])  # limits belong to the search, not to a configuration
        load = with_fields(load, rate=float(value)) if varied == "rate" else with_fields(load, clients=value)
        found.append((f"{varied}={value}", with_fields(fixed, load=load)))
    return found


def _require_label(text: str) -> None:
    if text != clean(text) or (text and not text.strip()):
        raise InputError(
            written("system.label"),
            f"{quoted(text)} is not a single-line name",
            "write for example --label 'WAL on SSD'",
        )


def _place(role: str, text: str) -> str:
    """Normalises a device expression, so that roles with equal expressions share a device. Returns a directory
    unchanged."""
    return expression.normalized(written(f"layout.{role}"), text) if arrange.is_expression(text) else text


def _devices(asked: RunFile, layout: LayoutSection) -> dict[str, str | DeviceSection]:
    """Returns the [devices] section of the run: the devices of `layout` with the properties that options set, such as
    the capacity. Returns an empty dict if no such option is set."""
    places = [getattr(layout, role) for role in arrange.ROLES]
    emulated = [where for where in places if arrange.is_expression(where)]
    chosen = {name: value for name in _OF_DEVICES if (value := getattr(asked.every_device, name))}
    unused = [*chosen, *(["trace"] if asked.run.trace else [])]
    if unused and not emulated:
        roles = ", ".join(written(f"layout.{role}") for role in arrange.ROLES)
        raise InputError(
            f"--{unused[0]}", "applies only to emulated devices", f"add an emulated device with one of {roles}"
        )
    return {model: DeviceSection(model=model, **chosen) for model in emulated} if chosen else {}
