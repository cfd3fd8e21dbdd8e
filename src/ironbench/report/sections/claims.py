"""What the author of a lab expected, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Table
from ironbench.report.findings import claimed_table
from ironbench.report.section import Section, some

PLACE = 100


def sections(study: Study) -> Iterator[Section]:
    asked = some(claimed_table(study.claimed), "Findings that only a claim asks for")
    yield Section("claims", "What was expected", tables=(*some(claims(study)), *asked), at_end=True)


def claims(study: Study) -> Table:
    """What the author expected, in the words of the lab file, and what became of it."""
    rows = tuple((judged.claim.text, judged.outcome, judged.reason) for judged in study.claims)
    return Table(("claim", "outcome", "because"), rows, words=True)
