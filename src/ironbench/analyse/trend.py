"""Queries against the trend: slower where others gain, faster where others lose; with what their plans say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ironbench.analyse import plans
from ironbench.analyse.queries import Queries, QueryRatio
from ironbench.model.record import Record

_TREND = 0.05
"""All queries together differ by as much at least, or there is no trend."""


class Files(Protocol):
    """Evidence beside records."""

    def text(self, id: str, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Against:
    """One query of one subject."""

    subject: str
    baseline: str
    overall: float
    """Geometric mean of the ratios of all queries."""
    ratio: QueryRatio
    plan: str
    """How its plan differs from the baseline's, in words."""

    @property
    def slower(self) -> bool:
        return self.ratio.ratio > 1


def against(found: Queries | None, groups: Sequence[tuple[str, Sequence[Record]]], files: Files) -> tuple[Against, ...]:
    """`groups`: subjects with their comparable trials. The farthest from 1 first, subject by subject."""
    if found is None:
        return ()
    records = dict(groups)
    baseline = found.subjects[0].name
    named = []
    for subject in found.compared:
        overall = subject.overall or 1.0
        contrary = [one for one in subject.ratios if _is_contrary(one, overall)]
        if not contrary:
            continue
        own, other = _of_one_block(records[subject.name], records[baseline], files)
        named += [
            Against(subject.name, baseline, overall, one, plans.difference(own.get(one.query), other.get(one.query)))
            for one in sorted(contrary, key=lambda one: -abs(math.log(one.ratio)))
        ]
    return tuple(named)


def _is_contrary(one: QueryRatio, overall: float) -> bool:
    """Surely on the other side of 1 than all together; of a query that was not repeated nothing is sure."""
    if abs(math.log(overall)) < math.log1p(_TREND) or not one.known:
        return False
    return one.low > 1 if overall < 1 else one.high < 1


def _of_one_block(
    records: Sequence[Record], baseline: Sequence[Record], files: Files
) -> tuple[Mapping[str, plans.Steps], Mapping[str, plans.Steps]]:
    """Plans of both in the first block that has them: parameters differ from block to block."""
    beside = {record.block: record for record in baseline}
    for record in records:
        if record.block in beside:
            own, other = (
                plans.plans(files.text(one.id, plans.FILE), one.system.engine) for one in (record, beside[record.block])
            )
            if own and other:
                return own, other
    return {}, {}
