"""Queries one by one: their times in every system, compared with a baseline and with more parallelism.

Ratios are averaged geometrically, so that it does not matter which side is the baseline (Fleming and Wallace,
Communications of the ACM 29(3), 1986).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ironbench.catalogue import part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.records.plans import PLANS, Steps, plans
from ironbench.stats.ratio import Paired, paired, unpaired

_METRIC = "query_time_s"
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class QueryRatio:
    """The time of one query or statement over the baseline's: of a lab paired by block, of runs the geometric means."""

    query: str
    ratio: float
    """Of geometric means; below 1 the query is faster."""
    low: float
    high: float
    """95 % interval; 0 and infinity without repeats enough."""
    blocks: int
    """Of a lab; of runs the trials of the side that has fewer."""

    @property
    def known(self) -> bool:
        """Whether it was repeated often enough for an interval."""
        return self.blocks > 1 and self.low > 0 and self.high < math.inf


@dataclass(frozen=True, slots=True)
class QuerySubject:
    """One cell or system."""

    name: str
    times_s: Mapping[str, float]
    """Query → geometric mean over its trials."""
    ratios: tuple[QueryRatio, ...]
    """To the baseline; empty for the baseline itself."""
    parallelism: int | None = None
    """Processes or threads at work on one statement, where that was declared."""
    reference_score: float | None = None
    """CPU benchmark score (e.g. SPEC), higher is faster."""
    expected: float | None = None
    """The ratio to the baseline that the two reference scores predict; None where either is not known."""

    @property
    def overall(self) -> float | None:
        """Geometric mean of the ratios of all queries."""
        return (
            math.exp(math.fsum(math.log(one.ratio) for one in self.ratios) / len(self.ratios)) if self.ratios else None
        )


@dataclass(frozen=True, slots=True)
class Queries:
    """All subjects, the baseline first."""

    subjects: tuple[QuerySubject, ...]
    names: tuple[str, ...]
    """Of the queries that any subject answered, sorted."""
    in_blocks: bool = True
    """Whether the subjects are cells of one lab, whose trials pair by block."""

    @property
    def compared(self) -> tuple[QuerySubject, ...]:
        return tuple(subject for subject in self.subjects if subject.ratios)

    @property
    def by_parallelism(self) -> tuple[QuerySubject, ...]:
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
    measured = [(name, records) for name, records in groups if any(_times(record) for record in records)]
    if not measured:
        return None
    baseline = measured[0][1]
    score = baseline[0].system.reference_score
    ratios = paired_ratios if in_blocks else unpaired_ratios
    subjects = tuple(
        QuerySubject(
            name,
            _typical(records),
            ratios(_by_trial(records), _by_trial(baseline)) if place else (),
            records[0].system.parallelism,
            records[0].system.reference_score,
            _expected(records[0].system.reference_score, score) if place else None,
        )
        for place, (name, records) in enumerate(measured)
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


def _by_trial(records: Sequence[Record]) -> list[Timed]:
    return [(record.block, _times(record)) for record in records]


def _typical(records: Sequence[Record]) -> dict[str, float]:
    values = _values(_by_trial(records))
    return {query: statistics.geometric_mean(times) for query, times in sorted(values.items())}


Timed = tuple[int, Mapping[str, float]]
"""Block of a trial, and the times of its queries or statements, each above 0."""


def paired_ratios(trials: Sequence[Timed], baseline: Sequence[Timed]) -> tuple[QueryRatio, ...]:
    """Of cells of one lab, whose trials pair by block."""
    references = dict(baseline)
    pairs: dict[str, list[float]] = {}
    for block, times in trials:
        for query, time_s in times.items():
            if query in references.get(block, {}):
                pairs.setdefault(query, []).append(time_s / references[block][query])
    ratios = []
    for query, values in sorted(pairs.items()):
        one = paired(values)
        low, high = shown_interval(one)
        ratios.append(QueryRatio(query, one.ratio, low, high, one.blocks))
    return tuple(ratios)


def shown_interval(one: Paired) -> tuple[float, float]:
    """The 95 % interval that a page gives, as of a ratio with a verdict: (0, inf) of too few blocks for one."""
    return one.interval(_LEVEL) if one.blocks >= LEAST_BLOCKS_SHOWN else (0.0, math.inf)


def unpaired_ratios(trials: Sequence[Timed], baseline: Sequence[Timed]) -> tuple[QueryRatio, ...]:
    """Of separate runs."""
    sides = [_values(baseline), _values(trials)]
    ratios = []
    for query in sorted(sides[0].keys() & sides[1].keys()):
        a, b = sides[0][query], sides[1][query]
        ratios.append(QueryRatio(query, *unpaired(a, b, _LEVEL), min(len(a), len(b))))
    return tuple(ratios)


def _values(trials: Sequence[Timed]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for _, times in trials:
        for query, time_s in times.items():
            values.setdefault(query, []).append(time_s)
    return values


# Queries against the trend: slower where others gain, faster where others lose; with the differences of their plans.


_TREND = 0.05
"""All queries together differ by as much at least, or there is no trend."""


class Files(Protocol):
    """Reads files of a record's evidence."""

    def text(self, id: str, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Against:
    """One query of one subject."""

    subject: str
    baseline: str
    overall: float
    """Geometric mean of the ratios of all queries."""
    ratio: QueryRatio
    plan: Note
    """How its plan differs from the baseline's."""

    @property
    def slower(self) -> bool:
        return self.ratio.ratio > 1


def against(
    compared: Queries | None, groups: Sequence[tuple[str, Sequence[Record]]], files: Files
) -> tuple[Against, ...]:
    """`groups`: subjects with their comparable trials. The farthest from 1 first, subject by subject."""
    if compared is None:
        return ()
    records = dict(groups)
    baseline = compared.subjects[0].name
    named = []
    for subject in compared.compared:
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
    references = {record.block: record for record in baseline}
    for record in records:
        if record.block in references:
            own, other = (
                plans(files.text(one.id, PLANS), one.system.engine) for one in (record, references[record.block])
            )
            if own and other:
                return own, other
    return {}, {}


def difference(plan: Steps | None, baseline: Steps | None) -> Note:
    """The steps that only one of the two has."""
    if not plan or not baseline:
        return note("plans-unknown")
    return note("plans-differ", more=_ranked(plan - baseline), less=_ranked(baseline - plan))


def _ranked(steps: Steps) -> tuple[tuple[str, int], ...]:
    """Steps that touch tables first: they are what a plan is made for."""
    return tuple((step, steps[step]) for step in sorted(steps, key=lambda step: (" on " not in step, step)))
