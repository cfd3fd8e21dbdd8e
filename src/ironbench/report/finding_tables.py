"""Texts and tables about findings, for all formats. Other texts and tables are about queries that changed against the
overall trend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ironbench.catalogue import better
from ironbench.model.finding import Finding
from ironbench.report import wording
from ironbench.report.cell import ABSENT, CONFIDENCE, EMPTY, Missing, Row, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.numbers import percent
from ironbench.report.wording.answers.ratios import duration, has_interval, metric_words

if TYPE_CHECKING:
    from ironbench.study.queries import ContraryQuery

_FEW = 2
"""Up to this number of comparisons, each has a table of all metrics. More comparisons share one table, which shows only
main metrics."""
_MOST_ACROSS = 4
_ACROSS = (
    "throughput",
    *(f"{time}_time_{part}_s" for time in ("response", "service") for part in ("mean", "p50", "p90", "p95", "p99")),
)
"""Metrics for the table that comparisons share. The table shows the first `_MOST_ACROSS` of them that are known."""


NO_INTERVAL = "no CI"


def ratio_cell(finding: Finding) -> TableCell:
    """Returns the cell of a ratio without its confidence interval."""
    return TableCell(finding.ratio, "ratio")


def interval_cell(finding: Finding) -> TableCell | Missing:
    """Returns the cell of a ratio's confidence interval."""
    return (
        TableCell(None, "ratio", finding.low, finding.high, finding.confidence)
        if has_interval(finding)
        else Missing(NO_INTERVAL)
    )


def ratio_bounds(low: float, high: float, known: bool = True) -> TableCell | Missing:
    """Returns the cell of a ratio's 95% confidence interval, not corrected for multiple comparisons."""
    return TableCell(None, "ratio", low, high, CONFIDENCE) if known else Missing(NO_INTERVAL)


def detectable_cell(finding: Finding) -> TableCell | Missing:
    """Returns the cell of the minimum detectable effect."""
    return ABSENT if finding.detectable is None else TableCell(finding.detectable, "detectable")


def verdict(finding: Finding) -> str:
    """Returns the verdict with its caveat, such as `faster; the ratio drifted from 3.40 to 2.00 over the blocks`."""
    caveat = f"; {wording.text(finding.changed)}" if finding.changed else ""
    return f"{finding.conclusion.word}{caveat}"


def finding_table(findings: Sequence[Finding]) -> Table:
    """Returns a row for each finding that has a verdict."""
    head = ("comparison", "ratio", "CI", "verdict", "blocks", "min. detectable effect", "p")
    rows = []
    for finding in findings:
        known = (ratio_cell(finding), interval_cell(finding))
        figures = (*known, verdict(finding), _blocks(finding), detectable_cell(finding))
        rows.append(
            (
                wording.terms.comparison(finding),
                *figures,
                ABSENT if finding.p is None else TableCell(finding.p, "p"),
            )
        )
    return Table(head, tuple(rows))


def metric_tables(findings: Sequence[Finding]) -> list[tuple[str, Table]]:
    """Returns tables of ratios that have no verdicts: for each comparison, a table with a row for each metric. If there
    are more than `_FEW` comparisons, there is only one table, with a row for each comparison."""
    by_pair: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        by_pair.setdefault((one.cell, one.baseline), []).append(one)
    if len(by_pair) > _FEW:
        return [("", _across(list(by_pair.values())))]
    head = ("metric", "ratio", "CI", "better", "blocks")
    return [(wording.terms.comparison(own[0]), Table(head, _metric_rows(own))) for own in by_pair.values()]


def _metric_rows(findings: Sequence[Finding]) -> tuple[Row, ...]:
    return tuple((metric_words(one.metric), *_ratio_cells(one), better(one.metric), _blocks(one)) for one in findings)


def _ratio_cells(one: Finding) -> tuple[TableCell, TableCell | Missing]:
    """Returns a cell with the ratio and a cell with its confidence interval. For fractions close to zero, the first
    cell contains the difference in percentage points, and the second one is empty."""
    if one.shares is None:
        return ratio_cell(one), interval_cell(one)
    before, after = one.shares
    return TableCell(after - before, "points", note=f"{percent(before)} → {percent(after)}"), ABSENT


def _across(comparisons: Sequence[Sequence[Finding]]) -> Table:
    """Returns a row for each comparison. `comparisons`: the findings of each comparison."""
    there = {one.metric for own in comparisons for one in own}
    metrics = [metric for metric in _ACROSS if metric in there][:_MOST_ACROSS]
    rows = []
    for own in comparisons:
        known = {one.metric: _with_interval(one) for one in own}
        rows.append((wording.terms.comparison(own[0]), *(known.get(metric, EMPTY) for metric in metrics)))
    return Table(("comparison", *map(metric_words, metrics)), tuple(rows))


def _with_interval(one: Finding) -> TableCell:
    if not has_interval(one):
        return TableCell(one.ratio, "ratio", note=NO_INTERVAL)
    return TableCell(one.ratio, "ratio", one.low, one.high, one.confidence)


def claimed_table(findings: Sequence[Finding]) -> Table:
    """Returns a row for each finding that was computed only to judge a claim in the lab file."""
    head = ("comparison", "metric", "ratio", "CI", "verdict", "blocks")
    rows = []
    for finding in findings:
        figures = (ratio_cell(finding), interval_cell(finding), verdict(finding), _blocks(finding))
        rows.append((wording.terms.comparison(finding), metric_words(finding.metric), *figures))
    return Table(head, tuple(rows))


def _blocks(finding: Finding) -> TableCell:
    return count(finding.blocks, f"{len(finding.dropped)} dropped" if finding.dropped else "")


_AGAINST_TREND = "Queries against the overall trend"
_NAMED = 3
"""Maximum number of queries named in a sentence. The table contains all queries."""


def against_trend_tables(queries: Sequence[ContraryQuery]) -> tuple[tuple[str, Table], ...]:
    rows = tuple(
        (
            f"{one.ratio.query}, {one.subject} vs. {one.baseline}",
            TableCell(one.ratio.ratio, "times"),
            TableCell(one.overall, "times"),
            wording.text(one.plan),
        )
        for one in queries
    )
    return ((_AGAINST_TREND, Table(("query", "ratio", "all queries", "query plan"), rows)),) if rows else ()


def against_trend_sentences(queries: Sequence[ContraryQuery]) -> list[str]:
    """Returns a sentence for each system in which some queries changed against the overall trend."""
    texts = []
    for subject in dict.fromkeys(one.subject for one in queries):
        own = [one for one in queries if one.subject == subject]
        verb = "slower" if own[0].slower else "faster"
        named = "; ".join(
            f"{one.ratio.query} ({duration(one.ratio.ratio)}; {wording.text(one.plan)})" for one in own[:_NAMED]
        )
        rest = len(own) - _NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        texts.append(
            f"Against the overall trend, {subject} is {verb} than {own[0].baseline} in these queries: {named}{more}."
        )
    return texts
