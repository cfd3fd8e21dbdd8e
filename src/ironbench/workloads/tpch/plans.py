"""How an engine means to run the queries, and how it did: asked in a pass of its own, after the measured window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ironbench import engines
from ironbench.model.session import Line
from ironbench.workloads.tpch import texts

DEPTHS = ("no", "shape", "measured")


@dataclass(frozen=True, slots=True)
class Explained:
    query: int
    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Written to temporary files."""

    def metrics(self) -> dict[str, float]:
        part = f"{{query={texts.name(self.query)}}}"
        figures = {}
        if self.planning_s is not None:
            figures[f"planning_time_s{part}"] = self.planning_s
        if self.spill_bytes:
            figures[f"spill_bytes{part}"] = self.spill_bytes
        return figures


def explained(line: Line, engine: str, query: int, sql: str, depth: str) -> Explained:
    """`measured` runs the query. FailureError."""
    dialect = engines.get(engine).traits.dialect
    plan = dialect.explained(line.query(dialect.explain(measured=depth == "measured") + sql))
    return Explained(query, plan.text, plan.planning_s, plan.spill_bytes)


def file(plans: Sequence[Explained]) -> str:
    """All plans as one text."""
    return "\n".join(f"-- {texts.name(one.query)}: {texts.about(one.query)}\n{one.text}\n" for one in plans)
