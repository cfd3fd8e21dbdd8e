"""Converts a configuration's sections to values of the model, in base units. Every message names the lab-file field."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from ironbench.errors import InputError, nearest, quoted, written
from ironbench.fields.lab import range_of
from ironbench.fields.sections import USUAL_DURATION_S, USUAL_WARMUP_S, DataSection, LoadSection, Sections, Setting
from ironbench.model.curve import Curve
from ironbench.model.own_data import OwnData
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.paths import expanded
from ironbench.plan import curves, rates

IDEAL = ("log", "data", "temp", "client")
_MOST_CPUS = 8192
"""Maximum number of CPUs that Linux supports on one machine (CONFIG_NR_CPUS of x86-64, arch/x86/Kconfig)."""


def system(sections: Sections, label: str, folder: Path | None, cpus: Iterable[int]) -> System:
    """Returns the system of a configuration. Raises InputError.

    `folder`: the directory from which relative paths are resolved, which is the lab file's directory. If it is None,
    the current directory is used. `cpus`: CPUs that are available on this machine. The directories of roles on emulated
    devices are set later (`ironbench.devices`).
    """
    section, limits = sections.system, sections.limits
    settings = texts(section.set)
    if section.bin:
        settings["bin"] = section.bin if section.bin.startswith("wheel:") else _path(section.bin, folder)
    return System(
        engine=section.engine,
        label=label,
        settings=settings,
        layout=Layout().at(
            {role: _directory(getattr(sections.layout, role), folder) for role in ("data", "temp", "log")}
        ),
        memory_bytes=_size("system.memory", section.memory),
        server_cpus=_cpus("limits.server_cpus", limits.server_cpus, None if section.control else cpus),
        client_cpus=_cpus("limits.client_cpus", limits.client_cpus, cpus),
        memory_total_bytes=_size("limits.memory_total", limits.memory_total),
        latency_s=round(_time("limits.latency", limits.latency) or 0.0, 9) or None,
        parallelism=section.parallelism,
        ideal=_ideal(section.ideal),
        dsn=section.dsn or None,
        server=section.server or None,
        control=bool(section.control),
        restart=section.restart.strip(),
        reference_score=section.reference_score,
    )


def load(
    section: LoadSection,
    seed: int,
    usual_s: float | None = USUAL_DURATION_S,
    usual_warmup_s: float = USUAL_WARMUP_S,
    usual_max_tries: int = 1,
    usual_protocol: str = Load().protocol,
    folder: Path | None = None,
) -> Load:
    """Returns the load of a configuration. Raises InputError for options that cannot be combined.

    `usual_…`: the workload's defaults for these options. `folder`: as in `system`.
    """
    duration = _time("load.duration", section.duration)
    curve = _curve(section, folder)
    if curve is not None:
        duration = curves.duration(f"load.{curve.of}", curve, duration)
    elif duration is None and section.transactions is None:
        duration = usual_s
    clients, rate, share = section.clients, None, None
    if curve is not None and curve.of == "clients":
        clients = max(1, round(curve.most))
    elif curve is not None:
        rate = curve.mean(0.0, duration or curve.length_s)
    if not curves.declares_curve(section.rate):
        rate, share = rates.read(written("load.rate"), section.rate)
    assert isinstance(clients, int), "a search has been replaced by its highest point (`sweep.searched`)"
    load = Load(
        clients=clients,
        threads=min(section.threads, clients),
        workers=section.workers,
        cluster=section.cluster,
        fewer_workers=section.fewer_workers,
        rate=rate,
        rate_share=share,
        curve=curve,
        arrivals=section.arrivals,
        think_time_s=_time("load.think_time", section.think_time) or 0.0,
        reconnect=section.reconnect,
        duration_s=duration,
        transactions=section.transactions,
        warmup_s=_warmup(section, duration, usual_warmup_s),
        warmup_auto=section.warmup == "auto",
        max_tries=usual_max_tries if section.max_tries is None else section.max_tries,
        on_error=section.on_error,
        reconnect_on_loss=section.reconnect_on_loss,
        report_per_statement=section.report_per_statement,
        protocol=section.protocol or usual_protocol,
        io=section.io,
        seed=seed,
        cache=section.cache,
        checkpoint_s=_time("load.checkpoint", section.checkpoint),
    )
    validate(load)
    return load


def _curve(section: LoadSection, folder: Path | None) -> Curve | None:
    """Returns the curve of the load, if any. Raises InputError for options that cannot be combined with a curve."""
    asked = [name for name in ("rate", "clients") if curves.declares_curve(getattr(section, name))]
    if not asked:
        return None
    field = f"load.{asked[0]}"
    together = {"load.rate": section.rate if asked == ["clients"] else None, "load.clients": asked[1:]}
    together["load.transactions"] = section.transactions
    for other, value in together.items():
        if value:
            cause = f"cannot be combined with a curve in {written(field)}"
            raise InputError(
                written(other), cause, f"remove {written(other)}, because the curve determines load and duration"
            )
    if section.warmup == "auto":
        cause = f"cannot be combined with a curve in {written(field)}, which has no steady state"
        raise InputError(written("load.warmup", "auto"), cause, "use a fixed warm-up time, e.g. 5s")
    return curves.read(field, str(getattr(section, asked[0])), folder)


def validate(load: Load) -> None:
    """Raises InputError for values that are out of range or cannot be combined."""
    if load.duration_s is not None and load.transactions is not None:
        raise InputError(
            written("load.transactions"), f"cannot be combined with {written('load.duration')}", "remove one of the two"
        )
    if load.rate is not None or load.rate_share is not None:
        if load.think_time_s:
            raise InputError(
                written("load.think_time"),
                f"cannot be combined with {written('load.rate')}",
                "remove it, because a rate already determines when transactions start",
            )
        if load.transactions is not None:
            raise InputError(
                written("load.rate"),
                f"cannot be combined with {written('load.transactions')}",
                f"use {written('load.duration')} instead",
            )
    if load.max_tries == 0 and load.duration_s is None and load.transactions is not None:
        cause = (
            f"0 means no limit, so with {written('load.transactions')}, a transaction that always fails would never end"
        )
        raise InputError(
            written("load.max_tries"),
            cause,
            f"set a number of attempts, or use {written('load.duration')} instead of {written('load.transactions')}",
        )


def choice(sections: Sections, options: Mapping[str, str], folder: Path | None) -> Choice:
    """Returns the workload with its options. `options`: options that the workload has validated. `folder`: as in
    `system`. If it is None, file names stay unchanged."""
    section = sections.workload
    return Choice(
        workload=section.name,
        options=dict(options),
        defines=texts(section.define),
        scripts=tuple(_path(file, folder) if folder else file for file in section.files),
    )


def own_data(section: DataSection, folder: Path | None) -> OwnData | None:
    """Returns the declared data without reading the data's files. Raises InputError for options that cannot be
    combined."""
    if section.dump and section.template:
        cause = f"cannot be combined with {written('data.dump')}"
        raise InputError(written("data.template"), cause, "remove one of the two")
    for name, files in (("dump", [section.dump] if section.dump else []), ("setup", section.setup)):
        for file in files:
            if not file.strip():
                raise InputError(written(f"data.{name}"), "the file name is empty", f"remove {written(f'data.{name}')}")
    data = OwnData(
        dump=_path(section.dump, folder) if section.dump else "",
        setup=tuple(_path(file, folder) for file in section.setup),
        template=section.template,
        check=section.check.strip().rstrip(";"),
    )
    return None if data == OwnData() else data


def options(sections: Sections, paths: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    """Returns the workload's options with absolute paths. `paths`: for each option that is a path, the kind of path,
    such as "directories". `folder`: as in `choice`."""
    given = texts(sections.workload.options)
    placed = {}
    for name in paths.keys() & given.keys() if folder else ():
        each = given[name].split(",") if paths[name] == "directories" else [given[name]]
        placed[name] = ",".join(_path(one, folder) if one else "" for one in each)
    return given | placed


def _warmup(section: LoadSection, duration_s: float | None, usual_s: float) -> float:
    """Returns the warm-up in seconds. For `auto`, a pilot trial determines the warm-up later. Until then, it is a fifth
    of the measured time, but at least 5 s and at most 60 s."""
    if section.warmup == "auto":
        return min(60.0, max(5.0, (duration_s or USUAL_DURATION_S) / 5))
    warmup_s = _time("load.warmup", section.warmup)
    return usual_s if warmup_s is None else warmup_s


def texts(table: Mapping[str, Setting]) -> dict[str, str]:
    """Returns the values of a lab file's table as strings, in the form of the command line."""
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in table.items()
    }


def _time(subject: str, text: str | int | float) -> float | None:
    return _read(subject, text)


def _size(subject: str, text: str | int) -> int | None:
    size = _read(subject, text)
    return None if size is None else int(size)


def _read(subject: str, text: str | int | float) -> float | None:
    return range_of(subject).read(written(subject), text) if text != "" else None


def _cpus(subject: str, text: str | int, available: Iterable[int] | None) -> tuple[int, ...] | None:
    return cpus(written(subject), str(text), available) if text != "" else None


def _ideal(text: str | list[str]) -> tuple[str, ...]:
    parts = [text] if isinstance(text, str) else text
    wanted = [part for part in parts if part not in ("", "none")]
    for part in wanted:
        if part not in IDEAL:
            raise InputError(
                written("system.ideal"), f"{part!r} has no zero-latency version", nearest(part, [*IDEAL, "none"])
            )
    return tuple(part for part in IDEAL if part in wanted)


def _directory(text: str, folder: Path | None) -> str | None:
    if not text:
        return None
    return _path(text, folder) if "/" in text or text.startswith(".") else None


def _path(text: str, folder: Path | None) -> str:
    path = expanded(text)
    return str(path if path.is_absolute() else (folder or Path()).joinpath(path).absolute())


def with_ideal_parts(system: System, load: Load, cpus: Collection[int]) -> tuple[System, Load]:
    """Returns the system and the load with the changes that their zero-latency parts require. A zero-latency `client`
    has one thread per core (at most one per client), no CPU pinning and no think time. The remaining CPU time of the
    client is unavoidable. With zero-latency `data`, the caches are full at the start of the trial.
    """
    if "client" in system.ideal:
        system = replace(system, client_cpus=None)
        load = replace(load, threads=max(load.threads, min(load.clients, len(cpus))), think_time_s=0.0)
    if "data" in system.ideal:
        load = replace(load, cache="hot")
    return system, load


def counts(field: str, subject: str, text: str) -> tuple[int, ...]:
    """Parses a list such as `1,2,4,8` into distinct whole numbers in the range of the field. The order is kept. Raises
    InputError."""
    numbers: list[int] = []
    for part in text.split(","):
        number = int(range_of(field).read(subject, part.strip()))
        if number in numbers:
            raise InputError(
                subject,
                f"{number} is listed twice",
                f"list each number once; to repeat trials, use {written('measure.repeats')}",
            )
        numbers.append(number)
    return tuple(numbers)


def cpus(subject: str, text: str, available: Iterable[int] | None) -> tuple[int, ...]:
    """Parses a CPU list in the format of taskset: `0`, `0,2`, `0-3`. Raises InputError. `available`: permitted CPUs, or
    None if the CPUs are those of another machine, which are checked later."""
    known = set(range(_MOST_CPUS) if available is None else available)
    cpus: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", part)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if low > high:
            example = "write for example 0 or 0-3,6"
            raise InputError(subject, f"{quoted(part)} is not a CPU or a range of CPUs", example)
        missing = next((cpu for cpu in range(low, high + 1) if cpu not in known), None)
        if missing is not None:
            here = ",".join(map(str, sorted(known))) if available is not None else f"0-{_MOST_CPUS - 1}"
            raise InputError(subject, f"CPU {missing} is not available", f"available here: {here}")
        cpus.update(range(low, high + 1))
    return tuple(sorted(cpus))


def pairs(subject: str, texts: Iterable[str]) -> dict[str, str]:
    """Converts `KEY=VALUE` strings to a dict. If a key occurs several times, the last value is used."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InputError(subject, f"{text!r} is not KEY=VALUE", f"write for example {subject} name=value")
        values[key.strip()] = value.strip()
    return values
