"""Workloads whose result is not a throughput: each says itself what its headline, cards and first sections are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ironbench.analyse.compare import Comparison
from ironbench.analyse.study import Part, Study
from ironbench.report import finished, storage, tpch
from ironbench.report.charts.base import Table
from ironbench.report.section import Section


@dataclass(frozen=True, slots=True)
class Presentation:
    """What stands in place of throughput against clients."""

    headline: Callable[[Study], list[tuple[str, str]]]
    """Sentences: a system's name and what is said of it."""
    card: Callable[[Part], tuple[str, str, list[tuple[str, str]]]]
    """Of a system: a figure, its unit, and some facts."""
    peaks: Callable[[Study], Table]
    """A row per line of the result, for a ticket."""
    sections: Callable[[Study], Sequence[Section]]
    """Before all others."""
    hides: frozenset[str]
    """Ids of sections that say nothing of this workload."""


_FINISHED = Presentation(finished.headline, finished.card, finished.table, finished.sections, finished.HIDES)
_KNOWN = {
    **dict.fromkeys(finished.WORKLOADS, _FINISHED),
    tpch.WORKLOAD: Presentation(tpch.headline, tpch.card, tpch.table, tpch.sections, tpch.HIDES),
    storage.WORKLOAD: Presentation(
        storage.headline,
        storage.card,
        storage.table,
        storage.sections,
        frozenset({"curves", "law", "latency", "scripts", "over-time"}),
    ),
}


def presentation(study: Study) -> Presentation | None:
    """None for workloads that are shown as transactions of clients."""
    return presentation_of(study.parts[0]) if study.parts else None


def presentation_of(part: Part) -> Presentation | None:
    return _KNOWN.get(part.subject.records[0].choice.workload)


def compared(found: Comparison) -> list[tuple[str, Table]]:
    """What stands in place of the peaks of A and B; empty where there is nothing of the kind."""
    return storage.compared(found)
