"""`run --require`: judges requirements, using the repeats of each configuration, and derives the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ironbench.cli.verdict import REFUTED, SUSPECT, claims_words
from ironbench.report import text_layout, wording
from ironbench.report.as_json import plain_value
from ironbench.report.charts.base import Table
from ironbench.study.claims import ClaimVerdict, requirement
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.model.lab import Claim
    from ironbench.model.record import Record
    from ironbench.study.claims import JudgedClaim

Judgements = Sequence[tuple[str, "JudgedClaim"]]
"""Results of `judged`. Each item is the name of a configuration, and a requirement with its verdict for this
configuration."""


def judged(claims: Sequence[Claim], records: Sequence[Record]) -> Judgements:
    """Judges each requirement for each configuration. Configurations are in the order in which they were measured."""
    cells = dict.fromkeys(record.cell.name for record in records)
    return [
        (name, requirement(claim, [record for record in records if record.cell.name == name]))
        for claim in claims
        for name in cells
    ]


def text(judgements: Judgements) -> str:
    """Formats the judgements as a table. A line above the table counts the outcomes."""
    refuted = sum(one.verdict is ClaimVerdict.REFUTED for _, one in judgements)
    confirmed = sum(one.verdict is ClaimVerdict.CONFIRMED for _, one in judgements)
    undecided = len(judgements) - refuted - confirmed
    head = f"Requirements: {counted(confirmed, 'confirmed', 'confirmed')}, {refuted} refuted, {undecided} undecided"
    rows = tuple(
        (one.claim.text, name, one.verdict.value, "; ".join(wording.texts(one.reasons))) for name, one in judgements
    )
    return f"{head}\n{text_layout.facts(Table((), (('requirement', 'configuration', 'outcome', 'reason'), *rows)))}"


def fields(judgements: Judgements) -> list[dict[str, Any]]:
    return [
        {
            "requirement": one.claim.text,
            "metric": one.claim.metric,
            "configuration": name,
            "outcome": one.verdict.value,
            "low": one.low,
            "high": one.high,
            "why": "; ".join(wording.texts(one.reasons)),
            "reasons": plain_value(one.reasons),
        }
        for name, one in judgements
    ]


def code(judgements: Judgements) -> int:
    """Returns the exit code: 4 if a requirement was refuted, 3 if one is undecided, otherwise 0."""
    ends = {one.verdict for _, one in judgements}
    if ClaimVerdict.REFUTED in ends:
        return REFUTED
    return SUSPECT if ClaimVerdict.UNDECIDED in ends else 0


def words(judgements: Judgements) -> str:
    """Returns the line for stderr that explains the exit code."""
    wanted = ClaimVerdict.REFUTED if code(judgements) == REFUTED else ClaimVerdict.UNDECIDED
    found = [(f"{one.claim.text!r} at {name}", one) for name, one in judgements if one.verdict is wanted]
    return claims_words(code(judgements), wanted.value, found)
