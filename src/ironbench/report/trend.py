"""Queries that go against the trend, as a table and in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.trend import Against
from ironbench.report.charts.base import Table
from ironbench.report.numbers import number
from ironbench.words import THIN

TITLE = "Against the trend"
_NAMED = 3
"""In a sentence; the table has all."""


def tables(found: Sequence[Against]) -> tuple[tuple[str, Table], ...]:
    rows = tuple(
        (
            f"{one.ratio.query}, {one.subject} over {one.baseline}",
            f"{number(one.ratio.ratio)}{THIN}×",
            f"{number(one.overall)}{THIN}×",
            one.plan,
        )
        for one in found
    )
    return ((TITLE, Table(("query", "ratio", "all queries", "what its plan says"), rows)),) if rows else ()


def sentences(found: Sequence[Against]) -> list[str]:
    """One for each subject that has such queries."""
    said = []
    for subject in dict.fromkeys(one.subject for one in found):
        own = [one for one in found if one.subject == subject]
        verb = "slower" if own[0].slower else "faster"
        named = "; ".join(f"{one.ratio.query} {number(one.ratio.ratio)}{THIN}× ({one.plan})" for one in own[:_NAMED])
        rest = len(own) - _NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        said.append(f"Against the trend, {subject} is {verb} than {own[0].baseline} in {named}{more}.")
    return said
