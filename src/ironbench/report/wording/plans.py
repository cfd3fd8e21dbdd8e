"""Words for how two query plans differ."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.registry import wording
from ironbench.words import counted

_NAMED = 3
"""Most steps of each side that a difference names."""


@wording("plans-unknown")
def plans_unknown() -> str:
    """its plans are not known"""
    return "its plans are not known"


@wording("plans-differ")
def plans_differ(more: Sequence[tuple[str, int]] = (), less: Sequence[tuple[str, int]] = ()) -> str:
    """the plan has Index Scan on orders, Nested Loop instead of parallel Seq Scan on orders and 2 more steps"""
    if more:
        return f"the plan has {_named(more)}" + (f" instead of {_named(less)}" if less else " in addition")
    return f"the plan leaves out {_named(less)}" if less else "the plan has the same steps"


def _named(steps: Sequence[tuple[str, int]]) -> str:
    words = ", ".join(f"{count} × {step}" if count > 1 else step for step, count in steps[:_NAMED])
    rest = len(steps) - _NAMED
    return f"{words} and {counted(rest, 'more step')}" if rest > 0 else words
