"""Writes a lab file for a common question, adapted to the given server and machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from ironbench import engines, ranges, units
from ironbench.devices import capability, emulation_rate, expression, models
from ironbench.devices.emulation_rate import TOO_FAST, EmulationRate
from ironbench.engines.administration import CHECKPOINT
from ironbench.engines.base import Engine, SuggestedSetting
from ironbench.errors import FailureError, InputError, nearest
from ironbench.fields.new import NewLab
from ironbench.fields.row import Field, table
from ironbench.host.fingerprint import fingerprint
from ironbench.lab import builds
from ironbench.model.secrets import Secrets
from ironbench.model.system import Layout, System
from ironbench.paths import expanded
from ironbench.words import clean, counted, grouped, listed

FILL_IN = "FILL-IN"
"""Prefix of placeholders that the user must replace."""


@dataclass(frozen=True, slots=True)
class LabContext:
    """The server, machine and user data for which the lab file is written."""

    engine: Engine
    dsn: str
    """DSN of the server without its password; empty if ironbench starts the server."""
    template: str
    """Name of the user's database on that server, which trials can copy; empty if unknown."""
    version: str
    settings: Mapping[str, str]
    """Current settings of the server; empty if the server is not running."""
    cores: int
    memory_bytes: int
    lacks: str = ""
    """Hint about privileges for checkpoints that the role lacks; empty if it lacks none."""
    dump: str = ""
    """Dump of the user's database, as named in the lab file; empty if none was given."""
    scripts: tuple[str, ...] = ()
    """Scripts of the user's application, as named in the lab file; empty if none were given."""
    setting: str = ""
    """Setting to vary; if empty, the first setting that is suggested for the engine."""
    index: str = ""
    """SQL file that creates the index; empty if the user gave none. The same applies to the following files."""
    before: str = ""
    after: str = ""
    other: str = ""
    """The other version (a DSN or a directory), or the server on the other machine; empty if the user gave none."""
    other_version: str = ""
    """Version of the programs in the directory `other`."""
    devices: tuple[str, ...] = ()
    """Device models to emulate; if empty, those of `_DEVICES`."""
    today: float = 0.0
    """Today's peak load in transactions per second; 0 if it was not given."""
    capture: str = ""
    """Capture of production work to replay, as named in the lab file; empty if none was given."""

    @property
    def clients(self) -> int:
        return max(4, 2 * self.cores)


def lab_context(kind: str, asked: NewLab, folder: Path | None) -> LabContext:
    """Describes the server, which is queried if it has a DSN. Raises InputError and FailureError.

    `folder`: directory of the lab file. None: the lab file has no directory yet, so files are named by their absolute
    paths.
    """
    _require_fields(kind, asked)
    dsn = asked.dsn
    named = engines.get(asked.engine) if asked.engine else engines.default(("transactions", "data"), dsn or None)
    named = named.engine_for(dsn or None)
    if missing := named.missing(("transactions", "data")):
        cause = (
            f"lab files of this command run scripts, but {named.name} lacks a capability that scripts need: "
            f"{', '.join(missing)}"
        )
        raise InputError("lab new", cause, f"use one of: {', '.join(engines.able(('transactions', 'data')))}")
    if "://" in asked.other and not dsn:
        hint = "add --dsn with the address of the other server, or name a directory of programs"
        raise InputError("--other", "is an address, but --dsn is missing", hint)
    if asked.dump and not named.data_import.dumps:
        raise InputError("--dump", f"{named.name} cannot restore dumps", "use another engine, or remove --dump")
    files = {
        name: _named(folder, f"--{name}", file)
        for name in ("dump", "index", "before", "after", "capture")
        if (file := getattr(asked, name))
    }
    system, secrets = named.validated(System(named.name, "new", dsn=dsn or None), 1)
    machine = fingerprint()
    memory_bytes = min(machine.memory_bytes, machine.limits.memory_bytes or machine.memory_bytes)
    known, lacks = _facts(system, secrets) if system.dsn else ({}, "")
    version = known.get("version") or named.identity(system, secrets).get("version", "")
    template, elsewhere = named.data_import.template_of(system.dsn) if system.dsn else ("", "")
    return LabContext(
        named,
        elsewhere,
        template,
        str(version),
        known.get("settings", {}),
        len(os.sched_getaffinity(0)),
        memory_bytes,
        lacks,
        scripts=tuple(_named(folder, "--script", file) for file in asked.script),
        setting=asked.setting,
        other=_without_password(named, asked.other) if dsn else asked.other,
        other_version=_other_version(named, asked.other, str(version)) if asked.other and not dsn else "",
        devices=tuple(asked.device),
        today=_rate("today", asked.today),
        **files,
    )


def _other_version(engine: Engine, programs: str, version: str) -> str:
    """Returns the version of the programs in a directory. Raises InputError if there are no programs, or if their
    version is `version`."""
    system, secrets = engine.validated(System(engine.name, "other", {"bin": programs}), 1)
    other = engine.identity(system, secrets).get("version", "")
    if other == version:
        cause = f"contains {engine.name} {version}, which is the version to be compared with"
        raise InputError(f"--other {programs}", cause, "name the program directory of another version")
    return other


def lab_template(kind: str) -> LabTemplate:
    """Returns the template for a kind of lab. Raises InputError if there is no such kind."""
    if kind not in KINDS:
        raise InputError(f"lab new {kind}", "unknown kind", nearest(kind, list(KINDS)))
    return KINDS[kind]


def fields(kind: str) -> list[Field]:
    """Returns the fields that a kind of lab uses. Fields that only this kind uses come first."""
    return [table(NewLab)[name] for name in lab_template(kind).fields]


def _require_fields(kind: str, asked: NewLab) -> None:
    """Raises InputError if a field has no effect on this kind of lab, or if a required field is missing."""
    used = lab_template(kind)
    for field in table(NewLab).values():
        option, given = field.options[0], getattr(asked, field.attribute)
        if given and field.name not in used.fields:
            raise InputError(option, f"has no effect on `lab new {kind}`", f"remove {option}")
        if not given and field.name in used.required:
            raise InputError(f"lab new {kind}", f"{option} is missing", f"add {option} {field.placeholder}")


def suggestions(field: Field) -> list[str]:
    """Returns values from which the user can choose; empty if there is no list."""
    able = engines.able(("transactions", "data"))
    if field.name == "engine":
        return list(able)
    if field.name == "setting":
        return list(dict.fromkeys(knob.name for name in able for knob in engines.get(name).traits.knobs))
    return list(models.models()) if field.name == "device" else []


def _without_password(engine: Engine, dsn: str) -> str:
    """Returns the address of a second server in the form in which the lab file contains it."""
    if not dsn:
        return ""
    system, _ = engine.engine_for(dsn).validated(System(engine.name, "new", dsn=dsn), 1)
    return engine.data_import.template_of(system.dsn or dsn)[1]


def _rate(name: str, written: str | float) -> float:
    """Reads a field with a rate, which options and forms give as text; 0 if it was not given. InputError."""
    known = table(NewLab)[name]
    return known.row.range.read(known.options[0], written) if written and known.row.range else 0.0


def _named(folder: Path | None, option: str, text: str) -> str:
    """Returns a file's name in the lab file: relative to the lab file's directory if the file is below it, and
    otherwise absolute.

    Keeps the `@WEIGHT` of a script. Raises InputError if the file does not exist.
    """
    name, at, weight = text.partition("@") if option == "--script" else (text, "", "")
    path = expanded(name).absolute()
    if not path.exists():
        raise InputError(f"{option} {text}", "no such file", "name an existing file")
    if folder is not None and path.is_relative_to(folder.absolute()):
        path = path.relative_to(folder.absolute())
    return f"{path}{at}{weight}"


def _facts(system: System, secrets: Secrets) -> tuple[dict[str, Any], str]:
    """Returns the facts of a running server, and a hint if the role lacks the privilege for checkpoints."""
    with engines.running(system, secrets, 1) as session:
        try:
            engines.get(session.engine).administration.require_rights(session, [("checkpoints", CHECKPOINT)])
        except InputError as error:
            return session.facts(), error.hint
        return session.facts(), ""


def write(path: Path, text: str) -> None:
    """Writes a new file. Raises InputError if the file already exists, and FailureError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(str(path), "already exists and would be overwritten", "name another file with -o") from None
    except OSError as error:
        raise FailureError(str(path), f"cannot be written: {error.strerror or error}") from error


def text(kind: str, here: LabContext, file: str) -> str:
    """Returns the text of a lab file. Raises InputError if this engine has nothing to vary for the question."""
    body = "\n".join(KINDS[kind].lines(here))
    marked = FILL_IN in body
    return "\n".join([*_head(kind, here, file, marked), body, *_measure(KINDS[kind].metric)])


def placeholders(text: str) -> list[tuple[int, str]]:
    """Returns the number and text of the lines in which the user must replace a value."""
    lines = enumerate(text.splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if FILL_IN in line and not line.startswith("#")]


def _head(kind: str, here: LabContext, file: str, marked: bool) -> Iterator[str]:
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


def _measure(metric: str = "") -> list[str]:
    return [
        "[measure]",
        *([f"metric = {_quoted(metric)}"] if metric else []),
        "repeats = 6          # blocks: each measures every value once; a verdict needs six",
        'rates = "none"       # "auto": also measure response times at the same load',
        "",
    ]


def _system(here: LabContext, dsn: bool = True) -> list[str]:
    if here.dsn:
        return ["[system]", f"dsn = {_quoted(here.dsn)}", ""] if dsn else []
    memory = units.exact(max(64 << 20, (here.memory_bytes // 8) >> 20 << 20))
    return [
        "[system]",
        f"engine = {_quoted(here.engine.name)}",
        f"memory = \"{memory}\"     # the engine's own cache: 1/8 of this machine's memory",
        "",
    ]


def _load(here: LabContext, timed: bool = False, open_loop: bool = False) -> list[str]:
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


def _workload(here: LabContext) -> list[str]:
    if here.template or here.dump or here.scripts:
        return [*_own_workload(here), _files(here), ""]
    return [
        "[workload]",
        'name = "igen-oltp"   # order entry; others: `ironbench list workloads`; your own: docs/workloads/scripts.md',
        "",
    ]


def _own_workload(here: LabContext, templates: bool = True) -> list[str]:
    """Returns the sections for the user's data. `templates`: whether data on this server can be used; if not, a dump is
    used."""
    named = here.template or f"{FILL_IN}-database"
    template = [f"template = {_quoted(named)}   # a database on that server; each trial gets a copy"]
    named_dump = here.dump or f"{FILL_IN}.dump"
    dump = [f"dump = {_quoted(named_dump)}    # dump of your database: docs/how/your-own-data.md"]
    by_template = here.dsn and templates and here.engine.data_import.templates and not here.dump
    return [
        "[data]",
        *(template if by_template else dump),
        "",
        "[workload]",
        'name = "script"',
    ]


def _files(here: LabContext) -> str:
    named = ", ".join(_quoted(name) for name in here.scripts or (f"{FILL_IN}.sql",))
    return f"files = [{named}]    # pgbench scripts of your application's transactions; FILE@WEIGHT, … mixes several"


def _begun(here: LabContext, question: str) -> Iterator[str]:
    yield f'question = "{question}"'
    yield ""
    yield from _workload(here)
    yield from _system(here)
    yield from _load(here)


def _setting(here: LabContext) -> Iterator[str]:
    knobs = [knob for knob in here.engine.traits.knobs if knob.session or not here.dsn]
    if not knobs:
        where = " on an existing server" if here.dsn else ""
        cause = f"`lab new` knows no setting of {here.engine.name} that a lab can vary{where}"
        hint = "use `ironbench lab new driver` and vary the setting by a command or by hand"
        raise InputError("lab new setting", cause, hint)
    by_name = {knob.name: knob for knob in knobs}
    if here.setting and here.setting not in by_name:
        raise InputError(
            f"--setting {here.setting}", "is not among the suggested ones", nearest(here.setting, list(by_name))
        )
    first = by_name[here.setting] if here.setting else knobs[0]
    yield from _begun(here, f"How does {first.name} affect performance?")
    yield from _of_knob(here, first)
    yield "# Other settings worth testing: uncomment one instead of the factor above, and plan again."
    for knob in (one for one in knobs if one is not first):
        yield from (f"# {line}".rstrip() for line in _of_knob(here, knob)[:-1])
        yield ""


def _of_knob(here: LabContext, knob: SuggestedSetting) -> list[str]:
    now = here.settings.get(knob.name, "")
    levels = list(dict.fromkeys([now or knob.levels[0], *knob.levels]))
    head = f"[vary.{knob.name}]"
    about = f"# {knob.about}" + (f" The current value is {now}." if now else f" {knob.levels[0]} is the default.")
    if here.dsn:
        other = here.engine.with_session_setting
        lines = [f"{_quoted(level)} = {{ dsn = {_quoted(other(here.dsn, knob.name, level))} }}" for level in levels]
    else:
        lines = [f"{_quoted(level)} = {{ system.set.{knob.name} = {_quoted(level)} }}" for level in levels]
    return [about, head, *lines, ""]


def _index(here: LabContext) -> Iterator[str]:
    yield 'question = "How much does the index speed up reads, and slow down writes?"'
    yield ""
    yield from _own_workload(here)
    yield _files(here)
    yield ""
    yield from _system(here)
    yield from _load(here, timed=True)
    yield "[vary.index]"
    yield "without = {}"
    yield "# Example contents of the file: CREATE INDEX ON orders (customer);"
    yield f"with = {{ data.setup = [{_quoted(here.index or f'{FILL_IN}-index.sql')}] }}"
    yield ""


def _query(here: LabContext) -> Iterator[str]:
    yield 'question = "Is the rewritten query faster?"'
    yield ""
    yield from _own_workload(here)
    yield ""
    yield from _system(here)
    yield from _load(here, timed=True)
    yield "# Each file contains the statement, with \\set for its parameters: docs/workloads/scripts.md"
    yield "[vary.query]"
    yield f'"as it is" = {{ workload.files = [{_quoted(here.before or f"{FILL_IN}-before.sql")}] }}'
    yield f"rewritten = {{ workload.files = [{_quoted(here.after or f'{FILL_IN}-after.sql')}] }}"
    yield ""


def _upgrade(here: LabContext) -> Iterator[str]:
    yield 'question = "Is the newer version faster?"'
    yield ""
    yield from _workload(here)
    if not (here.template or here.dump or here.scripts) and here.engine.data_import.dumps:
        yield "# Your own data instead of that workload:"
        yield from (f"# {line}" if line else "#" for line in (*_own_workload(here, templates=False), _files(here)))
        yield ""
    yield from _system(here, dsn=False)
    pinned = here.engine.traits.pinned
    if pinned and not here.dsn:
        yield "# Set to equal values in both versions, because the defaults differ:"
        yield "[system.set]"
        yield from (f"{name} = {_quoted(value)}" for name, value in pinned.items())
        yield ""
    yield from _load(here)
    if here.dsn:
        if pinned:
            yield f"# Both servers should have the same {listed(list(pinned))}; the report names what else differs."
        yield "[vary.version]"
        yield f"{_quoted(here.version)} = {{ dsn = {_quoted(here.dsn)} }}"
        yield f"new = {{ dsn = {_quoted(here.other or FILL_IN)} }}    # the newer version: same settings, same machine"
    else:
        versions = _versions(here)
        yield from (f"# {line}" for caution in warnings("upgrade", here) for line in wrap(f"Warning: {caution}", 110))
        if not here.other:
            yield "# Use programs from one packager, because builds may also differ in features (TLS, ICU, JIT, lz4)."
            yield "# `bin` may also be a directory, for example /usr/lib/…/bin"
        yield "[vary.version]"
        for version, place in versions.items():
            yield f"{_quoted(version)} = {{ bin = {_quoted(place)} }}" if place else f"{_quoted(version)} = {{}}"
        if len(versions) == 1:
            yield f'other = {{ bin = "{FILL_IN}" }}    # program directory of the other version, e.g. /usr/lib/…/bin'
    yield ""


def _versions(here: LabContext) -> dict[str, str]:
    """Returns the versions that a lab without existing servers compares, the older one first, with the `bin` setting of
    each; "" for the programs that ironbench uses without this setting."""
    if here.other:
        both = {here.version: "", here.other_version: here.other}
        return {version: both[version] for version in sorted(both, key=_number)}
    known = here.engine.installations()
    return dict((known[0], known[-1])) if len(known) > 1 else {here.version: ""}


def warnings(kind: str, here: LabContext) -> list[str]:
    """Returns what makes a comparison of the lab file's values less clear than its question."""
    if kind != "upgrade" or here.dsn:
        return []
    systems = {
        version: System(here.engine.name, "new", {"bin": place} if place else {})
        for version, place in _versions(here).items()
    }
    if len(systems) < 2:
        return []
    return list(filter(None, (builds.differing(systems), builds.unknown(systems))))


def _number(version: str) -> list[int]:
    """Converts a version to numbers for sorting, such as `18.4` to [18, 4]. The older version is the baseline."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _machines(here: LabContext) -> Iterator[str]:
    yield 'question = "Which of the two machines is faster?"'
    yield ""
    yield from _workload(here)
    yield from _load(here)
    yield "# ironbench measures both servers in turn, so every block compares them at about the same time."
    yield "# Both need the same user, and the same database if trials copy one."
    yield "[vary.machine]"
    yield f"old = {{ dsn = {_quoted(here.dsn)} }}"
    yield f"new = {{ dsn = {_quoted(here.other or FILL_IN)} }}"
    yield ""


_MULTIPLES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Rates in `lab new headroom`, as multiples of today's."""


def _headroom(here: LabContext) -> Iterator[str]:
    today = ranges.in_words(here.today)
    yield f'question = "How far can today\'s load of {today} transactions per second grow?"'
    yield 'design = "full"     # every system at every rate'
    yield ""
    if here.capture:
        yield from (line for line in _own_workload(here) if not line.startswith("name = "))
        yield 'name = "capture"'
        yield f'with = {{ file = {_quoted(here.capture)}, mode = "rate" }}'
        yield ""
    else:
        yield from _workload(here)
    yield from _system(here)
    yield from _load(here, open_loop=True)
    yield "# Today's load and multiples of it. More rates near the highest one make the answer more precise."
    yield "[vary]"
    yield f"rate = [{', '.join(f'{here.today * times:.4g}' for times in _MULTIPLES)}]"
    yield ""
    yield "# A second system, which every block measures at the same rates, for example with more memory:"
    yield "# [vary.system]"
    yield '# "as it is" = {}'
    yield '# candidate = { system.memory = "8GB" }'
    yield ""
    yield f'# When the lab has ended: ironbench headroom DIRECTORY --limit "p99 < 20ms" --today {here.today:g}'
    yield ""


_DEVICES = {"gp3": "aws-gp3", "io2": "aws-io2(iops=32000,rate=1G)", "NVMe": "ssd-nvme-enterprise"}
"""Device models of the candidates in `lab new storage`, by name: two cloud volumes and a local drive."""


def _storage(here: LabContext) -> Iterator[str]:
    yield from _begun(here, "How much faster would this database be on faster storage?")
    if here.dsn and here.devices:
        cause = "devices are emulated only for a server that ironbench starts"
        raise InputError("--device", cause, "remove --device, or use --dump in place of --dsn")
    if here.dsn:
        yield from _by_hand(
            "storage",
            "move the server's data to the other device and start the server",
            "move the server's data back and start the server",
        )
        return
    yield "# Without a limit, the page cache may contain all data, so that no reads reach the disk. Set the limit"
    yield "# to the memory that the database will have, and `memory` above to a part of it, for example a quarter:"
    yield "# [limits]"
    yield f'# memory_total = "{units.exact(max(256 << 20, (here.memory_bytes // 4) >> 20 << 20))}"'
    yield ""
    yield "[vary.storage]"
    yield '"as it is" = {}'
    if _takes(here, ideal=("log",)):
        yield '"zero-latency WAL" = { ideal = "log" }    # upper bound for any WAL device'
    roles = ("data", "log") if _takes(here, layout=Layout(log=_ANYWHERE)) else ("data",)
    missing, rate = capability.lacking(), emulation_rate.known()
    devices = []
    for name, model in ({_quoted(model): model for model in here.devices} or _DEVICES).items():
        places = ", ".join(f"layout.{role} = {_quoted(model)}" for role in roles)
        refused = rate is not None and emulation_rate.is_too_fast(_reads_per_s(model), rate.reads_per_s)
        off = "# " if (missing or refused) and not here.devices else ""
        devices.append(f"{off}{name} = {{ {places} }}{_emulated(model)}")
    yield "# Emulated devices (docs/how/emulated-devices.md)" + (f", which need {missing}:" if missing else ":")
    yield from _emulation_lines(rate)
    yield from devices
    yield "# A directory on another device of this machine:"
    yield '# "WAL on NVMe" = { layout.log = "/mnt/nvme/log" }'
    yield ""


_DEVICE_BYTES = 1 << 40


def _emulation_lines(rate: EmulationRate | None) -> Iterator[str]:
    if rate is None:
        yield "# `ironbench device calibrate` shows which models this machine can emulate. Remove the others."
        return
    yield f"# This machine emulated at most {grouped(rate.reads_per_s)} reads/s on {rate.day}. Remove devices that need"
    yield f"# more than {grouped(rate.faithful_per_s)}; `ironbench device calibrate` measures again."


def _reads_per_s(model: str) -> float:
    return expression.read_rate(model, _DEVICE_BYTES, expression.DEEP)


def _emulated(model: str) -> str:
    """Returns a comment with the read rate that a device model needs."""
    reads_per_s = _reads_per_s(model)
    least = reads_per_s / TOO_FAST
    return f"    # {grouped(reads_per_s)} reads/s; refused if emulation achieves fewer than {grouped(least)}"


_ANYWHERE = "/var/tmp/ironbench-new"
"""A directory that is never created. It is only used to find out whether the engine can place its WAL elsewhere."""


def _takes(here: LabContext, **fields: Any) -> bool:
    try:
        here.engine.validated(System(here.engine.name, "new", **fields), 1)
    except InputError:
        return False
    return True


def _driver(here: LabContext) -> Iterator[str]:
    yield "# For kernel, storage or network drivers. ironbench is itself the database client, so application drivers"
    yield "# such as JDBC or libpq do not take part in its trials."
    yield from _begun(here, "Is the new driver faster?")
    yield from _by_hand("driver", "install the new driver", "put the old driver back")


def _by_hand(factor: str, change: str, back: str) -> Iterator[str]:
    yield "# ironbench prompts a person to make the change, once per block. If a command can make it, use:"
    yield f'# prepare = "ssh db1 ./{factor}.sh new", cleanup = "ssh db1 ./{factor}.sh old"'
    yield f"[vary.{factor}]"
    yield '"as it is" = {}'
    yield f'new = {{ prepare = "ask: {change}, then press Enter", cleanup = "ask: {back}, then press Enter" }}'
    yield ""


@dataclass(frozen=True, slots=True)
class LabTemplate:
    """Template of a lab file for a common question."""

    about: str
    lines: Callable[[LabContext], Iterator[str]]
    question: str
    """The question in a user's words."""
    fields: tuple[str, ...]
    """Names of the fields of `NewLab` that have an effect on this lab."""
    required: tuple[str, ...] = ()
    """Names of the fields that the user must set."""
    metric: str = ""
    """The metric that the lab's verdict is about; empty: the workload's main metric."""


_ANY = ("dsn", "engine", "dump", "script")
KINDS: Mapping[str, LabTemplate] = {
    "setting": LabTemplate(
        "one setting: its current value and others",
        _setting,
        "Which value of a setting is best?",
        ("setting", *_ANY),
    ),
    "index": LabTemplate(
        "your data with and without an index",
        _index,
        "Is an index worth its cost?",
        ("index", *_ANY),
    ),
    "query": LabTemplate(
        "a statement and its rewritten version",
        _query,
        "Is the rewritten query faster?",
        ("before", "after", "dsn", "engine", "dump"),
    ),
    "upgrade": LabTemplate(
        "two versions of the database",
        _upgrade,
        "Is the newer version faster?",
        ("other", *_ANY),
    ),
    "storage": LabTemplate(
        "other storage: real, emulated, or with zero latency",
        _storage,
        "Is faster storage worth it?",
        ("device", *_ANY),
    ),
    "machines": LabTemplate(
        "the same work on two servers that this machine can reach",
        _machines,
        "Which of two machines is faster?",
        ("dsn", "other", "dump", "script"),
        ("dsn",),
    ),
    "headroom": LabTemplate(
        "rates around today's load, on one or more systems; `ironbench headroom` reads the result",
        _headroom,
        "How far can the load grow?",
        ("today", "capture", *_ANY),
        ("today",),
        "response_time_p99_s",
    ),
    "driver": LabTemplate(
        "a change made by a person or a command: storage or network driver, firmware, kernel, CPU governor",
        _driver,
        "Does a new driver, kernel or firmware make a difference?",
        _ANY,
    ),
}


def names() -> Sequence[str]:
    return list(KINDS)


def _quoted(value: str) -> str:
    """Formats a TOML basic string."""
    return '"' + clean(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
