"""What differs between systems or cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ironbench.analyse.differences import Difference, telling
from ironbench.analyse.study import Study
from ironbench.report.charts.base import Table
from ironbench.report.numbers import number, quantity
from ironbench.report.section import Section, by_value, some

PLACE = 2400


REST = "Everything else that differs"


def sections(study: Study) -> Iterator[Section]:
    if study.lab:
        lead = "Everything recorded that is not the same in all cells: what was varied, and what came with it."
        yield Section("differences", "What differs between the cells", lead, tables=some(between_cells(study)))
    else:
        yield Section("differences", "What differs", _lead(study), tables=tuple(between_parts(study)))


def between_parts(study: Study) -> list[tuple[str, Table]]:
    """What a reader must see, without a name; under a name of its own the rest."""
    told, rest = telling(study.differences)
    head = ("fact", *(part.name for part in study.parts))
    named = (("", told), (REST, rest))
    return [
        (name, Table(head, difference_rows(rows), words=True, counted=name == REST)) for name, rows in named if rows
    ]


def between_cells(study: Study) -> Table:
    """A row for each fact and value, with the cells that have it."""
    rows = []
    for row in study.differences:
        said = [(cell.name, fact(row.name, value)) for cell, value in zip(study.cells, row.values, strict=True)]
        rows += [(f"{row.room}: {fact_name(row.name)}", value, cells) for value, cells in by_value(said)]
    return Table(("fact", "value", "in"), tuple(rows), words=True)


def difference_rows(rows: Sequence[Difference]) -> tuple[tuple[str, ...], ...]:
    """A row per fact, its value in every system."""
    return tuple(
        (f"{row.room}: {fact_name(row.name)}", *(fact(row.name, value) for value in row.values)) for row in rows
    )


def fact_name(name: str) -> str:
    """A fact's name without the unit that its value now shows."""
    return name.removesuffix("_bytes").removesuffix("_hz")


def fact(name: str, value: str) -> str:
    """Sizes in powers of 1024, as memory is sold and as engines count; all else as recorded."""
    if name.endswith("_bytes") and value.isdigit():
        return quantity(float(value), "memory")
    if name.endswith("_hz") and value.isdigit():
        return f"{number(float(value) / 1e9)} GHz"
    return value


def _lead(study: Study) -> str:
    if len(study.parts) < 2:
        return ""
    if not study.differences:
        return "Nothing that was recorded differs between these systems."
    return "Everything recorded that is not the same for all systems."
