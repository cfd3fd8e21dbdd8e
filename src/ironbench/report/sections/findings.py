"""Findings: the comparisons that a lab declared, each with its verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ironbench.analyse.study import Study
from ironbench.report.charts import levels
from ironbench.report.charts.base import Depth
from ironbench.report.charts.effects import effects
from ironbench.report.findings import effect_table
from ironbench.report.section import Section, some

PLACE = 200


def sections(study: Study) -> Iterator[Section]:
    # The table says what the charts show.
    charts = tuple(replace(chart, depth=Depth.PAGE) for chart in (*effects(study), *levels.whole(study.levels)))
    yield Section("findings", "Findings", charts=charts, tables=some(effect_table(study.effects)), at_end=True)
