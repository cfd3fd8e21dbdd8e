"""Warns before a lab starts if the builds of the versions that it compares differ in optional features."""

from __future__ import annotations

from collections.abc import Mapping

from ironbench import engines
from ironbench.model.system import System
from ironbench.words import listed


def differing(systems: Mapping[str, System]) -> str:
    """Compares each build's optional features with the features of the baseline's build, and describes the differences.
    Returns "" if no difference is known. `systems`: systems by name, starting with the baseline. Example of the result:
    `15.18 is built with TLS and ICU, but 18.4 is not`.
    """
    if not systems:
        return ""
    (baseline, first), *others = systems.items()
    before = engines.get(first.engine).build_features(first) or {}
    parts: dict[tuple[bool, tuple[str, ...]], str] = {}  # the same text for all systems with the same difference
    for name, other in others:
        after = (engines.get(other.engine).build_features(other) or {}) if other.engine == first.engine else {}
        differ = [feature for feature, built in before.items() if after.get(feature, built) != built]
        for built, has, lacks in ((True, baseline, name), (False, name, baseline)):
            if features := tuple(feature for feature in differ if before[feature] is built):
                words = f"{has} is built with {listed(features)}, but {lacks} is not"
                parts.setdefault((built, features), words)
    if not parts:
        return ""
    return (
        f"the versions are not the only difference: {'; '.join(parts.values())}. To compare only the versions, use "
        "programs from one source, for example packages from one repository"
    )


def unknown(systems: Mapping[str, System]) -> str:
    """Returns a note that names the builds whose optional features cannot be read. Returns "" if all can be read."""
    names = [name for name, one in systems.items() if engines.get(one.engine).build_features(one) is None]
    if not names:
        return ""
    return (
        f"the build options of {listed(names)} are unknown, so the builds may differ in more than the version; the "
        "report lists the features in which they differ"
    )
