"""Facts about workloads and engines that reports need: the only place where readers of records look them up."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ironbench import engines, workloads
from ironbench.errors import InputError
from ironbench.host import place
from ironbench.model.described import Described
from ironbench.model.record import Record
from ironbench.model.system import Choice, System


def described(record: Record) -> Described:
    """Facts about the trial's workload and engine: those of the record; of an older record those of this version."""
    return record.described or describe(record.choice, record.system.engine, record.cell.load.clients)


def describe(choice: Choice, engine: str, clients: int) -> Described:
    """The facts of this version; defaults where it does not know the workload or the engine."""
    return _described(choice.workload, tuple(choice.options.items()), engine, clients)


@lru_cache(maxsize=1024)  # trials are many, kinds of work few
def _described(workload_name: str, options: tuple[tuple[str, str], ...], engine_name: str, clients: int) -> Described:
    workload, engine = workloads.find(workload_name), engines.find(engine_name)
    known = Described()
    if workload is not None:
        chosen, streams = dict(options), None
        with contextlib.suppress(InputError):  # an option of another version
            streams = workload.streams(chosen)
        known = Described(
            units=workload.counts,
            leading=workload.leading(chosen),
            scores=workload.scores,
            derived=workload.derived,
            streams=streams,
            connections=workload.connections(clients),
            paced=workload.paced,
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
    """Size of the engine's own data cache by its settings, of all clients together; None: not known."""
    engine = engines.find(record.system.engine)
    return engine.cache_bytes(settings, record.cell.load.clients) if engine else None


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which settings of an engine mean what when two systems are compared; empty for an unknown engine."""

    ideal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ideal part → settings that making it free decides."""
    derived: tuple[str, ...] = ()
    """Settings that follow from others."""
    beside_version: tuple[str, ...] = ()
    """Settings that can explain a difference between versions."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Settings that ironbench sets itself."""
    build_features: Mapping[str, str] = field(default_factory=dict)
    """Feature of a build → the setting that exists only with it."""


def settings_of(engine_name: str) -> EngineSettings:
    engine = engines.find(engine_name)
    if engine is None:
        return EngineSettings()
    traits = engine.traits
    return EngineSettings(
        traits.ideal_settings, traits.derived_settings, traits.beside_version, traits.pinned, traits.build_features
    )


def ideal_bytes(system: System) -> dict[str, int]:
    """Ideal part → memory that it may need; empty for an unknown engine."""
    engine = engines.find(system.engine)
    return engine.ideal_bytes(system) if engine else {}


def losses(system: System) -> list[str]:
    """What a crash can lose with the declared settings, in words of the engine."""
    return [one.sentence for one in engines.losses_of(system)]


def is_usual_place(directory: str | None, engine: str) -> bool:
    """Whether data of this engine, of some version, are there if the user chooses no directory."""
    if directory is None:
        return False
    path = Path(directory)
    _, _, version = path.name.rpartition("-")
    with contextlib.suppress(InputError):  # no home
        return path == place.default(engine, version)
    return False
