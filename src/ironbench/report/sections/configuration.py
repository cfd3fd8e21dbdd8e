"""What all systems or cells have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Depth, Table
from ironbench.report.section import Section
from ironbench.report.sections.differences import fact, fact_name

PLACE = 2600


_ROOMS = ("system", "load", "machine", "engine", "software")


def sections(study: Study) -> Iterator[Section]:
    tables = tuple(configuration(study.shared))
    yield Section("configuration", "Configuration in common", tables=tables, depth=Depth.PAGE)


def configuration(shared: Mapping[str, str]) -> list[tuple[str, Table]]:
    """Facts in common, a table per room."""
    found = []
    for room in _ROOMS:
        rows = [
            (fact_name(name.partition(".")[2]), fact(name, value))
            for name, value in shared.items()
            if name.partition(".")[0] == room
        ]
        if rows:
            found.append((room.capitalize(), Table(("fact", "value"), tuple(rows))))
    return found
