"""Findings with the names of their comparisons in a lab, and with what limits them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Lab
from ironbench.model.record import (
    CAN_LOSE_DATA,
    EMULATION_LIMIT,
    Record,
)
from ironbench.study.factors import Contrast, contrasts
from ironbench.study.findings import findings
from ironbench.study.study import Effect
from ironbench.study.subjects import (
    needs_mark,
)


def effects_of(lab: Lab, findings: Sequence[Finding], records: Sequence[Record]) -> list[Effect]:
    """Returns the effects of findings. Findings with verdicts come before findings without. Both groups are in the
    order of the lab's comparisons."""
    order = {pair: place for place, pair in enumerate(lab.comparisons)}
    pairs = list(dict.fromkeys([*lab.comparisons, *((finding.cell, finding.baseline) for finding in findings)]))
    names = contrasts(lab, pairs)
    ranked = sorted(
        findings, key=lambda finding: (not finding.decides, order.get((finding.cell, finding.baseline), len(order)))
    )
    return [_effect(finding, names[finding.cell, finding.baseline], records) for finding in ranked]


def _effect(finding: Finding, contrast: Contrast, records: Sequence[Record]) -> Effect:
    """Returns the effect of a finding. If storage was emulated, the name of the side is marked. Settings with which
    only one side can lose data are noted."""
    sides = [[one for one in records if one.cell.name == name] for name in (finding.cell, finding.baseline)]
    cell, baseline = (
        replace(side, emulated=needs_mark(side.name, own))
        for side, own in zip((contrast.cell, contrast.baseline), sides, strict=True)
    )
    lost = [
        dict.fromkeys(one for record in own for one in record.warnings if one.code == CAN_LOSE_DATA) for own in sides
    ]
    only = [one for mine, others in (lost, lost[::-1]) for one in mine if one not in others]
    whole = replace(contrast, cell=cell, baseline=baseline)
    limited = [
        (side, sum(any(one.code == EMULATION_LIMIT for one in record.warnings) for record in used), len(used))
        for side, own, faster in zip((cell, baseline), sides, (Conclusion.FASTER, Conclusion.SLOWER), strict=True)
        if (used := [record for record in own if record.status.comparable])
        # No note is needed if emulation slows down the faster side, because the real difference is then even larger.
        and finding.conclusion not in (faster, Conclusion.EQUIVALENT)
    ]
    return Effect(finding, whole, tuple(only), tuple(one for one in limited if one[1]))


def compare_cells(lab: Lab, records: Sequence[Record], a: str, b: str, look: int) -> tuple[Effect, ...]:
    """Returns the findings that compare configuration `b` with baseline `a`. The lab may declare the pair in the
    opposite direction. The lab's metric is first. If no comparison or claim of the lab declares the pair, the user
    chose it after seeing the data, so its findings have no verdict.
    """
    pair, other = (b, a), (a, b)
    # If a comparison is inverted, its interval is inverted and its p value stays the same. Holm's correction is
    # therefore unchanged.
    turned = tuple(pair if one == other else one for one in lab.comparisons)
    claims = tuple(
        replace(claim, cells=pair if {one, two} == {a, b} else (one, two))
        for claim in lab.claims
        for one, two in itertools.pairwise(claim.cells)
    )
    family = replace(lab, comparisons=turned, claims=claims)
    results = [one for one in findings(records, family, look) if (one.cell, one.baseline) == pair]
    if pair not in turned:
        claimed = {one.metric for one in results}
        undeclared = replace(lab, comparisons=(pair,), claims=())
        results += [
            replace(one, decides=False, conclusion=Conclusion.CANNOT_TELL, p=None, advice=None)
            for one in findings(records, undeclared, look)
            if one.metric not in claimed
        ]
    names = contrasts(lab, [pair])
    ranked = sorted(results, key=lambda finding: finding.metric != lab.method.metric)
    return tuple(_effect(finding, names[pair], records) for finding in ranked)
