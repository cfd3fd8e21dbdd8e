"""Selects the flame graphs for the formats `folded` and `pprof`, which other programs read."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.errors import InputError
from ironbench.report.charts.flame import FlameGraph
from ironbench.report.page import Page


def graphs(pages: Sequence[Page]) -> list[FlameGraph]:
    """Returns the flame graph of each profiled configuration. Raises InputError if there is none."""
    found = [graph for page in pages for part in page.shown for graph in part.flames if graph.subject]
    if not found:
        raise InputError("the report", "no trial was profiled", "measure with `--profile cpu`, or use another --format")
    return found
