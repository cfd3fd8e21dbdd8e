"""What the options of `ironbench run` declare: each is the field of a lab file that bears its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from secrets import randbelow
from typing import Any

from ironbench import engines, ranges, workloads
from ironbench.devices import arrange, expression
from ironbench.engines.base import Engine
from ironbench.errors import InputError, quoted, written
from ironbench.experiment import server_control, size
from ironbench.experiment.build import Builder
from ironbench.machine.fingerprint import content_key, fingerprint
from ironbench.model.plan import CRASH, LIMITS, RANGE, SEED_GIVEN, Plan
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.search import Search
from ironbench.model.secrets import Secrets
from ironbench.model.system import Setup
from ironbench.plan import curves, design, fields, resolve, sweep, tags
from ironbench.plan.labfile import Declared, MeasureSection
from ironbench.plan.vary import Level, Varied
from ironbench.record import Store, index
from ironbench.record.index import Listed
from ironbench.words import clean

_PAIRS = {"set": "--set", "with": "--with", "define": "-D"}
_OF_DEVICES = ("capacity", "fs", "backing")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of `run` as they were typed."""

    workload: str
    files: tuple[str, ...] = ()
    engine: str = ""
    dsn: str = ""
    server: str = ""
    control: str = ""
    restart: str = ""
    clients: str = "1"
    threads: int = 1
    workers: int = 0
    cluster: str = ""
    fewer_workers: bool = False
    rate: float | str | None = None
    """Text asks for a search."""
    limit: tuple[str, ...] = ()
    arrivals: str = "poisson"
    duration: str = ""
    transactions: int | None = None
    warmup: str = ""
    think_time: str = "0s"
    reconnect: int = 0
    max_tries: int | None = None
    on_error: str = "stop"
    reconnect_on_loss: bool = False
    report_per_statement: bool = False
    progress: int | None = None
    protocol: str = ""
    repeats: int | None = None
    budget: str = ""
    seed: int | None = None
    define: tuple[str, ...] = ()
    with_: tuple[str, ...] = ()
    set_: tuple[str, ...] = ()
    dump: str = ""
    setup: tuple[str, ...] = ()
    template: str = ""
    check: str = ""
    data: str = ""
    temp: str = ""
    log: str = ""
    capacity: str = ""
    fs: str = ""
    backing: str = ""
    trace: str = ""
    crash: str = ""
    parallelism: int | None = None
    ideal: str = ""
    memory: str = ""
    memory_total: str = ""
    server_cpus: str = ""
    client_cpus: str = ""
    cache: str = ""
    checkpoint: str = ""
    io: str = "auto"
    observe: bool = True
    prepare: str = ""
    cleanup: str = ""
    command_limit: str = ""
    tag: tuple[str, ...] = ()
    label: str = ""
    reference_score: float | None = None
    results: str = "ironbench-results"


def planned(options: RunOptions) -> tuple[Plan, Secrets]:
    """The validated plan. InputError names the option at fault."""
    repeats = options.repeats or 1
    search = sweep.search(options.clients, options.rate, options.limit, repeats)
    declared = _declared(options, search)
    builder = Builder(declared)
    setups = [builder.setup(cell) for cell in design.combined(declared)]
    server_control.require_use(setups)
    if options.server and not (options.observe or options.control):
        cause = "names a machine to watch, and --no-observe leaves watching out"
        raise InputError("--server", cause, "leave one of them out")
    if options.budget:
        repeats, setups = _within_budget(options, search, setups)
    _require_undecided(options, engines.get(setups[0].system.engine))
    last, cells = setups[-1], [replace(setup.cell, levels={}) for setup in setups]
    if options.progress is not None and workloads.get(options.workload).drives:
        cause = f"workload {options.workload} drives itself and has no transactions of scripts to tell of"
        raise InputError("--progress", cause, "leave it out")
    plan = sweep.plan(last.system, last.choice, cells, repeats, search)
    traces = str(Path(options.trace).absolute()) if options.trace else ""
    plan = replace(plan, observe=options.observe, traces=traces, crash=options.crash, progress_s=options.progress)
    plan = replace(plan, seed_given=options.seed is not None, tags=tags.read("--tag", options.tag))
    return plan, builder.secrets[last.cell.name]


def resumed(options: RunOptions, store: Store) -> tuple[Plan, Secrets]:
    """The plan of the newest run of the same command on this machine. InputError: there is none."""
    plan, secrets = planned(options)
    machine, cells = content_key(fingerprint()), {trial.cell.name for trial in plan.trials}
    loads = {trial.cell.load for trial in plan.trials}

    @cache
    def like(server: str) -> set[str]:
        """`server`: the machine that did the work, which for a running server only its records know."""
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
        # The seed decides the order of trials, and is the only thing that nobody need have written.
        if before and options.seed in (None, before[0].cell.load.seed):
            other = {name: text for name, text in plan.tags.items() if before[0].tags.get(name) != text}
            for name, text in other.items():
                cause = f"the trials of the run that goes on, {series}, do not have it"
                raise InputError(f"--tag {name}={text}", cause, "leave it out, or leave --resume out")
            plan, secrets = planned(replace(options, seed=before[0].cell.load.seed))
            known = SEED_GIVEN in before[0].conditions
            return replace(plan, series=series, seed_given=known, tags=before[0].tags), secrets
    cause = f"no run of this command on this machine is in {options.results}"
    raise InputError("--resume", cause, "leave it out to begin one")


def _alike(plan: Plan, record: Record) -> bool:
    """Whether the record, of like work and load, is of the plan's command: by its options, and by what it searched or
    cut."""
    asked = all(record.conditions.get(name, "") == plan.conditions.get(name, "") for name in (LIMITS, RANGE, CRASH))
    return asked and record.choice.options == plan.choice.options


def measured(store: Store, series: str) -> list[Record]:
    """The records of a run so far."""
    return store.records([row.id for row in store.listed() if row.series == series])


def _within_budget(options: RunOptions, search: Search | None, setups: Sequence[Setup]) -> tuple[int, list[Setup]]:
    """As many blocks, of such length, as resolve most within the budget. InputError."""
    budget_s = ranges.read("budget", "--budget", options.budget)
    if search:
        raise InputError("--budget", "a search takes as many trials as its answer needs", "leave it out")
    if options.repeats is not None:
        raise InputError("--budget", "chooses the repeats, and --repeats is given, too", "keep one of the two")
    if any(setup.cell.load.curve is not None for setup in setups):
        raise InputError("--budget", "a trial lasts as long as the curve of its load", "give --repeats in its place")
    if any(setup.cell.load.transactions is not None for setup in setups):
        hint = "give --duration in place of --transactions, or --repeats in place of --budget"
        raise InputError("--budget", "needs trials of a known time", hint)
    if any(setup.cell.load.duration_s is None for setup in setups):
        cause = "its trials end with their work, whose time is not known"
        raise InputError("--budget", cause, "give --repeats in place of --budget")
    blocks, trial_s = size.of_run(setups, options.duration != "", budget_s)
    return blocks, [size.of_length(setup, trial_s) for setup in setups]


def _require_undecided(options: RunOptions, engine: Engine) -> None:
    """InputError for what an ideal part decides, given together with it. In labs a level may free what others set."""
    think_s = ranges.read("think_time", "--think-time", options.think_time)
    decided: Mapping[str, Mapping[str, bool]] = {
        "log": {"--log": bool(options.log)},
        "temp": {"--temp": bool(options.temp)},
        "data": {"--memory-total": bool(options.memory_total), "--cache": options.cache not in ("", "hot")},
        "client": {"--client-cpus": bool(options.client_cpus), "--think-time": think_s > 0},
    }
    settings = resolve.pairs("--set", options.set_)
    for part in options.ideal.split(","):
        names = engine.traits.ideal_settings.get(part, ())
        own = {f"--set {name}": name.lower().replace("-", "_") in names for name in settings}
        for option, given in {**decided.get(part, {}), **own}.items():
            if given:
                cause = f"given together with --ideal {part}, which decides it"
                raise InputError(option, cause, "keep one of them")


def _declared(options: RunOptions, search: Search | None) -> Declared:
    """As a lab file would declare it, of one factor: the clients, or the rate that is searched."""
    values: dict[str, Any] = {name.rstrip("_"): value for name, value in asdict(options).items()}
    values |= {"name": options.workload, "label": _label(options.label), "ideal": options.ideal.split(",")}
    values |= {name: resolve.pairs(option, values[name]) for name, option in _PAIRS.items()}
    factor = search.of if search else "clients"
    counts: tuple[int | str, ...] = ()
    if curves.asked(options.clients):
        counts = (options.clients,)
    elif not (factor == "clients" and search):
        counts = resolve.counts("clients", written("load.clients"), options.clients)
    levels = (search.low, search.high) if search else counts
    values["clients"] = counts[0] if counts else 1
    values["rate"] = None if factor == "rate" else options.rate
    if factor == "rate" and len(counts) > 1:
        cause = "a search for a rate has one number of clients"
        raise InputError(written("load.clients"), cause, "name one, or search for clients")
    values |= {role: _place(role, values[role]) for role in arrange.ROLES}
    del values["limit"]  # of the search, which is none of a cell's here
    base: dict[str, Any] = {section: {} for section in fields.SECTIONS}
    for name, (section, field) in fields.SHORT.items():
        if name in values:
            base[section][field] = values[name]
            if name in ranges.RANGES and isinstance(values[name], int | float):
                ranges.RANGES[name].require(written(f"{section}.{field}"), values[name])
    base["devices"] = _devices(values)
    measure = {"seed": randbelow(1 << 31) if options.seed is None else options.seed, "crash": options.crash}
    fields.validate(measure, MeasureSection, "", ("measure",))
    return Declared(
        file="",
        name="run",
        question="",
        design="one-at-a-time",
        base=base,
        factors=(Varied(factor, tuple(Level(str(one), {("load", factor): one}) for one in levels)),),
        explicit=(),
        measure=fields.converted(measure, MeasureSection, ""),
        claims=(),
        source="",
    )


def _label(text: str) -> str:
    if text != clean(text) or (text and not text.strip()):
        raise InputError(
            written("system.label"),
            f"{quoted(text)} is not a name on one line",
            "write for example --label 'log on SSD'",
        )
    return text


def _place(role: str, text: str) -> str:
    """A directory as it is; a device expression in its normal form, so that roles on equal ones share a device."""
    return expression.normal(written(f"layout.{role}"), text) if arrange.is_expression(text) else text


def _devices(values: dict[str, Any]) -> dict[str, Any]:
    """[devices] where an option says more of them than their expressions do."""
    emulated = [values[role] for role in arrange.ROLES if arrange.is_expression(values[role])]
    chosen = {name: values[name] for name in _OF_DEVICES if values[name]}
    unused = [*chosen, *(["trace"] if values["trace"] else [])]
    if unused and not emulated:
        roles = ", ".join(written(f"layout.{role}") for role in arrange.ROLES)
        raise InputError(f"--{unused[0]}", "no emulated device is named", f"name one with one of {roles}")
    return {model: {"model": model, **chosen} for model in emulated} if chosen else {}
