"""The screen of a lab of that design: every factor's effect, before anything was compared in fresh blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ironbench.report.charts.base import Depth
from ironbench.report.charts.screen import screened
from ironbench.report.screen import lead, screened_table
from ironbench.report.section import Section, with_rows
from ironbench.study.study import Study

PLACE = 150


def sections(study: Study) -> Iterator[Section]:
    screen = study.screen
    if screen is None or not screen.factors:
        return
    # The table says what the chart shows.
    charts = tuple(replace(chart, depth=Depth.PAGE) for chart in screened(screen))
    yield Section("screen", "The screen", lead(screen), charts, with_rows(screened_table(screen)), at_end=True)
