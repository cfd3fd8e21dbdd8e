"""Examines a machine for conditions that silently distort measurements, and suggests fixes.

A check is a function in `host/probes/`, registered by `@probe(area, name)`. The function gets the `HostView` and
returns one or several findings, or None if the machine does not provide the information. The first line of its
docstring is shown to users as the description of the check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from ironbench.host.host_view import HostView
from ironbench.model.diagnosis import CheckResult, Diagnosis, Severity

Readings = CheckResult | Iterable[CheckResult] | None
Inspection = Callable[[HostView], Readings]


@dataclass(frozen=True, slots=True)
class Probe:
    area: str
    name: str
    about: str
    inspect: Inspection


AREAS = ("load", "cpu", "memory", "time", "storage", "power", "facilities", "software")
"""Areas in the order in which they are shown."""
_PROBES: dict[str, Probe] = {}


def probe(area: str, name: str) -> Callable[[Inspection], Inspection]:
    """Registers a check under a unique name."""
    assert area in AREAS, area
    assert name not in _PROBES, name

    def register(inspect: Inspection) -> Inspection:
        about = (inspect.__doc__ or "").strip().splitlines()[0]
        _PROBES[name] = Probe(area, name, about, inspect)
        return inspect

    return register


def probes() -> tuple[Probe, ...]:
    """Returns every check. The checks are sorted by area, and the checks of an area by the name of their module."""
    from ironbench.host import probes as package

    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(_PROBES.values(), key=lambda one: AREAS.index(one.area)))


def examine(host: HostView, areas: Collection[str] = AREAS) -> tuple[Diagnosis, ...]:
    """Returns all findings, in the order of the areas. A check that raises an exception is reported as "not
    visible"."""
    return tuple(diagnosis for one in probes() if one.area in areas for diagnosis in _diagnoses(one, host))


def worst(diagnoses: Iterable[Diagnosis]) -> Severity:
    return max((diagnosis.severity for diagnosis in diagnoses), key=lambda one: one.rank, default=Severity.OK)


def _diagnoses(one: Probe, host: HostView) -> list[Diagnosis]:
    try:
        answer = one.inspect(host)
        readings = [answer] if isinstance(answer, CheckResult) else list(answer or ())
    except Exception as error:  # unexpected contents of /proc or /sys must not end the examination
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
        return "not visible here: this is a virtual machine; ask its provider"
    if host.container != "none":
        return "not visible here: this is a container; check its host"
    return "not visible here"
