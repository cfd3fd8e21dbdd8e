"""The questions of `lab new`, and the lab file that answers each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from ironbench import ranges, units
from ironbench.devices import capability, emulation_rate, expression
from ironbench.devices.emulation_rate import TOO_FAST, EmulationRate
from ironbench.engines.base import SuggestedSetting
from ironbench.errors import InputError, nearest
from ironbench.lab import builds
from ironbench.lab.new.context import FILL_IN, LabContext
from ironbench.lab.new.sections import files, load, own_workload, quoted, system, workload
from ironbench.model.system import Layout, System
from ironbench.words import grouped, listed


def _begun(here: LabContext, question: str) -> Iterator[str]:
    yield f'question = "{question}"'
    yield ""
    yield from workload(here)
    yield from system(here)
    yield from load(here)


def _setting(here: LabContext) -> Iterator[str]:
    knobs = [knob for knob in here.engine.traits.knobs if knob.session or knob.on_server or not here.dsn]
    if not knobs:
        where = " on an existing server" if here.dsn else ""
        cause = f"`lab new` knows no setting of {here.engine.name} that a lab can vary{where}"
        hint = "use `ironbench lab new driver` and vary the setting by a command or by hand"
        raise InputError("lab new setting", cause, hint)
    by_name = {knob.name: knob for knob in knobs}
    if here.setting and here.setting not in by_name:
        raise InputError(
            f"--setting {here.setting}", "is not a suggested setting", nearest(here.setting, list(by_name))
        )
    first = by_name[here.setting] if here.setting else knobs[0]
    yield from _begun(here, f"How does {first.name} affect performance?")
    if here.dsn and any(knob.on_server for knob in knobs):
        yield "# The commands change the server for all its users. After each trial, they set the value back that the"
        yield "# server had when this file was written. They need the server's client program and the privilege to"
        yield "# change global settings. The program reads the password from the environment or an option file."
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
    if here.dsn and knob.on_server:
        to = here.engine.set_on_server
        commands = {to(here.dsn, knob.name, one): one for one in reversed(levels)}
        restored = quoted(to(here.dsn, knob.name, levels[0]))
        # The first value is also set, because the server's value may have changed since this file was written.
        lines = [
            f"{quoted(one)} = {{ prepare = {quoted(command)}, cleanup = {restored} }}"
            for command, one in reversed(commands.items())
        ]
    elif here.dsn:
        other = here.engine.with_session_setting
        lines = [f"{quoted(level)} = {{ dsn = {quoted(other(here.dsn, knob.name, level))} }}" for level in levels]
    else:
        lines = [f"{quoted(level)} = {{ system.set.{knob.name} = {quoted(level)} }}" for level in levels]
    return [about, head, *lines, ""]


def _index(here: LabContext) -> Iterator[str]:
    yield 'question = "How much does the index speed up reads, and slow down writes?"'
    yield ""
    yield from own_workload(here)
    yield files(here)
    yield ""
    yield from system(here)
    yield from load(here, timed=True)
    yield "[vary.index]"
    yield "without = {}"
    yield "# Example contents of the file: CREATE INDEX ON orders (customer);"
    yield f"with = {{ data.setup = [{quoted(here.index or f'{FILL_IN}-index.sql')}] }}"
    yield ""


def _query(here: LabContext) -> Iterator[str]:
    yield 'question = "Is the rewritten query faster?"'
    yield ""
    yield from own_workload(here)
    yield ""
    yield from system(here)
    yield from load(here, timed=True)
    yield "# Each file contains the statement, with \\set for its parameters: docs/workloads/scripts.md"
    yield "[vary.query]"
    yield f'"as it is" = {{ workload.files = [{quoted(here.before or f"{FILL_IN}-before.sql")}] }}'
    yield f"rewritten = {{ workload.files = [{quoted(here.after or f'{FILL_IN}-after.sql')}] }}"
    yield ""


def _upgrade(here: LabContext) -> Iterator[str]:
    yield 'question = "Is the newer version faster?"'
    yield ""
    yield from workload(here)
    if not (here.template or here.dump or here.scripts or here.capture) and here.engine.data_import.dumps:
        yield "# Your own data instead of that workload:"
        yield from (f"# {line}" if line else "#" for line in (*own_workload(here, templates=False), files(here)))
        yield ""
    yield from system(here, dsn=False)
    pinned = here.engine.traits.pinned
    if pinned and not here.dsn:
        yield "# Set to equal values in both versions, because the defaults differ:"
        yield "[system.set]"
        yield from (f"{name} = {quoted(value)}" for name, value in pinned.items())
        yield ""
    yield from load(here)
    if here.dsn:
        if pinned:
            yield f"# Both servers should have the same {listed(list(pinned))}; the report names what else differs."
        yield "[vary.version]"
        yield f"{quoted(here.version)} = {{ dsn = {quoted(here.dsn)} }}"
        yield f"new = {{ dsn = {quoted(here.other or FILL_IN)} }}    # the newer version: same settings, same machine"
    else:
        versions = _versions(here)
        yield from (f"# {line}" for warning in warnings("upgrade", here) for line in wrap(f"Warning: {warning}", 110))
        if not here.other:
            yield "# Use programs from one packager, because builds may also differ in features (TLS, ICU, JIT, lz4)."
            yield "# `bin` may also be a directory, for example /usr/lib/…/bin"
        yield "[vary.version]"
        for version, place in versions.items():
            yield f"{quoted(version)} = {{ bin = {quoted(place)} }}" if place else f"{quoted(version)} = {{}}"
        if len(versions) == 1:
            yield f'other = {{ bin = "{FILL_IN}" }}    # program directory of the other version, e.g. /usr/lib/…/bin'
    yield ""


def _versions(here: LabContext) -> dict[str, str]:
    """Returns the versions that a lab compares if ironbench starts the servers. The key is the version, starting with
    the older one. The value is the version's `bin` setting, or "" for the programs that ironbench uses by default."""
    if here.other:
        both = {here.version: "", here.other_version: here.other}
        return {version: both[version] for version in sorted(both, key=_number)}
    known = here.engine.installations()
    return dict((known[0], known[-1])) if len(known) > 1 else {here.version: ""}


def warnings(kind: str, here: LabContext) -> list[str]:
    """Returns warnings about differences between the builds that are compared, apart from their versions."""
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
    """Converts a version to numbers by which versions are sorted, such as `18.4` to [18, 4]."""
    return [int(part) for part in re.findall(r"\d+", version)]


def _machines(here: LabContext) -> Iterator[str]:
    yield 'question = "Which of the two machines is faster?"'
    yield ""
    yield from workload(here)
    yield from load(here)
    yield "# ironbench measures both servers in turn, so every block compares them at about the same time."
    yield "# Both need the same user, and the same database if trials copy one."
    yield "[vary.machine]"
    yield f"old = {{ dsn = {quoted(here.dsn)} }}"
    yield f"new = {{ dsn = {quoted(here.other or FILL_IN)} }}"
    yield ""


_MULTIPLES = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
"""Rates in `lab new headroom`, as multiples of today's rate."""


def _headroom(here: LabContext) -> Iterator[str]:
    today = ranges.in_words(here.today)
    yield f'question = "How far can today\'s load of {today} transactions per second grow?"'
    yield 'design = "full"     # every system at every rate'
    yield ""
    yield from workload(here, "rate")
    yield from system(here)
    yield from load(here, open_loop=True)
    yield "# Today's load and multiples of it. More rates near the highest one make the answer more precise."
    yield "[vary]"
    yield f"rate = [{', '.join(f'{here.today * times:.4g}' for times in _MULTIPLES)}]"
    yield ""
    yield "# A second system, which every block measures at the same rates, for example with more memory:"
    yield "# [vary.system]"
    yield '# "current system" = {}'
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
    missing, rate = capability.lacking(), emulation_rate.stored()
    devices = []
    for name, model in ({quoted(model): model for model in here.devices} or _DEVICES).items():
        places = ", ".join(f"layout.{role} = {quoted(model)}" for role in roles)
        refused = rate is not None and emulation_rate.is_too_fast(_reads_per_s(model), rate.reads_per_s)
        off = "# " if (missing or refused) and not here.devices else ""
        devices.append(f"{off}{name} = {{ {places} }}{_emulated(model)}")
    yield "# Emulated devices (docs/how/emulated-devices.md)" + (f", which need {missing}:" if missing else ":")
    yield from _emulation_lines(rate)
    yield from devices
    yield "# A directory on another device of this machine:"
    yield '# "WAL on NVMe" = { layout.log = "/mnt/nvme/log" }'
    yield ""


def _emulation_lines(rate: EmulationRate | None) -> Iterator[str]:
    if rate is None:
        yield "# `ironbench device calibrate` shows which models this machine can emulate. Remove the others."
        return
    yield f"# This machine emulated at most {grouped(rate.reads_per_s)} reads/s on {rate.day}. Remove devices that need"
    yield f"# more than {grouped(rate.faithful_per_s)}; `ironbench device calibrate` measures again."


def _reads_per_s(model: str) -> float:
    return expression.read_rate(model, None, expression.DEEP)


def _emulated(model: str) -> str:
    """Returns a comment with the read rate that a device model needs."""
    reads_per_s = _reads_per_s(model)
    least = reads_per_s / TOO_FAST
    return f"    # {grouped(reads_per_s)} reads/s; refused if emulation achieves fewer than {grouped(least)}"


_ANYWHERE = "/var/tmp/ironbench-new"
"""Path of a directory that is never created. The path is used only to ask the engine whether its WAL can be in a
separate directory."""


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
    """The metric that the lab's verdict is about; empty for the default metric."""


_ANY = ("dsn", "engine", "dump", "script", "capture")
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
        ("dsn", "other", "dump", "script", "capture"),
        ("dsn",),
    ),
    "headroom": LabTemplate(
        "rates around today's load, on one or more systems; `ironbench headroom` reads the result",
        _headroom,
        "How far can the load grow?",
        ("today", *_ANY),
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
