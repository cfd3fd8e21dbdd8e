"""What `ironbench run` was asked for, validated as a whole before anything is started, then carried out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import randbelow

from ironbench import engines, ranges, units, workloads
from ironbench.cli import powercut
from ironbench.devices import arrange, file_systems
from ironbench.drive import caches
from ironbench.errors import InputError, nearest, quoted
from ironbench.experiment import best_load, loop
from ironbench.machine import space
from ironbench.model.plan import Plan
from ironbench.model.record import Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.plan import searching, sweep, values
from ironbench.printer import Printer
from ironbench.process import place
from ironbench.record import Store
from ironbench.words import clean, counted

UNASSESSED_S = 5.0
"""The warm-up where a pilot was to decide it and could not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of `run` as they were typed."""

    workload: str
    files: tuple[str, ...]
    engine: str
    dsn: str
    clients: str
    threads: int
    rate: float | str | None
    """Text asks for a search."""
    arrivals: str
    duration: str
    transactions: int | None
    warmup: str
    think_time: str
    max_tries: int
    on_error: str
    report_per_statement: bool
    progress: int | None
    protocol: str
    repeats: int
    seed: int | None
    define: tuple[str, ...]
    with_: tuple[str, ...]
    set_: tuple[str, ...]
    data: str
    temp: str
    log: str
    memory: str
    memory_total: str
    server_cpus: str
    client_cpus: str
    cache: str
    checkpoint: str
    io: str
    observe: bool
    label: str
    results: str
    capacity: str = ""
    fs: str = ""
    backing: str = ""
    trace: str = ""
    crash: str = ""
    limit: tuple[str, ...] = ()
    reference_score: float | None = None


def carried_out(asked: Asked, json: bool) -> int:
    """Plans, runs, shows; the exit code (docs/guide/statuses.md)."""
    printer = Printer()
    plan, secrets = planned(asked)
    store = Store(Path(asked.results))
    store.validate()
    workload = workloads.get(plan.choice.workload)
    protocol = engines.get(plan.system.engine).protocol(asked.protocol)
    for caution in workload.cautions(plan.system.engine, plan.choice, protocol):
        printer.say(f"caution: {caution}")
    if where := workload.where(plan.system):
        printer.say(where)
    if plan.search:
        printer.say(f"search for the best {plan.search.of} in {plan.search.low} to {plan.search.high}")
    else:
        count = len(plan.trials) + plan.confirmations
        printer.say(f"{counted(count, 'trial')}, {_time(plan)}")
    records = loop.run(plan, secrets, store, printer)
    if json:
        from ironbench.report.as_json import run_document

        found = best_load.answer(plan.search, records) if plan.search else None
        printer.data(run_document(records, store, found))
    else:
        from ironbench.report.formats.text import run_summary, search_summary

        if plan.search and plan.search.of == "rate":
            printer.data(search_summary(plan.search, records, store))
        else:
            run_summary(records, store, printer)
        printer.say(f"records: {store.directory / 'trials'}  series: {plan.series}")
    code = exit_code(records)
    if code == SUSPECT:
        printer.say(suspect_words(records))
    return code


def _time(plan: Plan) -> str:
    """How long the trials take, as far as it is known: nobody knows the time of a number of transactions or queries."""
    words = f"about {units.span(plan.estimate_s)} of warm-up"
    if all(trial.cell.load.duration_s for trial in plan.trials):
        return f"{words} and measuring"
    return f"{words}, and measuring, whose time is not known" if plan.estimate_s else "whose time is not known"


SUSPECT = 3


def suspect_words(records: Sequence[Record]) -> str:
    """Why a run that finished ends with exit code 3."""
    from ironbench.analyse.unlike import merged

    doubtful = [record for record in records if record.status is Status.SUSPECT]
    causes = merged([record.cause for record in doubtful if record.cause])
    more = f", and {counted(len(causes) - 1, 'other cause')}" if len(causes) > 1 else ""
    first = next(iter(causes), "no cause recorded")
    return f"exit code {SUSPECT}: {len(doubtful)} of {counted(len(records), 'trial')} suspect: {first}{more}"


def exit_code(records: list[Record]) -> int:
    statuses = {record.status for record in records}
    if not statuses or statuses & {Status.FAILED, Status.VOIDED}:
        return 1
    if Status.CUT_SHORT in statuses:
        return 130
    return SUSPECT if Status.SUSPECT in statuses else 0


def planned(asked: Asked) -> tuple[Plan, Secrets]:
    """The validated plan. InputError names the option at fault."""
    workload = workloads.get(asked.workload)
    asked = replace(asked, engine=asked.engine or engines.default(workload.needs).name)
    engine = engines.get(asked.engine)
    if engine.name not in workload.engines:
        raise InputError(
            f"--engine {engine.name}",
            f"workload {workload.name} does not run on it",
            f"it runs on: {', '.join(workload.engines)}",
        )
    only_scripts_take_files(asked.files, workload)
    search = searching.search(asked.clients, asked.rate, asked.limit, asked.repeats)
    by_clients = search is not None and search.of == "clients"
    clients = () if by_clients else values.counts("clients", "--clients", asked.clients)
    often_s = _checkpoint(asked)
    choice = _choice(asked, workload)
    estimate_bytes = workload.estimate_bytes(engine.name, choice.options)
    wanted = preset(_system(asked, often_s, estimate_bytes), workload, choice)
    system, secrets = engine.validated(wanted, search.high if search and by_clients else max(clients))
    if search is None:
        load = _load(asked, workload, choice, often_s)
        plan = sweep.sweep(system, choice, load, clients, asked.threads, asked.repeats, asked.observe)
    else:
        load = _load(asked, workload, choice, often_s, clients)
        plan = sweep.searching(system, choice, load, search, asked.threads, asked.observe)
    caches.require(system, plan.trials[0].cell.load)
    for trial in plan.trials:
        workload.accepts(system, trial.cell.load, choice)
    workload.fits(system, choice)
    workload.compile(engine.name, choice, engine.protocol(asked.protocol))
    room(system, estimate_bytes)
    if asked.progress is not None:
        if workload.drives:
            cause = f"workload {workload.name} drives itself and has no transactions of scripts to tell of"
            raise InputError("--progress", cause, "leave it out")
        plan = replace(plan, progress_s=asked.progress)
    if asked.trace:
        plan = replace(plan, traces=str(Path(asked.trace).absolute()))
    if asked.crash:
        powercut.require(asked.crash, system, workload, choice)
        plan = replace(plan, crash=asked.crash)
    return plan, secrets


def preset(system: System, workload: workloads.Workload, choice: Choice) -> System:
    """With the settings that suit the workload; those that the user chose win. A server of others stays as it is."""
    if system.dsn is not None:
        return system
    return replace(system, settings=workload.preset(system, choice.options) | system.settings)


def only_scripts_take_files(files: Sequence[str], workload: workloads.Workload) -> None:
    if files and workload.name != "script":
        raise InputError(
            files[0],
            f"workload {workload.name} has scripts of its own",
            f"to run your own: ironbench run script {' '.join(files)}",
        )


def room(system: System, estimate_bytes: int) -> None:
    """Refuses data that cannot fit. A directory of ours may hold them already: the load sees that, and asks again."""
    data = system.layout.data
    device_bytes = arrange.room_bytes(system.layout.devices, "data")
    if device_bytes is not None:
        arrange.require_room(device_bytes, estimate_bytes)
    elif data is not None and not place.ours(Path(data)):
        space.require(data, estimate_bytes, "the workload's data")


def _checkpoint(asked: Asked) -> float | None:
    """Time between checkpoints. InputError for an engine that has none, or where it is set twice."""
    if not asked.checkpoint:
        return None
    often_s = ranges.read("checkpoint", "--checkpoint", asked.checkpoint)
    if not engines.get(asked.engine).can("checkpoints"):
        raise InputError("--checkpoint", f"{asked.engine} has no such checkpoints", "leave it out")
    setting = engines.get(asked.engine).administration.checkpoint_setting
    if setting in values.pairs("--set", asked.set_):
        raise InputError("--checkpoint", f"given together with --set {setting}", "choose one of them")
    return often_s


def _as_setting(asked: Asked, often_s: float | None) -> dict[str, str]:
    """Settings by which a server of ours keeps that time itself, spreading the writing over it."""
    if often_s is None or asked.dsn:
        return {}
    return dict(engines.get(asked.engine).administration.checkpoint_settings(often_s))


def _system(asked: Asked, often_s: float | None, estimate_bytes: int) -> System:
    own = _as_setting(asked, often_s)
    available = os.sched_getaffinity(0)
    return System(
        engine=asked.engine,
        label=_label(asked.label)
        or (asked.workload if engines.get(asked.engine).can("bare machine") else asked.engine),
        settings=values.pairs("--set", asked.set_) | own,
        layout=_layout(asked, estimate_bytes),
        memory_bytes=_size("memory", asked.memory),
        memory_total_bytes=_size("memory_total", asked.memory_total),
        server_cpus=values.cpus("--server-cpus", asked.server_cpus, available) if asked.server_cpus else None,
        client_cpus=values.cpus("--client-cpus", asked.client_cpus, available) if asked.client_cpus else None,
        dsn=asked.dsn or None,
        reference_score=asked.reference_score,
    )


def _label(text: str) -> str:
    if text != clean(text) or (text and not text.strip()):
        raise InputError(
            "--label", f"{quoted(text)} is not a name on one line", "write for example --label 'log on SSD'"
        )
    return text


def _size(quantity: str, text: str) -> int | None:
    return int(ranges.read(quantity, f"--{quantity.replace('_', '-')}", text)) if text else None


def _layout(asked: Asked, estimate_bytes: int) -> Layout:
    """A directory contains `/` or starts with `.`; anything else is a device expression."""
    told = {"data": asked.data, "temp": asked.temp, "log": asked.log}
    capacity_bytes = _size("capacity", asked.capacity)
    wanted = arrange.shared(told, capacity_bytes, asked.fs or file_systems.DEFAULT, asked.backing or arrange.RAM)
    if not wanted:
        for option, text in (
            ("--capacity", asked.capacity),
            ("--fs", asked.fs),
            ("--backing", asked.backing),
            ("--trace", asked.trace),
        ):
            if text:
                raise InputError(option, "no emulated device is named", "name one with --data, --temp or --log")
    real = {role: text for role, text in told.items() if text and not arrange.is_expression(text)}
    places = {role: str(Path(text).absolute()) for role, text in real.items()}
    return arrange.laid_out(Layout().at(places), arrange.arranged(wanted, estimate_bytes, cuttable=bool(asked.crash)))


def _load(
    asked: Asked,
    workload: workloads.Workload,
    choice: Choice,
    often_s: float | None,
    clients: Sequence[int] = (),
) -> Load:
    """`clients`: of a search for a rate."""
    duration = ranges.read("duration", "--duration", asked.duration) if asked.duration else None
    if duration is None and asked.transactions is None:
        duration = workload.usual_duration_s(choice.options)
    if len(clients) > 1:
        raise InputError(
            "--clients", "a search for a rate has one number of clients", "name one, or search for clients"
        )
    many = clients[0] if clients else 1
    return Load(
        clients=many,
        threads=min(asked.threads, many),
        rate=asked.rate if isinstance(asked.rate, float) else None,
        arrivals=_one_of("--arrivals", asked.arrivals, ["poisson", "fixed"]),
        think_time_s=ranges.read("think_time", "--think-time", asked.think_time),
        duration_s=duration,
        transactions=asked.transactions,
        warmup_s=_warmup_s(asked, workload),
        warmup_auto=asked.warmup == "auto",
        max_tries=asked.max_tries,
        on_error=_one_of("--on-error", asked.on_error, ["stop", "continue"]),
        report_per_statement=asked.report_per_statement,
        protocol=_one_of("--protocol", asked.protocol, ["prepared", "extended", "simple"]),
        seed=randbelow(1 << 31) if asked.seed is None else asked.seed,
        cache=_one_of("--cache", asked.cache, list(caches.STATES)) if asked.cache else "",
        checkpoint_s=None if _as_setting(asked, often_s) else often_s,
        io=_one_of("--io", asked.io, ["auto", "io_uring", "epoll"]),
    )


def _warmup_s(asked: Asked, workload: workloads.Workload) -> float:
    if asked.warmup == "auto":
        return UNASSESSED_S
    return ranges.read("warmup", "--warmup", asked.warmup) if asked.warmup else workload.usual_warmup_s


def _one_of(option: str, text: str, known: list[str]) -> str:
    if text not in known:
        raise InputError(option, f"{text!r} is unknown", nearest(text, known))
    return text


def _choice(asked: Asked, workload: workloads.Workload) -> Choice:
    found = Choice(
        workload=workload.name,
        options=workload.validated(values.pairs("--with", asked.with_)),
        defines=values.pairs("-D", asked.define),
        scripts=asked.files,
    )
    return workload.identified(found)
