"""The `ironbench run` that repeats the trials of a system: what was chosen, without what follows from it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import engines, workloads
from ironbench.analyse.subjects import bare
from ironbench.devices import arrange, file_systems
from ironbench.errors import InputError, IronbenchError
from ironbench.model.commands import LIMIT_S, Commands
from ironbench.model.plan import CRASH
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.redact import redacted
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.process import place
from ironbench.units import exact


def run_command(records: Sequence[Record]) -> str:
    """One `ironbench run` for the trials of one subject. The load is written out; of the rest what is not usual."""
    choice, load = records[0].choice, records[0].cell.load
    options = _usual_options(choice) | choice.options
    system = _declared(records[0].system, choice.workload, options)
    clients = ",".join(map(str, sorted({record.cell.load.clients for record in records})))
    threads = max(record.cell.load.threads for record in records)
    words = ["ironbench", "run", choice.workload, *choice.scripts]
    words += ["--dsn", redacted(system.dsn)] if system.dsn else ["--engine", system.engine]
    words += ["--server", system.server] if system.server else []
    # In a lab, another cell may be the one for which they are there.
    cold = load.cache == "cold"
    words += ["--control", "ssh"] if system.control and (cold or system.server_cpus) else []
    words += ["--restart", redacted(system.restart)] if system.restart and cold else []
    words += ["--clients", _curve(load, "clients") or clients]
    words += ["--threads", str(threads)] if threads > 1 else []
    words += _load_options(load, choice, system.engine)
    repeats = 1 + max((record.block for record in records if record.purpose == Purpose.SWEEP), default=0)
    words += ["--repeats", str(repeats)] if repeats > 1 else []
    words += _own_data(choice)
    for key, value in sorted(choice.defines.items()):
        words += ["-D", f"{key}={value}"]
    for key, value in sorted(options.items() - _usual_options(choice).items()):
        words += ["--with", f"{key}={value}"]
    for key, value in sorted(system.settings.items()):
        words += ["--set", f"{key}={redacted(value, key)}"]
    words += _places(system.layout, choice.workload, options, system.engine)
    words += ["--crash", records[0].conditions[CRASH]] if CRASH in records[0].conditions else []
    words += ["--parallelism", str(system.parallelism)] if system.parallelism is not None else []
    words += ["--ideal", ",".join(system.ideal)] if system.ideal else []
    words += ["--memory", exact(system.memory_bytes)] if system.memory_bytes else []
    words += ["--memory-total", exact(system.memory_total_bytes)] if system.memory_total_bytes else []
    for option, cpus in (("--server-cpus", system.server_cpus), ("--client-cpus", system.client_cpus)):
        words += [option, ",".join(str(cpu) for cpu in cpus)] if cpus else []
    words += ["--reference-score", _exact(system.reference_score)] if system.reference_score else []
    words += _commands(system.commands)
    usual_label = choice.workload if bare(records[0]) else system.engine
    for key, value in records[0].tags.items():
        words += ["--tag", f"{key}={redacted(value, key)}"]
    words += ["--label", system.label] if system.label not in ("", usual_label) else []
    return shlex.join(words)


def _own_data(choice: Choice) -> list[str]:
    """Where the files were: whoever repeats it must hold the same."""
    data = choice.data
    if data is None:
        return []
    words = ["--dump", data.dump] if data.dump else []
    words += [word for file in data.setup for word in ("--setup", file)]
    words += ["--template", data.template] if data.template else []
    return [*words, "--check", data.check] if data.check else words


def _load_options(load: Load, choice: Choice, engine: str) -> list[str]:
    workload = workloads.find(choice.workload)
    usual_tries = workload.usual_max_tries if workload else 1
    usual_protocol = workload.default_protocol(engine) if workload else Load().protocol
    to_failures = workload is None or not workload.drives  # older records of work that drives itself name it, too
    words = ["--workers", str(load.workers)] if load.workers else []
    words += ["--cluster", load.cluster] if load.cluster else []
    words += ["--fewer-workers"] if load.fewer_workers else []
    if load.rate is not None:
        words += ["--rate", _curve(load, "rate") or _exact(load.rate), "--arrivals", load.arrivals]
    if load.transactions is not None:
        words += ["--transactions", str(load.transactions)]
    elif load.duration_s is not None and (load.curve is None or load.duration_s > load.curve.length_s):
        words += ["--duration", f"{_exact(load.duration_s)}s"]
    words += ["--warmup", "auto" if load.warmup_auto else f"{_exact(load.warmup_s)}s"]
    words += ["--think-time", f"{_exact(load.think_time_s)}s"] if load.think_time_s else []
    words += ["--reconnect", str(load.reconnect)] if load.reconnect else []
    words += ["--max-tries", str(load.max_tries)] if load.max_tries != usual_tries else []
    words += ["--on-error", load.on_error] if load.on_error != "stop" and to_failures else []
    words += ["--reconnect-on-loss"] if load.reconnect_on_loss else []
    words += ["--report-per-statement"] if load.report_per_statement else []
    words += ["--protocol", load.protocol] if load.protocol != usual_protocol else []
    words += ["--cache", load.cache] if load.cache else []
    words += ["--checkpoint", f"{_exact(load.checkpoint_s)}s"] if load.checkpoint_s else []
    words += ["--io", load.io] if load.io != "auto" else []
    return [*words, "--seed", str(load.seed)]


def _curve(load: Load, of: str) -> str:
    """As it was declared, where the load is a curve of that; of a file its name, for a record has only its points."""
    if load.curve is None or load.curve.of != of:
        return ""
    text = load.curve.text
    return text.rpartition(" (")[0] if text.startswith("file:") else text


def _commands(every: Sequence[Commands]) -> list[str]:
    """A run has one pair, which the shell runs like several."""
    prepare = " && ".join(one.prepare for one in every if one.prepare)
    cleanup = "; ".join(one.cleanup for one in reversed(every) if one.cleanup)
    words = ["--prepare", prepare] if prepare else []
    words += ["--cleanup", cleanup] if cleanup else []
    limit_s = max((one.limit_s for one in every), default=LIMIT_S)
    return [*words, *(["--command-limit", f"{_exact(limit_s)}s"] if limit_s != LIMIT_S else [])]


def _exact(value: float) -> str:
    """Every digit, without an exponent where the numbers are of human size."""
    return f"{value:.15g}"


def _usual_options(choice: Choice) -> dict[str, str]:
    """The workload's options that need no saying; none where it is not known."""
    workload = workloads.find(choice.workload)
    return workload.validated({}) if workload else {}


def _declared(system: System, workload_name: str, options: Mapping[str, str]) -> System:
    """The system as somebody declared it: its engine, its workload and its ideal parts added the rest."""
    engine, workload = engines.find(system.engine), workloads.find(workload_name)
    if engine is None or workload is None or system.dsn is not None:
        return system
    decided = {name for part in system.ideal for name in engine.traits.ideal_settings.get(part, ())}
    system = replace(system, settings={name: text for name, text in system.settings.items() if name not in decided})
    elsewhere: dict[str, str | None] = dict.fromkeys({"log", "temp"}.intersection(system.ideal))
    if is_usual(system.layout.data, system.engine):
        elsewhere["data"] = None
    limit = system.memory_total_bytes
    if limit is not None and system.ideal:
        limit -= sum(engine.ideal_bytes(system).values())
    layout = system.layout.at(elsewhere)
    declared = replace(system, layout=layout, memory_total_bytes=limit, settings={})

    def with_added(settings: dict[str, str]) -> dict[str, str]:
        chosen = replace(declared, settings=settings)
        chosen = replace(chosen, settings=workload.preset(chosen, options) | settings)
        return engine.for_devices(chosen) | chosen.settings

    try:
        usual = with_added({})
        own = {name: value for name, value in system.settings.items() if usual.get(name) != value}
        again = with_added(own)
    except (IronbenchError, OSError):  # programs or devices of another machine
        return replace(declared, settings=system.settings)
    follows = all(again.get(name) == value for name, value in system.settings.items())
    return replace(declared, settings=own if follows else system.settings)


def is_usual(directory: str | None, engine: str) -> bool:
    """Whether it is where data of this engine, of some version, lie when nobody says where."""
    if directory is None:
        return False
    path = Path(directory)
    _, _, version = path.name.rpartition("-")
    with contextlib.suppress(InputError):  # no home
        return path == place.default(engine, version)
    return False


def _places(layout: Layout, workload_name: str, options: Mapping[str, str], engine: str) -> list[str]:
    """Directories, and the models of emulated devices: these are mounted anew in each run."""
    models = {partition.role: device.model for device in layout.devices for partition in device.partitions}
    named = {role: models.get(role) or getattr(layout, role) for role in arrange.ROLES}
    words = [word for role, where in named.items() if where for word in (f"--{role}", where)]
    if not layout.devices:
        return words
    device = layout.devices[0]
    workload = workloads.find(workload_name)
    roles = [partition.role for partition in device.partitions]
    size = sum(partition.bytes for partition in device.partitions)
    if workload and size != _usual_bytes(roles, models, workload.estimate_bytes(engine, options)):
        words += ["--capacity", exact(size)]
    words += ["--fs", device.file_system] if device.file_system != file_systems.DEFAULT else []
    return [*words, *(["--backing", device.backing] if device.backing != arrange.RAM else [])]


def _usual_bytes(roles: Collection[str], placed: Collection[str], estimate_bytes: int) -> int:
    return sum(arrange.usual_bytes(role, placed, estimate_bytes) for role in roles)
