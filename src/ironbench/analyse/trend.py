"""Queries against the trend: slower where others gain, faster where others lose; with what their plans say.

Plans are kept with a record as the engine wrote them, and read by its dialect. Each is a bag of steps, so that two can
be compared: a step is what is done, and to which table where one is named.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ironbench import engines
from ironbench.analyse.queries import Queries, QueryRatio
from ironbench.engines.dialect import Dialect
from ironbench.model.record import Record

PLANS = "plans.txt"
Steps = Counter[str]

_HEAD = re.compile(r"^-- (q\d\d): .*$", re.MULTILINE)
_QUIET = frozenset(
    {"Projection", "Result", "Limit", "Materialize", "Memoize", "Gather", "Gather Merge", "Subquery Scan"}
)
"""Steps that say little about why a plan is slow. Gather goes with what is parallel below it."""
_NAMED = 3
"""Steps of each side that a difference is told by."""
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
            Against(subject.name, baseline, overall, one, difference(own.get(one.query), other.get(one.query)))
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
) -> tuple[Mapping[str, Steps], Mapping[str, Steps]]:
    """Plans of both in the first block that has them: parameters differ from block to block."""
    beside = {record.block: record for record in baseline}
    for record in records:
        if record.block in beside:
            own, other = (plans(files.text(one.id, PLANS), one.system.engine) for one in (record, beside[record.block]))
            if own and other:
                return own, other
    return {}, {}


def plans(text: str, engine: str) -> dict[str, Steps]:
    """Of a record of that engine: query (`q01` …) → its steps; without those whose plan cannot be read."""
    known = engines.find(engine)
    dialect = known.traits.dialect if known else Dialect()
    parts = _HEAD.split(text)
    found = {}
    for query, body in zip(parts[1::2], parts[2::2], strict=True):
        steps = Counter(
            step for step in dialect.steps(body) if step.partition(" on ")[0].removeprefix("parallel ") not in _QUIET
        )
        if steps:
            found[query] = steps
    return found


def difference(plan: Steps | None, baseline: Steps | None) -> str:
    """In words what `plan` does and `baseline` does not, and the other way round."""
    if not plan or not baseline:
        return "its plans are not known"
    more, less = plan - baseline, baseline - plan
    if not more and not less:
        return "the plan has the same steps"
    if not more:
        return f"the plan leaves out {_told(less)}"
    return f"the plan has {_told(more)}" + (f" instead of {_told(less)}" if less else " in addition")


def _told(steps: Steps) -> str:
    """Those that touch tables first: they are what a plan is made for."""
    ranked = sorted(steps, key=lambda step: (" on " not in step, step))
    said = [f"{steps[step]} × {step}" if steps[step] > 1 else step for step in ranked[:_NAMED]]
    rest = len(ranked) - len(said)
    return ", ".join(said) + (f" and {rest} more steps" if rest > 1 else " and 1 more step" if rest else "")
