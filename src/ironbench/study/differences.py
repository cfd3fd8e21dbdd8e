"""Differences between systems, such as settings, layout, machine, versions and load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ironbench.model.record import Record, machines_of
from ironbench.model.redact import redacted
from ironbench.model.system import Load, System
from ironbench.study.archive import Archive

NOT_SET = "not set"
SEED = "load.seed"
OF_ONE_LOOP = ("load.arrivals", "load.think_time_s")
"""Options that have an effect only in an open loop, or only in a closed loop."""
NOT_SEEN = "not visible"
"""Value that is shown for a setting that the database role may not read."""
NOT_MEASURED = "not measured"
UNKNOWN = "unknown"
UNKNOWN_MACHINE = "machine.fingerprint"
"""Name of the only machine fact for an existing server whose machine was not observed."""
# Facts that differ from run to run and do not describe the system. File paths of PostgreSQL are among them, because the
# layout determines them and is compared separately.
_PATHS = ("config_file", "data_directory", "hba_file", "ident_file")
_INCIDENTAL = frozenset(_PATHS) | frozenset(
    {"pid", "started_at", "start_time", "port", "uptime_s", "boot_id", "taken_at", "postmaster_pid"}
)
SETTINGS, CHANGED = "engine.settings.", "engine.changed."
_SEEN, _EVERY = "engine.settings_seen", "all"
"""Name of the fact that tells whether the database role may read every setting, and its value if it may."""
_MOST_SHOWN = 24
"""If systems of the same engine differ in at most this many facts, all differences are shown first."""
_TELLING = frozenset(
    {
        *("engine.version", "engine.server", "engine.installation", "software.ironbench", "software.build"),
        *("machine.cpu.model", "machine.cpu.cores", "machine.cpu.threads", "machine.memory_bytes", "machine.kernel"),
        *("machine.os", "machine.virtualisation", "machine.limits.memory_bytes", "machine.limits.cpus"),
        *(UNKNOWN_MACHINE, "client.cpu.model", "client.cpu.cores", "client.kernel"),
    }
)
"""Facts that are always shown first, along with the user's choices (system and load)."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that differs between subjects, with one value per subject in their order."""

    group: str
    """Group of the fact: `system`, `load`, `tag`, `machine`, `client`, `engine` or `software`."""
    name: str
    values: tuple[str, ...]


def facts_of(record: Record) -> dict[str, str]:
    """Returns the record's facts about system, load, tags and versions as a flat mapping, for example
    `system.settings.work_mem` → `64MB`. The seed is included only if the user chose it, because otherwise each run
    draws a random seed.
    """
    seed = {SEED: str(record.cell.load.seed)} if record.seed_given else {}
    tags = flattened("tag", record.tags)
    return {**chosen(record.system, record.cell.load), **seed, **tags, **flattened("software", record.software)}


def declared_alike(a: Record, b: Record) -> bool:
    """Returns whether `facts_of` is equal for both records."""
    return (
        a.system == b.system
        and a.cell.load == b.cell.load
        and a.tags == b.tags
        and a.software == b.software
        and a.seed_given == b.seed_given
    )


def facts(record: Record, archive: Archive) -> dict[str, str]:
    """Returns all known facts of a record's system as a flat mapping."""
    engine = flattened("engine", archive.engine(record.engine))
    return {**facts_of(record), **machine_facts(record, archive), **engine}


def machine_facts(record: Record, archive: Archive) -> dict[str, str]:
    """Returns facts of the server's machine, and facts of a separate client machine as `client.…`."""
    server, client = machines_of(record)
    if server == client:
        return flattened("machine", archive.machine(server))
    known = flattened("machine", archive.machine(server)) if server else {UNKNOWN_MACHINE: UNKNOWN}
    return {**known, **flattened("client", archive.machine(client))}


def chosen(system: System, load: Load) -> dict[str, str]:
    """Returns the user's choices, which are known before anything is measured."""
    every = system_facts(system), load_facts(load)
    every[0].pop("label")
    # Left out: the clients and threads of a sweep, the seed, and options that have no effect on this kind of loop.
    for left_out in ("clients", "threads", "seed", "arrivals" if load.rate is None else "think_time_s"):
        every[1].pop(left_out)
    return {**flattened("system", every[0]), **flattened("load", every[1])}


def load_facts(load: Load) -> dict[str, Any]:
    """Returns the load's fields, with its curve as declared."""
    return asdict(load) | {"curve": load.curve.text if load.curve else None}


def system_facts(system: System) -> dict[str, Any]:
    """Returns the system's fields. The user's commands are returned as two texts: all commands that prepare the system,
    and all commands that undo it."""
    every = asdict(system)
    commands = every.pop("commands")
    return every | {when: "; ".join(one[when] for one in commands if one[when]) for when in ("prepare", "cleanup")}


def completed(known: Sequence[Mapping[str, str] | None], declared: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Returns the facts of every system, even if it was not measured (`known` is None). The facts of such a system are
    its `declared` facts and the facts that all other systems have in common. The value of its other facts is "not
    measured"."""
    measured = [flat for flat in known if flat is not None]
    rest = dict.fromkeys(differing(measured), NOT_MEASURED) | shared(measured)
    rest = {name: value for name, value in rest.items() if name.partition(".")[0] not in ("system", "load")}
    return [{**rest, **own} if flat is None else dict(flat) for flat, own in zip(known, declared, strict=True)]


def flattened(prefix: str, value: Any) -> dict[str, str]:
    """Converts nested facts to dotted names and text. Leaves out empty facts and facts that do not describe the system
    (`_INCIDENTAL`)."""
    if isinstance(value, Mapping):
        flat: dict[str, str] = {}
        for key, part in value.items():
            if str(key) not in _INCIDENTAL:
                flat.update(flattened(f"{prefix}.{key}", part))
        return flat
    if value is None or value == "" or value == () or value == []:
        return {}
    if isinstance(value, list | tuple):
        if any(isinstance(part, Mapping) for part in value):
            return flattened(prefix, {_key_of(part, place): part for place, part in enumerate(value)})
        return {prefix: redacted(", ".join(str(part) for part in value), prefix)}
    text = f"{value:.15g}" if isinstance(value, float) else str(value)
    return {prefix: redacted(text, prefix)}


def differing(facts: Sequence[Mapping[str, str]]) -> list[str]:
    """Lists the names of the facts that differ, in order of first occurrence. The seed is listed only if the user chose
    a seed for every system."""
    names: dict[str, None] = {}
    for flat in facts:
        names.update(dict.fromkeys(flat))
    if any(SEED not in flat for flat in facts):
        names.pop(SEED, None)
    return [name for name in names if len({flat.get(name) for flat in facts}) > 1]


def fact_text(flat: Mapping[str, str], name: str) -> str:
    """Returns a fact's value. If the fact has no value, returns the reason as text: it is not set, unknown, or not
    visible to the database role."""
    if name.startswith("machine.") and UNKNOWN_MACHINE in flat:
        return UNKNOWN
    hidden = name.startswith(SETTINGS) and flat.get(_SEEN, _EVERY) != _EVERY
    return flat.get(name, NOT_SEEN if hidden else NOT_SET)


def differences(facts: Sequence[Mapping[str, str]]) -> tuple[Difference, ...]:
    """Returns a row for each fact that differs. `facts`: one flat mapping for each system."""
    rows = []
    for name in differing(facts):
        group, _, rest = name.partition(".")
        rows.append(Difference(group, rest, tuple(fact_text(flat, name) for flat in facts)))
    return tuple(rows)


def most_relevant(rows: Sequence[Difference]) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Splits differences into those that a report shows first, and the rest. Likely causes are at the top (`_rank`).

    Two different engines inevitably differ in hundreds of facts. Only the user's choices (settings, layout, memory,
    load), the versions and the size of the machine are then shown first. For servers of the same engine, settings that
    differ are also shown first, because administrators may have chosen them.
    """
    ranked = sorted(rows, key=_rank)
    engines_differ = any(row.group == "system" and row.name == "engine" for row in rows)
    if not engines_differ and len(rows) <= _MOST_SHOWN:
        return tuple(ranked), ()
    settings = [row for row in ranked if row.group == "engine" and is_setting(row)]
    if engines_differ or len(settings) > _MOST_SHOWN:
        settings = []
    main = [
        row
        for row in ranked
        if row.group in ("system", "load", "tag") or f"{row.group}.{row.name}" in _TELLING or row in settings
    ]
    return tuple(main), tuple(row for row in ranked if row not in main)


def is_setting(row: Difference) -> bool:
    return row.group in ("system", "engine") and row.name.startswith("settings.")


def is_address(row: Difference) -> bool:
    """Returns whether the fact is a server's address, which always differs and does not explain performance."""
    return row.group == "system" and row.name in ("dsn", "server")


def _rank(row: Difference) -> int:
    """Returns a sort key. Settings come first, then the rest of the system, versions, load and machine. Addresses come
    last."""
    if is_address(row):
        return 9
    if is_setting(row):
        return 0
    if row.name.startswith("changed."):  # where a setting was changed, such as in a configuration file
        return 5
    return {"system": 1, "load": 3, "machine": 4}.get(row.group, 2 if f"{row.group}.{row.name}" in _TELLING else 5)


def shared(facts: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Returns the facts that all subjects have in common."""
    apart = set(differing(facts))
    return {name: value for flat in facts[:1] for name, value in flat.items() if name not in apart}


def chosen_settings(facts: Mapping[str, str]) -> tuple[dict[str, str], int]:
    """Leaves out the settings of an engine that are at their default. Returns the remaining facts, and the number of
    settings left out.

    The fact `changed` lists the settings that are not at their default. If an engine has no such list, all settings are
    kept.
    """
    changed = {name.removeprefix(CHANGED) for name in facts if name.startswith(CHANGED)}
    if not changed:
        return dict(facts), 0
    kept = {
        name: value
        for name, value in facts.items()
        if not name.startswith((SETTINGS, CHANGED)) or name.removeprefix(SETTINGS) in changed
    }
    return kept, sum(name.startswith(SETTINGS) for name in facts) - sum(name.startswith(SETTINGS) for name in kept)


def _key_of(part: Any, place: int) -> str:
    for key in ("name", "mount", "path", "device"):
        if isinstance(part, Mapping) and part.get(key):
            return str(part[key])
    return str(place)
