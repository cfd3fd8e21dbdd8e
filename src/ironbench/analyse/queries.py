"""Queries one by one: how long each took in every system, beside a baseline, and with more processes at work on it.

Ratios are averaged geometrically, so that it does not matter which side is the baseline (Fleming and Wallace,
Communications of the ACM 29(3), 1986).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.catalogue import part_of
from ironbench.model.record import Record
from ironbench.stats.ratio import paired, unpaired

_METRIC = "query_time_s"
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class QueryRatio:
    """The time of one query over the baseline's: of a lab paired by block, of runs the geometric means."""

    query: str
    ratio: float
    """Of geometric means; below 1 the query is faster."""
    low: float
    high: float
    """95 % interval; 0 and infinity without repeats."""
    blocks: int
    """Of a lab; of runs the trials of the side that has fewer."""

    @property
    def known(self) -> bool:
        """Whether it was repeated, so that there is an interval."""
        return self.blocks > 1 and self.low > 0 and self.high < math.inf


@dataclass(frozen=True, slots=True)
class Subject:
    """One cell or system."""

    name: str
    times_s: Mapping[str, float]
    """Query → geometric mean over its trials."""
    ratios: tuple[QueryRatio, ...]
    """To the baseline; empty for the baseline itself."""
    parallelism: int | None = None
    """Processes or threads at work on one statement, where that was declared."""
    reference_score: float | None = None
    """Of its processors in a benchmark of others, higher is faster."""
    expected: float | None = None
    """The ratio to the baseline that the two reference scores let expect; None where either is not known."""

    @property
    def overall(self) -> float | None:
        """Geometric mean of the ratios of all queries."""
        return (
            math.exp(math.fsum(math.log(one.ratio) for one in self.ratios) / len(self.ratios)) if self.ratios else None
        )


@dataclass(frozen=True, slots=True)
class Queries:
    """All subjects, the baseline first."""

    subjects: tuple[Subject, ...]
    names: tuple[str, ...]
    """Of the queries that any subject answered, sorted."""
    in_blocks: bool = True
    """Whether the subjects are cells of one lab, whose trials pair by block."""

    @property
    def compared(self) -> tuple[Subject, ...]:
        return tuple(subject for subject in self.subjects if subject.ratios)

    @property
    def by_parallelism(self) -> tuple[Subject, ...]:
        """The subjects by degree of parallelism, where they differ in it and each degree stands once; else none."""
        known = sorted(
            (subject for subject in self.subjects if subject.parallelism), key=lambda one: one.parallelism or 0
        )
        degrees = {subject.parallelism for subject in known}
        return tuple(known) if len(degrees) == len(known) > 1 and len(known) == len(self.subjects) else ()


def queries(groups: Sequence[tuple[str, Sequence[Record]]], *, in_blocks: bool = True) -> Queries | None:
    """`groups`: name and comparable trials of each subject, the baseline first; None where nobody timed queries.

    `in_blocks`: the subjects are cells of one lab. Blocks of separate runs have numbers in common and nothing else, so
    their trials do not pair.
    """
    found = [(name, records) for name, records in groups if any(_times(record) for record in records)]
    if not found:
        return None
    baseline = found[0][1]
    score = baseline[0].system.reference_score
    ratios = _paired if in_blocks else _unpaired
    subjects = tuple(
        Subject(
            name,
            _typical(records),
            ratios(records, baseline) if place else (),
            records[0].system.parallelism,
            records[0].system.reference_score,
            _expected(records[0].system.reference_score, score) if place else None,
        )
        for place, (name, records) in enumerate(found)
    )
    return Queries(subjects, tuple(sorted({query for subject in subjects for query in subject.times_s})), in_blocks)


def _expected(score: float | None, baseline: float | None) -> float | None:
    """Of times, so that a processor of twice the score lets expect a half."""
    return baseline / score if score and baseline else None


def _times(record: Record) -> dict[str, float]:
    return {
        part_of(name).partition("=")[2]: value
        for name, value in record.metrics.items()
        if name.startswith(f"{_METRIC}{{query=") and value > 0
    }


def _typical(records: Sequence[Record]) -> dict[str, float]:
    return {query: statistics.geometric_mean(values) for query, values in sorted(_values(records).items())}


def _paired(records: Sequence[Record], baseline: Sequence[Record]) -> tuple[QueryRatio, ...]:
    beside = {record.block: _times(record) for record in baseline}
    pairs: dict[str, list[float]] = {}
    for record in records:
        for query, time_s in _times(record).items():
            if query in beside.get(record.block, {}):
                pairs.setdefault(query, []).append(time_s / beside[record.block][query])
    found = []
    for query, values in sorted(pairs.items()):
        one = paired(values)
        low, high = one.interval(_LEVEL)
        found.append(QueryRatio(query, one.ratio, low, high, one.blocks))
    return tuple(found)


def _unpaired(records: Sequence[Record], baseline: Sequence[Record]) -> tuple[QueryRatio, ...]:
    sides = [_values(baseline), _values(records)]
    found = []
    for query in sorted(sides[0].keys() & sides[1].keys()):
        a, b = sides[0][query], sides[1][query]
        found.append(QueryRatio(query, *unpaired(a, b, _LEVEL), min(len(a), len(b))))
    return tuple(found)


def _values(records: Sequence[Record]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        for query, time_s in _times(record).items():
            found.setdefault(query, []).append(time_s)
    return found
