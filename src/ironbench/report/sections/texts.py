"""The text of every script that was driven."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Depth
from ironbench.report.section import Section

PLACE = 2550


def sections(study: Study) -> Iterator[Section]:
    yield Section("texts", "The scripts", texts=study.scripts, depth=Depth.DOCUMENT)
