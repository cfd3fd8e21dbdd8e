"""Examines a machine: every probe gives readings on what silently spoils numbers, what that means, and the remedy.

A probe is a function in `host/probes/`, registered by `@probe(area, name)`. It gets the `HostView` and returns a
reading, several, or None when this machine does not show what it looks for. Its docstring says in one sentence what it
is about.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import Diagnosis, Reading, Severity

Readings = Reading | Iterable[Reading] | None
Inspection = Callable[[HostView], Readings]


@dataclass(frozen=True, slots=True)
class Probe:
    area: str
    name: str
    about: str
    inspect: Inspection


AREAS = ("load", "cpu", "memory", "time", "storage", "power", "facilities", "software")
"""In the order they are shown."""
_PROBES: dict[str, Probe] = {}


def probe(area: str, name: str) -> Callable[[Inspection], Inspection]:
    """Registers a function under a name of its own."""
    assert area in AREAS, area
    assert name not in _PROBES, name

    def register(inspect: Inspection) -> Inspection:
        about = (inspect.__doc__ or "").strip().splitlines()[0]
        _PROBES[name] = Probe(area, name, about, inspect)
        return inspect

    return register


def probes() -> tuple[Probe, ...]:
    """Every probe, by area, in the order of their files."""
    from ironbench.host import probes as package

    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_PROBES.values(), key=lambda one: AREAS.index(one.area)))


def examine(host: HostView, areas: Collection[str] = AREAS) -> tuple[Diagnosis, ...]:
    """All diagnoses, in the order of the areas. A probe that stumbles is reported as seeing nothing, never raised."""
    return tuple(diagnosis for one in probes() if one.area in areas for diagnosis in _diagnoses(one, host))


def worst(diagnoses: Iterable[Diagnosis]) -> Severity:
    return max((diagnosis.severity for diagnosis in diagnoses), key=lambda one: one.rank, default=Severity.OK)


def _diagnoses(one: Probe, host: HostView) -> list[Diagnosis]:
    try:
        answer = one.inspect(host)
        readings = [answer] if isinstance(answer, Reading) else list(answer or ())
    except Exception as error:  # whatever a strange machine shows must not end the examination
        return [_unseen(one, f"not visible here: {error}")]
    if not readings:
        return [_unseen(one, _not_visible(host))]
    return [
        Diagnosis(one.area, one.name, one.about, reading.severity, reading.seen, reading.meaning, reading.remedy)
        for reading in readings
    ]


def _unseen(one: Probe, why: str) -> Diagnosis:
    return Diagnosis(one.area, one.name, one.about, Severity.NOTE, why, "", "", visible=False)


def _not_visible(host: HostView) -> str:
    if host.virtual != "none":
        return "not visible here: this is a virtual machine, ask whoever runs its host"
    if host.container != "none":
        return "not visible here: this is a container, look on its host"
    return "not visible here"
