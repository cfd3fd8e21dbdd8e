"""What a workload says of itself whose result is not a throughput, before all else."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report import own, storage
from ironbench.report.section import Section

PLACE = 300


def sections(study: Study) -> Iterator[Section]:
    shown = own.presentation(study)
    yield from shown.sections(study) if shown else storage.of_lab([(cell.name, cell.usable) for cell in study.cells])
