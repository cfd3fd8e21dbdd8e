"""A typical trial of each system, second by second."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Depth
from ironbench.report.charts.timelines import timelines, typical_trials
from ironbench.report.section import Section

PLACE = 1500


def sections(study: Study) -> Iterator[Section]:
    yield Section("over-time", "Over time", typical_trials(study), tuple(timelines(study)), depth=Depth.PAGE)
