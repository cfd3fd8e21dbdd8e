"""Claims and findings of a lab, including those of earlier rounds. Some workloads add further sections with their
results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ironbench.report import presentation, wording
from ironbench.report.charts.base import Depth, Table
from ironbench.report.charts.effects import effects
from ironbench.report.charts.grouped import value_bars
from ironbench.report.finding_tables import claimed_table, finding_table
from ironbench.report.page import Section, with_rows
from ironbench.study.claims import JudgedClaim
from ironbench.study.study import Study

PLACE = 100


def sections(study: Study) -> Iterator[Section]:
    asked = with_rows(claimed_table(study.claimed), "Findings that only claims use")
    yield Section("claims", "Claims", tables=(*with_rows(claims(study)), *asked), printed_at_end=True)
    # Only HTML pages and pictures show the charts, because the table contains the same figures.
    charts = tuple(replace(chart, depth=Depth.PAGE) for chart in (*effects(study), *value_bars(study.levels)))
    yield Section(
        "findings", "Findings", charts=charts, tables=with_rows(finding_table(study.findings)), printed_at_end=True
    )
    shown = presentation.of_study(study)
    yield from shown.sections(study) if shown else presentation.of_lab(study)
    yield Section("earlier", "Earlier rounds", _LEAD_EARLIER, tables=tuple(earlier(study)), printed_at_end=True)


def claims(study: Study) -> Table:
    """Returns a row for each claim, with its text in the lab file, its verdict, and the reason."""
    rows = tuple((judged.claim.text, judged.verdict, _because(judged)) for judged in study.claims)
    return Table(("claim", "outcome", "reason"), rows, words=True)


def _because(judged: JudgedClaim) -> str:
    return "; ".join(wording.texts(judged.reasons))


_LEAD_EARLIER = (
    "Blocks that are added after the findings are known form a new round. The findings above belong to the last "
    "round. The findings of earlier rounds follow; each finding uses only blocks of its round. A later round "
    "does not revoke the findings of an earlier round."
)


def earlier(study: Study) -> list[tuple[str, Table]]:
    """Returns tables of the findings and claims of all rounds except the last one."""
    rows = [(str(one.number), row) for one in study.earlier for row in claimed_table(one.findings).rows]
    judgements = [(str(one.number), judged) for one in study.earlier for judged in one.claims]
    findings = Table(("round", *claimed_table(()).head), tuple((number, *row) for number, row in rows))
    expected = tuple((number, judged.claim.text, judged.verdict, _because(judged)) for number, judged in judgements)
    claims = Table(("round", "claim", "outcome", "reason"), expected, words=True)
    tables = [("Findings", findings), ("Claims", claims)]
    return [(name, table) for name, table in tables if table.rows]
