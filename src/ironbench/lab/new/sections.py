"""Sections that the lab files of several questions share."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench import units
from ironbench.lab.new.context import FILL_IN, LabContext
from ironbench.words import clean, counted


def head(kind: str, here: LabContext, file: str, marked: bool) -> Iterator[str]:
    where = "an existing server" if here.dsn else "a server that ironbench starts"
    yield f"# Written by `ironbench lab new {kind}` for {here.engine.name} {here.version}, {where};"
    machine = f"{counted(here.cores, 'core')} and {units.memory(here.memory_bytes)} of memory"
    yield f"# ironbench runs on a machine with {machine}."
    if here.dsn:
        yield "# The password is not stored here: it is read from the environment or from the password file."
    if marked:
        yield f"# Replace all values that start with {FILL_IN}."
    yield f"# Dry run: `ironbench lab plan {file}` shows what the lab will do and how long it takes."
    yield f"# Run it: `ironbench lab run {file}`."
    yield ""


def measure(metric: str = "") -> list[str]:
    return [
        "[measure]",
        *([f"metric = {quoted(metric)}"] if metric else []),
        "repeats = 6          # blocks: each measures every value once; a verdict needs six",
        'rates = "none"       # "auto": also measure response times at the same load',
        "",
    ]


def system(here: LabContext, dsn: bool = True) -> list[str]:
    if here.dsn:
        return ["[system]", f"dsn = {quoted(here.dsn)}", ""] if dsn else []
    memory = units.exact(max(64 << 20, (here.memory_bytes // 8) >> 20 << 20))
    return [
        "[system]",
        f"engine = {quoted(here.engine.name)}",
        f"memory = \"{memory}\"     # the engine's own cache: 1/8 of this machine's memory",
        "",
    ]


def load(here: LabContext, timed: bool = False, open_loop: bool = False) -> list[str]:
    if here.capture and not open_loop:  # the capture determines the clients and the length of a trial
        return []
    cores = "of ironbench's machine" if here.dsn else "of this machine"
    checkpoint = ['checkpoint = "10s"    # a trial then contains complete checkpoint cycles']
    if here.lacks:
        checkpoint = [f"# {checkpoint[0]}; {here.lacks}"]
    if not here.engine.can("checkpoints") or (here.dsn and not here.engine.administration.paces_existing_server):
        checkpoint = []
    writers, how_many = here.engine.traits.writers, f"two per core {cores}, at least four"
    if writers is not None:
        how_many = f"this engine has at most {'one writer' if writers == 1 else counted(writers, 'writer')} at a time"
    clients = f"{writers or here.clients}          # {how_many}"
    if open_loop and writers is None:
        clients = f"{max(32, here.clients)}         # connections: use the size of your connection pool"
    return [
        "[load]",
        f"clients = {clients}",
        'duration = "30s"',
        *(["report_per_statement = true    # reports the time of each SQL command"] if timed else []),
        *checkpoint,
        "",
    ]


def workload(here: LabContext, mode: str = "fast") -> list[str]:
    """Returns the sections for a workload. `mode`: how a capture is replayed."""
    if here.template or here.dump or here.scripts or here.capture:
        return [*own_workload(here), files(here, mode), ""]
    return [
        "[workload]",
        'name = "igen-oltp"   # order entry; others: `ironbench list workloads`; your own: docs/workloads/scripts.md',
        "",
    ]


def own_workload(here: LabContext, templates: bool = True) -> list[str]:
    """Returns the sections for a workload on the user's data. The data are a database on the server if `templates` is
    true and the engine supports this. Otherwise, they are a dump."""
    named = here.template or f"{FILL_IN}-database"
    template = [f"template = {quoted(named)}   # a database on that server; each trial gets a copy"]
    named_dump = here.dump or f"{FILL_IN}.dump"
    dump = [f"dump = {quoted(named_dump)}    # dump of your database: docs/how/your-own-data.md"]
    by_template = here.dsn and templates and here.engine.data_import.templates and not here.dump
    return [
        "[data]",
        *(template if by_template else dump),
        "",
        "[workload]",
        f'name = "{"capture" if here.capture else "script"}"',
    ]


def files(here: LabContext, mode: str = "fast") -> str:
    """Returns the line that names the capture or the scripts of a workload."""
    if here.capture:
        return f"with = {{ file = {quoted(here.capture)}, mode = {quoted(mode)} }}    # other modes: docs/how/replay.md"
    named = ", ".join(quoted(name) for name in here.scripts or (f"{FILL_IN}.sql",))
    return f"files = [{named}]    # pgbench scripts of your application's transactions; FILE@WEIGHT, … mixes several"


def quoted(value: str) -> str:
    """Formats a TOML basic string."""
    return '"' + clean(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
