"""Rounds of a lab before the last one."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.charts.base import Table
from ironbench.report.findings import claimed_table
from ironbench.report.section import Section

PLACE = 400


_LEAD = (
    "Blocks that were added after findings had been seen are a round of their own, and the findings above are those of "
    "the last one. This is what the rounds before it ended with, each on its own blocks; no later one takes it back."
)


def sections(study: Study) -> Iterator[Section]:
    yield Section("earlier", "Earlier rounds", _LEAD, tables=tuple(earlier(study)), at_end=True)


def earlier(study: Study) -> list[tuple[str, Table]]:
    """Findings and claims of the rounds before the last one."""
    found = [(str(one.number), row) for one in study.earlier for row in claimed_table(one.effects).rows]
    held = [(str(one.number), judged) for one in study.earlier for judged in one.claims]
    findings = Table(("round", *claimed_table(()).head), tuple((number, *row) for number, row in found), numbers=True)
    expected = tuple((number, judged.claim.text, judged.outcome, judged.reason) for number, judged in held)
    claims = Table(("round", "claim", "outcome", "because"), expected, words=True)
    tables = [("Findings", findings), ("What was expected", claims)]
    return [(name, table) for name, table in tables if table.rows]
