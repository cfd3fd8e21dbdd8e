"""Lists differences in builds and defaults between two versions or engines. Such differences may explain a ratio,
although they are not part of the version itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ironbench.records.described import settings_of
from ironbench.study.differences import CHANGED, SETTINGS, Difference, differences, fact_text

LACKS = "lacks"
"""Name of the fact that lists the features that a build lacks, such as TLS."""
NONE = "none"
"""Value of `LACKS` for a build that has every feature."""


@dataclass(frozen=True, slots=True)
class BesideVersion:
    """Two configurations with different server versions or engines. A difference contains the baseline's value and the
    configuration's value."""

    cell: str
    baseline: str
    rows: tuple[Difference, ...]
    """Features that a build lacks (`LACKS`), followed by settings that were chosen for a build or a server."""
    defaults: tuple[Difference, ...] = ()
    """Settings that are at their default in both versions and still differ, because the default depends on the
    version."""
    other_engine: bool = False
    """Whether the engines differ. Each engine has its own settings and build features, so none are compared."""


def beside_version(
    comparisons: Sequence[tuple[str, str]],
    facts: Mapping[str, Mapping[str, str]],
    lacks: Mapping[str, Collection[str] | None],
) -> tuple[BesideVersion, ...]:
    """Lists all comparisons between different engines. Comparisons between versions are listed if the versions also
    differ in builds or defaults. Comparisons are left out if a side was not measured. `comparisons`: pairs of
    configuration and baseline. `facts`: for each configuration, its facts from `differences.facts`. `lacks`: for each
    configuration, the features that its build lacks; None if they are unknown.
    """
    found = []
    for cell, baseline in comparisons:
        before, after = facts.get(baseline), facts.get(cell)
        if not before or not after:
            continue
        rows = differences([before, after])
        differing = {(row.group, row.name) for row in rows}
        if ("system", "engine") in differing:
            found.append(BesideVersion(cell, baseline, (), other_engine=True))
            continue
        if ("engine", "version") not in differing:
            continue
        builds = _builds([before, after], [lacks.get(baseline), lacks.get(cell)])
        settings, defaults = _settings(before, after)
        if builds or settings or defaults:
            found.append(BesideVersion(cell, baseline, (*builds, *settings), defaults))
    return tuple(found)


def _builds(sides: Sequence[Mapping[str, str]], lacks: Sequence[Collection[str] | None]) -> tuple[Difference, ...]:
    """Returns the features that the two builds lack, if they differ. Features that one of the versions cannot have are
    ignored. Returns nothing if the features of a build are unknown, which is the case if the engine does not report
    them or the record is old."""
    before, after = lacks
    if before is None or after is None:
        return ()
    impossible = {feature for side in sides for feature in _impossible(side)}
    known = [tuple(feature for feature in one if feature not in impossible) for one in (before, after)]
    if set(known[0]) == set(known[1]):
        return ()
    return (Difference("engine", LACKS, tuple(", ".join(one) or NONE for one in known)),)


def _impossible(side: Mapping[str, str]) -> list[str]:
    features = settings_of(side.get("system.engine", "")).build_features
    return [feature for feature, setting in features.items() if f"{SETTINGS}{setting}" not in side]


def _settings(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """Splits the settings that differ into two groups. Chosen settings were set by the user or when the database was
    created. The other settings are defaults that differ between the versions. Both sides must have the same engine."""
    engine = settings_of(before.get("system.engine", ""))
    chosen: list[Difference] = []
    defaults: list[Difference] = []
    for name in engine.beside_version:
        values = [fact_text(side, f"{SETTINGS}{name}") for side in (before, after)]
        if values[0] == values[1]:
            continue
        is_default = name not in engine.pinned and not any(f"{CHANGED}{name}" in side for side in (before, after))
        (defaults if is_default else chosen).append(Difference("engine", name, tuple(values)))
    return tuple(chosen), tuple(defaults)
