"""How engines meant to run queries, as a bag of steps each, so that two plans can be held against each other.

Plans are kept beside a record as the engine wrote them, and read by its dialect. A step is what is done, and to which
table where one is named.
"""

from __future__ import annotations

import re
from collections import Counter

from ironbench import engines
from ironbench.engines.dialect import Dialect

FILE = "plans.txt"
Steps = Counter[str]

_HEAD = re.compile(r"^-- (q\d\d): .*$", re.MULTILINE)
_QUIET = frozenset(
    {"Projection", "Result", "Limit", "Materialize", "Memoize", "Gather", "Gather Merge", "Subquery Scan"}
)
"""Steps that say little about why a plan is slow. Gather goes with what is parallel below it."""
_NAMED = 3
"""Steps of each side that a difference is told by."""


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
