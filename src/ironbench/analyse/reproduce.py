"""The command that would make these trials again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ironbench.model.record import Record
from ironbench.model.system import Load
from ironbench.record.redact import redacted
from ironbench.units import exact


def command(records: Sequence[Record]) -> str:
    """One `ironbench run` for the trials of one subject. Options whose default could change are written out."""
    first = records[0]
    system, choice, load = first.system, first.choice, first.cell.load
    clients = sorted({record.cell.load.clients for record in records})
    words = ["ironbench", "run", choice.workload, *choice.scripts]
    words += ["--dsn", redacted(system.dsn)] if system.dsn else ["--engine", system.engine]
    words += ["--clients", ",".join(str(count) for count in clients), *_load(load)]
    repeats = 1 + max((record.block for record in records if record.purpose == "sweep"), default=0)
    words += ["--repeats", str(repeats)] if repeats > 1 else []
    for key, value in sorted(choice.defines.items()):
        words += ["-D", f"{key}={value}"]
    for key, value in sorted(choice.options.items()):
        words += ["--with", f"{key}={value}"]
    for key, value in sorted(system.settings.items()):
        words += ["--set", f"{key}={redacted(value, key)}"]
    for role in ("data", "temp", "log"):
        directory = getattr(system.layout, role)
        words += [f"--{role}", directory] if directory else []
    words += ["--memory", exact(system.memory_bytes)] if system.memory_bytes else []
    words += ["--memory-total", exact(system.memory_total_bytes)] if system.memory_total_bytes else []
    for option, cpus in (("--server-cpus", system.server_cpus), ("--client-cpus", system.client_cpus)):
        words += [option, ",".join(str(cpu) for cpu in cpus)] if cpus else []
    words += ["--reference-score", f"{system.reference_score:g}"] if system.reference_score else []
    words += ["--label", system.label] if system.label else []
    return shlex.join(words)


def _load(load: Load) -> list[str]:
    words = ["--threads", str(load.threads)] if load.threads > 1 else []
    if load.rate is not None:
        words += ["--rate", f"{load.rate:g}", "--arrivals", load.arrivals]
    if load.transactions is not None:
        words += ["--transactions", str(load.transactions)]
    elif load.duration_s is not None:
        words += ["--duration", f"{load.duration_s:g}s"]
    words += ["--warmup", "auto" if load.warmup_auto else f"{load.warmup_s:g}s"]
    words += ["--think-time", f"{load.think_time_s * 1000:g}ms"] if load.think_time_s else []
    words += ["--max-tries", str(load.max_tries)] if load.max_tries != 1 else []
    words += ["--on-error", load.on_error] if load.on_error != "stop" else []
    words += ["--report-per-statement"] if load.report_per_statement else []
    words += ["--protocol", load.protocol] if load.protocol != "prepared" else []
    words += ["--cache", load.cache] if load.cache else []
    words += ["--checkpoint", f"{load.checkpoint_s:g}s"] if load.checkpoint_s else []
    words += ["--io", load.io] if load.io != "auto" else []
    return [*words, "--seed", str(load.seed)]
