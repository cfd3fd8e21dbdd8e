"""A ratio that drifts between blocks gets only verdicts that hold at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from factories import codes
from labfactory import lab, studied, trials

from ironbench.model.finding import Conclusion
from ironbench.model.lab import Claim
from ironbench.report import document, formats, wording
from ironbench.report.answer import answer
from ironbench.report.sections import sections
from ironbench.study.study import Study

LOG = {"log": ("disk", "memory")}


def drifting(first: float, last: float, metric: str = "throughput", claims: Sequence[Claim] = ()) -> Study:
    """Returns ten blocks in which the ratio of two configurations drifts from `first` to `last`."""
    plan = lab(LOG, claims=claims)
    steps = [first * (last / first) ** (block / 9) for block in range(10)]
    records = [
        replace(one, metrics={**one.metrics, metric: one.metrics[metric] * steps[one.block]})
        if one.cell.name == "log=memory"
        else one
        for one in trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0), 0.02)
    ]
    return studied(plan, records)


def test_a_verdict_that_a_drifting_ratio_bears_at_one_end_only_is_none() -> None:
    claim = Claim("at least 1.05", "ratio", "throughput", ("log=memory", "log=disk"), 1.05, None)
    study = drifting(3.37, 1.0, claims=[claim])
    (finding,) = study.findings
    assert finding.low > 1.05, "the mean alone would be called faster"
    assert finding.conclusion is Conclusion.CANNOT_TELL
    decision = answer(study).decision
    assert (
        "INCONCLUSIVE: WAL in memory vs. WAL on disk: the ratio drifted from 3." in decision.text
        and "between the first and the last block" in decision.text
    )
    assert "; on average throughput " in decision.text
    assert "To decide: find out what changed from block to block" in decision.caveat
    assert study.claims[0].verdict == "undecided"
    (card,) = document.cards(study)
    assert card.name == "inconclusive"
    assert dict(card.facts)["drift"].startswith("the ratio drifted from 3.")


@pytest.mark.parametrize("format", ["text", "md", "html", "json"])
def test_a_verdict_on_a_drifting_ratio_carries_the_drift_in_its_own_sentence(format: str) -> None:
    study = drifting(3.4, 2.0)
    (finding,) = study.findings
    assert finding.conclusion is Conclusion.FASTER
    decision = answer(study).decision.text
    assert decision.startswith("WAL in memory is ")
    assert "though the ratio drifted from 3." in decision
    assert not any("of both configurations" in text for text in wording.texts(study.warnings)), "one of them drifted"
    shown = " ".join(formats.get(format)([study]).decode().replace("\\", "").split())
    assert " ".join(decision.split()) in shown
    rows = [row for section in sections(study) for chart in section.charts for row in chart.table.texts]
    assert any(cell.startswith("faster; the ratio drifted from 3.") for row in rows for cell in row)


def test_a_range_that_a_drifting_ratio_leaves_is_not_confirmed() -> None:
    claims = [Claim("?", "ratio", "throughput", ("log=memory", "log=disk"), 2.2, 3.1)]
    claims.append(Claim("?", "ratio", "throughput", ("log=disk", "log=memory"), 0.2, 0.6))
    study = drifting(3.4, 2.0, claims=claims)
    (finding,) = study.findings
    assert finding.low > 2.2 and finding.high < 3.1
    assert [one.verdict for one in study.claims] == ["undecided", "confirmed"]
    assert codes(*study.claims[0].reasons) == ["ratio-changed"]
