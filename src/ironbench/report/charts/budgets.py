"""The CPU budget of a lab: a stacked bar per cell."""

from __future__ import annotations

from ironbench.analyse.labstudy import LabStudy
from ironbench.report.charts.base import Chart, Table
from ironbench.report.charts.shares import BUDGET
from ironbench.report.charts.stacked import Bar, keys, stacked
from ironbench.report.numbers import quantity

_SCALE = {"scale": {"domain": [0, 1], "nice": False}, "axis": {"title": None, "format": ".0%", "tickCount": 5}}


def budgets(study: LabStudy) -> list[Chart]:
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
