"""Two changes made together, over the product of each alone."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.model.finding import FEWEST_TOLD
from ironbench.report.charts.base import Table
from ironbench.report.findings import ratio
from ironbench.report.section import Section, with_rows

PLACE = 900


_LEAD = (
    "Two changes made together, over the product of what each does alone: 1 says that their effects multiply, more "
    "that each helps the other, less that they overlap. These carry no verdict."
)


def sections(study: Study) -> Iterator[Section]:
    yield Section("interactions", "Together and alone", _LEAD, tables=with_rows(together(study)))


def together(study: Study) -> Table:
    """A row for each pair of levels of a full design."""
    rows = tuple(
        (
            one.name,
            ratio(one.ratio),
            f"{ratio(one.low)} to {ratio(one.high)}" if one.blocks >= FEWEST_TOLD else "–",
            str(one.blocks),
        )
        for one in study.interactions
    )
    return Table(("changes", "together over alone", "95 % interval", "blocks"), rows)
