"""Two cells of one lab compared, as its findings have it: only what the lab declared carries a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ironbench.analyse.contrast import contrasts
from ironbench.analyse.findings import findings
from ironbench.analyse.labstudy import Effect
from ironbench.model.finding import Conclusion
from ironbench.model.lab import Lab
from ironbench.model.record import Record


def paired(lab: Lab, records: Sequence[Record], a: str, b: str, look: int) -> tuple[Effect, ...]:
    """Findings of cell `b` over cell `a`, the lab's metric first; over each other where the lab declared it so.

    A pair that the lab did not declare was chosen after the numbers were seen: its findings carry no verdict.
    """
    pair = next((one for one in ((b, a), (a, b)) if one in lab.comparisons), None)
    if pair is None:
        pair = (b, a)
        undeclared = replace(lab, comparisons=(pair,), claims=())
        found = [
            replace(finding, decides=False, conclusion=Conclusion.CANNOT_TELL, p=None, advice="")
            for finding in findings(records, undeclared, look)
        ]
    else:
        found = [one for one in findings(records, lab, look) if (one.cell, one.baseline) == pair]
    names = contrasts({setup.cell.name: setup.cell.levels for setup in lab.setups}, [pair])
    ranked = sorted(found, key=lambda finding: finding.metric != lab.method.metric)
    return tuple(Effect(finding, names[pair]) for finding in ranked)
