"""Facts about workloads and engines. Code that reads records must look up these facts only here."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ironbench import engines, workloads
from ironbench.errors import InputError
from ironbench.host import data_dirs
from ironbench.model.described import Described
from ironbench.model.note import Note, note
from ironbench.model.observer import OTHER
from ironbench.model.record import CAN_LOSE_DATA, Record
from ironbench.model.system import Choice, System


def described(record: Record) -> Described:
    """Returns the facts about workload and engine that the record contains. An older record contains no such facts.
    Returns the facts that this version knows then."""
    return record.described or describe(record.choice, record.system.engine, record.cell.load.clients)


def describe(choice: Choice, engine: str, clients: int) -> Described:
    """Returns the facts that this version knows. For an unknown workload or engine, returns defaults."""
    return _described(choice.workload, tuple(choice.options.items()), engine, clients)


@lru_cache(maxsize=1024)  # cached: many trials have the same work
def _described(workload_name: str, options: tuple[tuple[str, str], ...], engine_name: str, clients: int) -> Described:
    workload, engine = workloads.find(workload_name), engines.find(engine_name)
    known = Described()
    if workload is not None:
        chosen, streams = dict(options), None
        with contextlib.suppress(InputError):  # this version may lack an option of the record
            streams = workload.streams(chosen)
        known = Described(
            units=workload.counts,
            leading=workload.leading(chosen),
            scores=workload.scores,
            derived=workload.derived,
            streams=streams,
            connections=workload.connections(clients, chosen),
            rests=workload.rests(chosen),
            paced=workload.is_paced(chosen),
            drives=workload.drives,
            units_only=workload.counts_all(chosen),
        )
    if engine is None:
        return known
    return replace(
        known,
        bare_machine=engine.can("bare machine"),
        in_client=engine.can("in client"),
        limited_writers=engine.traits.writers is not None,
        waits=engine.traits.events,
    )


def cache_bytes(record: Record, settings: Mapping[str, str]) -> int | None:
    """Returns the size of the engine's buffer cache according to its settings, summed over all clients. Returns None if
    it is unknown."""
    engine = engines.find(record.system.engine)
    return engine.cache_bytes(settings, record.cell.load.clients) if engine else None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Facts about an engine's settings for comparisons of two systems. All fields are empty if this version does not
    know the engine."""

    ideal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each part of the system that can be emulated with zero latency, the settings that the emulation changes."""
    derived: tuple[str, ...] = ()
    """Settings whose values ironbench derives from other settings."""
    beside_version: tuple[str, ...] = ()
    """Settings that can explain a difference between versions."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Settings that ironbench always sets."""
    build_features: Mapping[str, str] = field(default_factory=dict)
    """For each build feature, a setting that exists only in builds with this feature."""


def settings_of(engine_name: str) -> EngineSettings:
    engine = engines.find(engine_name)
    if engine is None:
        return EngineSettings()
    traits = engine.traits
    return EngineSettings(
        traits.ideal_settings, traits.derived_settings, traits.beside_version, traits.pinned, traits.build_features
    )


def profile_groups(engine_name: str) -> Mapping[str, str]:
    """Returns the engine's names for kinds of work in profiles (`Engine.profile_groups`). Returns an empty mapping for
    an unknown engine."""
    engine = engines.find(engine_name)
    return engine.profile_groups if engine else {}


def profile_waits(engine_name: str) -> Mapping[str, str]:
    """Returns the wait class of each activity in profiles (`Engine.profile_waits`). Returns an empty mapping for an
    unknown engine."""
    engine = engines.find(engine_name)
    return engine.profile_waits if engine else {}


def wait_class(engine_name: str, event: str) -> str:
    """Returns the wait class of a wait event. The class is `OTHER` if it is unknown."""
    engine = engines.find(engine_name)
    return engine.wait_class(event) if engine else OTHER


def ideal_bytes(system: System) -> dict[str, int]:
    """Returns the memory that each part of the system may need if it is emulated with zero latency. Returns an empty
    dict for an unknown engine."""
    engine = engines.find(system.engine)
    return engine.ideal_bytes(system) if engine else {}


def losses(system: System) -> list[Note]:
    """Returns a note for each declared setting that allows a crash to lose data."""
    return [note(CAN_LOSE_DATA, settings=(one,)) for one in engines.losses_of(system)]


def is_usual_place(directory: str | None, engine: str) -> bool:
    """Returns whether the directory is the default data directory of any version of this engine."""
    if directory is None:
        return False
    path = Path(directory)
    _, _, version = path.name.rpartition("-")
    with contextlib.suppress(InputError):  # without a home directory there is no default
        return path == data_dirs.default(engine, version)
    return False
