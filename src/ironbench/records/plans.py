"""Query plans of a record as multisets of steps (operation and table), parsed by the engine's dialect."""

from __future__ import annotations

import re
from collections import Counter

from ironbench import engines
from ironbench.engines.dialect import Dialect

PLANS = "plans.txt"
Steps = Counter[str]

_HEAD = re.compile(r"^-- (q\d\d): .*$", re.MULTILINE)
_QUIET = frozenset(
    {"Projection", "Result", "Limit", "Materialize", "Memoize", "Gather", "Gather Merge", "Subquery Scan"}
)
"""Steps that do not explain why a plan is slow. Gather, for example, only collects the results of parallel steps."""


def plans(text: str, engine: str) -> dict[str, Steps]:
    """Returns, for each query (`q01` …), the steps of its plan in a record. Leaves out plans that cannot be parsed."""
    known = engines.find(engine)
    dialect = known.traits.dialect if known else Dialect()
    parts = _HEAD.split(text)
    by_query = {}
    for query, body in zip(parts[1::2], parts[2::2], strict=True):
        steps = Counter(
            step for step in dialect.steps(body) if step.partition(" on ")[0].removeprefix("parallel ") not in _QUIET
        )
        if steps:
            by_query[query] = steps
    return by_query
