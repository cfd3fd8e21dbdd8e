"""From a cell's sections to the values of the model, in base units. Every message names the field of the lab file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ironbench import ranges
from ironbench.errors import InputError, nearest
from ironbench.model.system import Choice, Layout, Load, System
from ironbench.plan import rates, sweep, values
from ironbench.plan.sections import LoadSection, Sections, Setting

IDEAL = ("log", "data", "temp", "client")
DURATION_S = 30.0
WARMUP_S = 5.0


def system(sections: Sections, label: str, folder: Path, cpus: Iterable[int]) -> System:
    """`folder` is the lab file's: relative directories start there. `cpus` are those available here. InputError.

    Roles on emulated devices have no directory as yet (`ironbench.devices`).
    """
    told, limits = sections.system, sections.limits
    settings = _texts(told.set)
    if told.bin:
        settings["bin"] = told.bin if told.bin.startswith("wheel:") else _path(told.bin, folder)
    return System(
        engine=told.engine,
        label=label,
        settings=settings,
        layout=Layout().at(
            {role: _directory(getattr(sections.layout, role), folder) for role in ("data", "temp", "log")}
        ),
        memory_bytes=_size("system.memory", told.memory),
        server_cpus=_cpus("limits.server_cpus", limits.server_cpus, cpus),
        client_cpus=_cpus("limits.client_cpus", limits.client_cpus, cpus),
        memory_total_bytes=_size("limits.memory_total", limits.memory_total),
        parallelism=told.parallelism,
        ideal=_ideal(told.ideal),
        dsn=told.dsn or None,
        reference_score=told.reference_score,
    )


def load(told: LoadSection, seed: int, usual_s: float | None = DURATION_S, usual_warmup_s: float = WARMUP_S) -> Load:
    """`usual_s`, `usual_warmup_s`: what the workload takes when nobody says. InputError: what cannot be together."""
    duration = _time("load.duration", told.duration)
    if duration is None and told.transactions is None:
        duration = usual_s
    rate, share = rates.read("load.rate", told.rate)
    found = Load(
        clients=told.clients,
        threads=min(told.threads, told.clients),
        rate=rate,
        rate_share=share,
        arrivals=told.arrivals,
        think_time_s=_time("load.think_time", told.think_time) or 0.0,
        duration_s=duration,
        transactions=told.transactions,
        warmup_s=_warmup(told, duration, usual_warmup_s),
        warmup_auto=told.warmup == "auto",
        max_tries=told.max_tries,
        on_error=told.on_error,
        report_per_statement=told.report_per_statement,
        protocol=told.protocol,
        seed=seed,
        cache=told.cache,
        checkpoint_s=_time("load.checkpoint", told.checkpoint),
    )
    sweep.validate(found)
    return found


def choice(sections: Sections, options: Mapping[str, str], folder: Path) -> Choice:
    """`options` were validated by the workload."""
    told = sections.workload
    return Choice(
        workload=told.name,
        options=dict(options),
        defines=_texts(told.define),
        scripts=tuple(_path(file, folder) for file in told.files),
    )


def options(sections: Sections) -> dict[str, str]:
    return _texts(sections.workload.options)


def _warmup(told: LoadSection, duration_s: float | None, usual_s: float) -> float:
    """`auto`: planned as a fifth of the measured time, 5 s to 60 s; a pilot trial decides."""
    if told.warmup == "auto":
        return min(60.0, max(5.0, (duration_s or DURATION_S) / 5))
    found = _time("load.warmup", told.warmup)
    return usual_s if found is None else found


def _texts(table: Mapping[str, Setting]) -> dict[str, str]:
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else str(value) for name, value in table.items()
    }


def _time(subject: str, told: str | int | float) -> float | None:
    return _read(subject, told)


def _size(subject: str, told: str | int) -> int | None:
    found = _read(subject, told)
    return None if found is None else int(found)


def _read(subject: str, told: str | int | float) -> float | None:
    """The field's last word names its quantity."""
    return ranges.read(subject.rpartition(".")[2], subject, told) if told != "" else None


def _cpus(subject: str, told: str | int, available: Iterable[int]) -> tuple[int, ...] | None:
    return values.cpus(subject, str(told), available) if told != "" else None


def _ideal(told: str | list[str]) -> tuple[str, ...]:
    parts = [told] if isinstance(told, str) else told
    wanted = [part for part in parts if part not in ("", "none")]
    for part in wanted:
        if part not in IDEAL:
            raise InputError("system.ideal", f"{part!r} is no part of a system", nearest(part, [*IDEAL, "none"]))
    return tuple(part for part in IDEAL if part in wanted)


def _directory(told: str, folder: Path) -> str | None:
    if not told:
        return None
    return _path(told, folder) if "/" in told or told.startswith(".") else None


def _path(told: str, folder: Path) -> str:
    path = Path(told).expanduser()
    return str(path if path.is_absolute() else (folder / path).absolute())


_OPTIONS = {
    "set": "system.set.", "with": "workload.with.", "data": "layout.data", "temp": "layout.temp", "log": "layout.log",
    "memory": "system.memory", "memory-total": "limits.memory_total", "server-cpus": "limits.server_cpus",
    "client-cpus": "limits.client_cpus", "dsn": "system.dsn", "engine": "system.engine", "clients": "load.clients",
    "rate": "load.rate", "duration": "load.duration", "transactions": "load.transactions", "warmup": "load.warmup",
    "think-time": "load.think_time", "max-tries": "load.max_tries", "on-error": "load.on_error",
    "report-per-statement": "load.report_per_statement", "protocol": "load.protocol",
}  # fmt: skip


def in_words_of_the_file(error: InputError, where: str) -> InputError:
    """Checks shared with the command line speak of its options; a lab file has fields."""
    subject, cause, hint = (_fields_for_options(words) for words in (error.subject, error.cause, error.hint))
    return type(error)(f"{where}, {subject}", cause, hint)


def _fields_for_options(words: str) -> str:
    def field(match: re.Match[str]) -> str:
        found = _OPTIONS.get(match[1])
        if found is None:
            return match[0]
        if not found.endswith("."):
            return found + match[2]
        # `--set work_mem=1GB` is the field system.set.work_mem, `--set` alone the table system.set.
        return found if match[2] and match[3] else found.rstrip(".") + match[2]

    return re.sub(r"--([a-z-]+[a-z])( ?)(?=(\w?))", field, words)
