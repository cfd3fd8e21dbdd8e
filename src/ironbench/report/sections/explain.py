"""A section for each comparison of a lab, with the breakdown of the difference."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report.breakdown import ID, TITLE, breakdown_table, lead
from ironbench.report.page import Section
from ironbench.report.wording import terms
from ironbench.study.study import Study

PLACE = 650


def sections(study: Study) -> Iterator[Section]:
    known = [one for one in study.explanations if one.goes_down]
    tables = tuple(
        (f"From {terms.configuration(one.before)} to {terms.configuration(one.after)}", breakdown_table(one))
        for one in known
    )
    yield Section(ID, TITLE, lead(*known), tables=tables)
