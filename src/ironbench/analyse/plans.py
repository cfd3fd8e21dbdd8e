"""How engines meant to run queries, as a bag of steps each, so that two plans can be held against each other.

Plans are kept beside a record as the engine wrote them: PostgreSQL's as JSON (`EXPLAIN (FORMAT JSON)`), DuckDB's as
boxes, SQLite's as lines (`EXPLAIN QUERY PLAN`). A step is what is done, and to which table where one is named.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

FILE = "plans.txt"
Steps = Counter[str]

_HEAD = re.compile(r"^-- (q\d\d): .*$", re.MULTILINE)
_BOX = re.compile(r"[╭┌]─+ ?([A-Z][A-Za-z ]+?) ?─")
_TABLE = re.compile(r"│ Table: ([\w.]+)")
_SQLITE = re.compile(r"^\d+ \d+ \d+ (.+)$", re.MULTILINE)
_QUIET = frozenset(
    {"Projection", "Result", "Limit", "Materialize", "Memoize", "Gather", "Gather Merge", "Subquery Scan"}
)
"""Steps that say little about why a plan is slow. Gather goes with what is parallel below it."""
_NAMED = 3
"""Steps of each side that a difference is told by."""


def plans(text: str) -> dict[str, Steps]:
    """Query (`q01` …) → its steps; without those whose plan cannot be read."""
    parts = _HEAD.split(text)
    found = {}
    for query, body in zip(parts[1::2], parts[2::2], strict=True):
        steps = Counter(
            step for step in _steps(body) if step.partition(" on ")[0].removeprefix("parallel ") not in _QUIET
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


def _steps(body: str) -> Iterator[str]:
    if body.lstrip().startswith("["):
        yield from _of_json(body)
    elif _BOX.search(body):
        yield from _of_boxes(body)
    else:
        for line in _SQLITE.findall(body):
            yield _of_line(line)


def _of_json(body: str) -> Iterator[str]:
    """PostgreSQL's; nothing of a text that was cut off."""
    try:
        waiting: list[Mapping[str, Any]] = [json.loads(body)[0]["Plan"]]
    except (ValueError, LookupError, TypeError):
        return
    while waiting:
        node = waiting.pop()
        name = str(node.get("Node Type", ""))
        join = node.get("Join Type", "Inner")
        words = name if join == "Inner" else f"{name} ({join})"
        parallel = "parallel " if node.get("Parallel Aware") else ""
        relation = f" on {node['Relation Name']}" if "Relation Name" in node else ""
        yield f"{parallel}{words}{relation}"
        waiting += node.get("Plans", [])


def _of_boxes(body: str) -> Iterator[str]:
    """DuckDB's: the table is named in the box below its head."""
    lines = body.splitlines()
    for number, line in enumerate(lines):
        for head in _BOX.finditer(line):
            table = ""
            for below in lines[number + 1 : number + 4]:
                if found := _TABLE.match(below, head.start()):
                    table = f" on {found[1].rpartition('.')[2]}"
                    break
            yield f"{head[1]}{table}"


def _of_line(line: str) -> str:
    """SQLite's: `SCAN lineitem`, `SEARCH orders USING INDEX orders_customer (o_custkey=?)`."""
    words = line.split()
    if words[0] in ("SCAN", "SEARCH") and len(words) > 1:
        index = re.search(r"USING (?:COVERING )?INDEX (\w+)", line)
        return f"{words[0].lower()}{f' by {index[1]}' if index else ''} on {words[1]}"
    return line.lower()
