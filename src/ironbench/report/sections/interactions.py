"""Interactions of two changes. An interaction is the gain of both changes together, divided by the product of their
separate gains."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.report.cell import ABSENT, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.finding_tables import ratio_bounds
from ironbench.report.page import Section, with_rows
from ironbench.report.wording.terms import value
from ironbench.report.wording.values import CI
from ironbench.study.study import Study

PLACE = 900


_LEAD = (
    "An interaction is the effect of two changes together, divided by the product of their separate effects. If "
    "it is 1, the effects are independent. Above 1, the changes reinforce each other; below 1, their effects "
    "overlap. These ratios carry no verdict."
)


def sections(study: Study) -> Iterator[Section]:
    yield Section("interactions", "Interactions of two changes", _LEAD, tables=with_rows(together(study)))


def together(study: Study) -> Table:
    """Returns a row for each pair of changes in a lab with a full design."""
    factors = {factor.name: factor for factor in study.lab.factors} if study.lab else {}
    rows = tuple(
        (
            " × ".join(value(factors[factor], level) for factor, level in one.levels.items()),
            TableCell(one.ratio, "ratio"),
            ratio_bounds(one.low, one.high) if one.blocks >= LEAST_BLOCKS_SHOWN else ABSENT,
            count(one.blocks),
        )
        for one in study.interactions
    )
    return Table(("changes", "combined / product of separate effects", CI, "blocks"), rows)
