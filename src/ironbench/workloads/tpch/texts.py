"""Texts of the 22 queries, and their execution plans. The texts were written for ironbench from the functional
definitions. Where possible, all engines use the same text. Plans are recorded after the measured window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ironbench import engines
from ironbench.model.session import Row
from ironbench.workloads import sql_files
from ironbench.workloads.tpch.parameters import Values

_FOLDER = Path(__file__).with_name("queries")


def text(query: int, engine: str, values: Values) -> str:
    """Returns the query with its parameters inserted. Raises KeyError for a parameter without a value."""
    return template(query, engine).format_map(values)


@cache
def template(query: int, engine: str) -> str:
    """Returns the text of `qNN.ENGINE.sql` if the engine needs a different text, otherwise of `qNN.sql`, without
    comment lines."""
    lines = sql_files.text(_FOLDER, name(query), engine).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("--")).rstrip()


def about(query: int) -> str:
    """Returns the business question that the query answers."""
    return (_FOLDER / f"{name(query)}.sql").read_text().splitlines()[0].removeprefix("-- ")


def name(query: int) -> str:
    """Returns the name of a query in metrics and files: `q01` … `q22`."""
    return f"q{query:02d}"


DEPTHS = ("no", "shape", "measured")


@dataclass(frozen=True, slots=True)
class QueryPlanText:
    query: int
    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Number of bytes written to temporary files."""

    def metrics(self) -> dict[str, float]:
        part = f"{{query={name(self.query)}}}"
        figures = {}
        if self.planning_s is not None:
            figures[f"planning_time_s{part}"] = self.planning_s
        if self.spill_bytes:
            figures[f"spill_bytes{part}"] = self.spill_bytes
        return figures


def explained(engine: str, query: int, rows: Sequence[Row]) -> QueryPlanText:
    """Returns the query plan. `rows`: the engine's output of EXPLAIN."""
    plan = engines.get(engine).traits.dialect.explained(rows)
    return QueryPlanText(query, plan.text, plan.planning_s, plan.spill_bytes)


def plans_file(plans: Sequence[QueryPlanText]) -> str:
    """Formats all plans as one text."""
    return "\n".join(f"-- {name(one.query)}: {about(one.query)}\n{one.text}\n" for one in plans)
