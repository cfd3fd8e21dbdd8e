"""Where the CPU time went: of runs a stacked bar per number of clients, of a lab one per cell."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.shares import BUDGET, by_clients
from ironbench.report.charts.stacked import Bar, keys, stacked
from ironbench.report.numbers import quantity
from ironbench.report.section import Section

PLACE = 1700
_SCALE = {"scale": {"domain": [0, 1], "nice": False}, "axis": {"title": None, "format": ".0%", "tickCount": 5}}


def sections(study: Study) -> Iterator[Section]:
    yield Section("cpu", "Where the CPU time went", charts=(*of_parts(study), *of_cells(study)))


def of_parts(study: Study) -> list[Chart]:
    return [
        by_clients(f"budget-{place}", part.name, "CPU time", part.budgets, BUDGET, "of the CPU time of all cores")
        for place, part in enumerate(study.parts)
        if part.budgets
    ]


def of_cells(study: Study) -> list[Chart]:
    """None where no trial measured its budget."""
    cells = [cell for cell in study.cells if cell.budget]
    colours = {
        part: colour for part, colour in BUDGET.items() if any(cell.budget.get(part, 0.0) >= 0.0005 for cell in cells)
    }
    if not colours:
        return []
    bars = [
        Bar(cell.name, cell.budget, {part: quantity(cell.budget.get(part, 0.0), "share") for part in colours})
        for cell in cells
    ]
    rows = tuple((bar.name, *(bar.words[part] for part in colours)) for bar in bars)
    words = "; ".join(f"{bar.name}: {', '.join(f'{part} {bar.words[part]}' for part in colours)}" for bar in bars)
    return [
        Chart(
            "budget",
            "CPU budget",
            f"Share of the CPU time of all cores. {words}.",
            stacked(bars, colours, _SCALE),
            Table(("cell", *colours), rows),
            "% of the CPU time of all cores",
            keys(colours),
            wide=True,
        )
    ]
