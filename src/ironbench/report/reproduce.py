"""Derives the `ironbench run` command that repeats the trials of a system."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from ironbench import engines, workloads
from ironbench.devices import arrange, file_systems
from ironbench.errors import IronbenchError
from ironbench.model.commands import LIMIT_S, Commands
from ironbench.model.own_data import OwnData
from ironbench.model.purpose import Purpose
from ironbench.model.record import Record
from ironbench.model.redact import redacted
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.plan import run_file
from ironbench.records.described import is_usual_place
from ironbench.study.subjects import on_bare_machine
from ironbench.units import exact


def run_command(records: Sequence[Record]) -> str:
    """Returns the `ironbench run` command that repeats the trials of a system. The command always contains the load.
    Other options are included only if they differ from their defaults."""
    choice, load = records[0].choice, records[0].cell.load
    options = _default_options(choice) | choice.options
    system = _declared(records[0].system, choice.workload, options)
    document = {
        "system": _system(system, load, choice.workload if on_bare_machine(records[0]) else system.engine),
        "layout": _places(system.layout),
        "every_device": _every_device(system.layout, choice.workload, options, system.engine),
        "limits": {
            "memory_total": exact(system.memory_total_bytes) if system.memory_total_bytes else "",
            "server_cpus": _cpus(system.server_cpus),
            "client_cpus": _cpus(system.client_cpus),
            "latency": f"{_exact(1000 * system.latency_s)}ms" if system.latency_s else "",
        },
        "data": _own_data(choice),
        "workload": {"with": dict(options.items() - _default_options(choice).items()), "define": choice.defines},
        "load": _load(records, choice, system.engine),
        "commands": _commands(system.commands),
        "measure": {
            "repeats": _repeats(records),
            "seed": load.seed,
            "crash": records[0].crash,
            "profile": records[0].profile.text if records[0].profile else "",
        },
        "tag": {key: redacted(value, key) for key, value in records[0].tags.items()},
    }
    return shlex.join(["ironbench", "run", choice.workload, *choice.scripts, *run_file.words(document)])


def _system(system: System, load: Load, usual_label: str) -> dict[str, Any]:
    # The system may declare `control` and `restart` for other configurations of the lab. They are included only if this
    # configuration needs them.
    cold = load.cache == "cold"
    return {
        "engine": "" if system.dsn else system.engine,
        "dsn": redacted(system.dsn) if system.dsn else "",
        "server": system.server or "",
        "control": "ssh" if system.control and (cold or system.server_cpus) else "",
        "restart": redacted(system.restart) if system.restart and cold else "",
        "label": system.label if system.label != usual_label else "",
        "memory": exact(system.memory_bytes) if system.memory_bytes else "",
        "parallelism": system.parallelism,
        "reference_score": _exact(system.reference_score) if system.reference_score else None,
        "ideal": list(system.ideal) or "",
        "set": {key: redacted(value, key) for key, value in system.settings.items()},
    }


def _cpus(cpus: Sequence[int] | None) -> str:
    return ",".join(map(str, cpus or ()))


def _repeats(records: Sequence[Record]) -> int | None:
    blocks = 1 + max((record.block for record in records if record.purpose == Purpose.SWEEP), default=0)
    return blocks if blocks > 1 else None


def _own_data(choice: Choice) -> dict[str, Any]:
    """Returns the options with the paths of the user's own data. Repeating the run needs the same files."""
    data = choice.data or OwnData()
    return {"dump": data.dump, "setup": list(data.setup), "template": data.template, "check": data.check}


def _load(records: Sequence[Record], choice: Choice, engine: str) -> dict[str, Any]:
    load = records[0].cell.load
    workload = workloads.find(choice.workload)
    usual_tries = workload.usual_max_tries if workload else 1
    usual_protocol = workload.default_protocol(engine) if workload else Load().protocol
    # Workloads that drive themselves ignore `on_error`, but older records still contain it.
    to_failures = workload is None or not workload.drives
    clients = ",".join(map(str, sorted({record.cell.load.clients for record in records})))
    timed = load.transactions is None and load.duration_s is not None
    by_curve = load.curve is not None and load.duration_s is not None and load.duration_s <= load.curve.length_s
    return {
        "clients": _curve(load, "clients") or clients,
        "threads": max(record.cell.load.threads for record in records),
        "workers": load.workers,
        "cluster": load.cluster,
        "fewer_workers": load.fewer_workers,
        "rate": None if load.rate is None else _curve(load, "rate") or _exact(load.rate),
        "arrivals": load.arrivals,
        "duration": _time(load.duration_s) if timed and not by_curve else "",
        "transactions": load.transactions,
        "warmup": "auto" if load.warmup_auto else _time(load.warmup_s),
        "think_time": _time(load.think_time_s),
        "reconnect": load.reconnect,
        "max_tries": load.max_tries if load.max_tries != usual_tries else None,
        "on_error": load.on_error if to_failures else "stop",
        "reconnect_on_loss": load.reconnect_on_loss,
        "report_per_statement": load.report_per_statement,
        "protocol": load.protocol if load.protocol != usual_protocol else "",
        "cache": load.cache,
        "checkpoint": _time(load.checkpoint_s) if load.checkpoint_s else "",
        "io": load.io,
    }


def _curve(load: Load, of: str) -> str:
    """Returns the load's curve as the user declared it. A curve from a file is returned as the file's name. Returns an
    empty text if the load has no curve of this kind."""
    if load.curve is None or load.curve.of != of:
        return ""
    text = load.curve.text
    return text.rpartition(" (")[0] if text.startswith("file:") else text


def _commands(every: Sequence[Commands]) -> dict[str, Any]:
    """Returns the options with the user's commands. A run has only one `prepare` and one `cleanup` option, so several
    commands are joined to a sequence that the shell executes."""
    limit_s = max((one.limit_s for one in every), default=LIMIT_S)
    return {
        "prepare": " && ".join(one.prepare for one in every if one.prepare),
        "cleanup": "; ".join(one.cleanup for one in reversed(every) if one.cleanup),
        "command_limit": _time(limit_s) if limit_s != LIMIT_S else "",
    }


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{_exact(seconds)}s"


def _exact(value: float) -> str:
    """Formats a number with all its digits and without an exponent."""
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def _default_options(choice: Choice) -> dict[str, str]:
    """Returns the default options of the workload. Returns an empty dict if this version does not know the workload."""
    workload = workloads.find(choice.workload)
    return workload.validated({}) if workload else {}


def _declared(system: System, workload_name: str, options: Mapping[str, str]) -> System:
    """Returns the system as the user declared it. Removes the settings and limits that the engine, the workload and
    zero-latency devices added."""
    engine, workload = engines.find(system.engine), workloads.find(workload_name)
    if engine is None or workload is None or system.dsn is not None:
        return system
    decided = {name for part in system.ideal for name in engine.traits.ideal_settings.get(part, ())}
    system = replace(system, settings={name: text for name, text in system.settings.items() if name not in decided})
    elsewhere: dict[str, str | None] = {}
    if is_usual_place(system.layout.data, system.engine):
        elsewhere["data"] = None
    limit = system.memory_total_bytes
    if limit is not None and system.ideal:
        limit -= sum(engine.ideal_bytes(system).values())
    layout = system.layout.without({"log", "temp"}.intersection(system.ideal)).at(elsewhere)
    declared = replace(system, layout=layout, memory_total_bytes=limit, settings={})

    def with_added(settings: dict[str, str]) -> dict[str, str]:
        chosen = replace(declared, settings=settings)
        chosen = replace(chosen, settings=workload.preset(chosen, options) | settings)
        return engine.for_devices(chosen) | chosen.settings

    try:
        usual = with_added({})
        own = {name: value for name, value in system.settings.items() if usual.get(name) != value}
        again = with_added(own)
    except (IronbenchError, OSError):  # this machine may lack a program or device of the recorded machine
        return replace(declared, settings=system.settings)
    follows = all(again.get(name) == value for name, value in system.settings.items())
    return replace(declared, settings=own if follows else system.settings)


def _places(layout: Layout) -> dict[str, str]:
    """Maps each role, such as `data` or `log`, to its device model or its directory. An emulated device needs no
    directory, because every run mounts it again."""
    models = _models(layout)
    return {role: models.get(role) or getattr(layout, role) or "" for role in arrange.ROLES}


def _models(layout: Layout) -> dict[str, str]:
    return {partition.role: device.model for device in layout.devices for partition in device.partitions}


def _every_device(layout: Layout, workload_name: str, options: Mapping[str, str], engine: str) -> dict[str, str]:
    """Returns the options of the first emulated device. Options with their default value are empty."""
    if not layout.devices:
        return {}
    device, workload = layout.devices[0], workloads.find(workload_name)
    roles = [partition.role for partition in device.partitions]
    size = sum(partition.bytes for partition in device.partitions)
    unusual = workload and size != _usual_bytes(roles, _models(layout), workload.estimate_bytes(engine, options))
    return {
        "capacity": exact(size) if unusual else "",
        "fs": device.file_system if device.file_system != file_systems.DEFAULT else "",
        "backing": device.backing if device.backing != arrange.RAM else "",
    }


def _usual_bytes(roles: Collection[str], placed: Collection[str], estimate_bytes: int) -> int:
    return sum(arrange.usual_bytes(role, placed, estimate_bytes) for role in roles)
