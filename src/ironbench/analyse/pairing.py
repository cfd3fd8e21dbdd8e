"""Two cells of one lab compared, as its findings have it: only what the lab declared carries a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ironbench.analyse.contrast import contrasts
from ironbench.analyse.findings import findings
from ironbench.analyse.study import Effect
from ironbench.model.finding import Conclusion
from ironbench.model.lab import Lab
from ironbench.model.record import Record


def paired(lab: Lab, records: Sequence[Record], a: str, b: str, look: int) -> tuple[Effect, ...]:
    """Findings of cell `b` over cell `a`, the lab's metric first: `a` is the reference, also where the lab declared it
    the other way round.

    A pair that the lab did not declare was chosen after the numbers were seen: its findings carry no verdict.
    """
    pair, other = (b, a), (a, b)
    # Turned round a comparison keeps its p value and its interval, inverted: the family's order stays as it was.
    turned = tuple(pair if one == other else one for one in lab.comparisons)
    if pair not in turned:
        undeclared = replace(lab, comparisons=(pair,), claims=())
        found = [
            replace(finding, decides=False, conclusion=Conclusion.CANNOT_TELL, p=None, advice="")
            for finding in findings(records, undeclared, look)
        ]
    else:
        lab = replace(lab, comparisons=turned)
        found = [one for one in findings(records, lab, look) if (one.cell, one.baseline) == pair]
    names = contrasts({setup.cell.name: setup.cell.levels for setup in lab.setups}, [pair])
    ranked = sorted(found, key=lambda finding: finding.metric != lab.method.metric)
    return tuple(Effect(finding, names[pair]) for finding in ranked)
