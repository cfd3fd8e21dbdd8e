"""Compares the query times of all systems with the query times of a baseline. Also compares degrees of parallelism with
each other.

Ratios are averaged geometrically, so the choice of the baseline does not matter (Fleming and Wallace, Communications of
the ACM 29(3), 1986).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ironbench.catalogue import part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN, GroupRatio
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.records.plans import PLANS, Steps, plans
from ironbench.stats.intervals import LEVEL
from ironbench.stats.ratio import paired, unpaired

_METRIC = "query_time_s"


@dataclass(frozen=True, slots=True)
class QueryRatio(GroupRatio):
    """The time of one query or statement as a multiple of the baseline's time, with its 95% confidence interval."""

    query: str
    blocks: int
    """Number of paired blocks in a lab. For runs, the smaller of the two sides' numbers of trials."""


@dataclass(frozen=True, slots=True)
class QuerySubject:
    """Query times of one system or configuration."""

    name: str
    times_s: Mapping[str, float]
    """For each query, the geometric mean of its time over the trials."""
    ratios: tuple[QueryRatio, ...]
    """Ratios to the baseline's times. Empty for the baseline itself."""
    parallelism: int | None = None
    """Number of processes or threads per statement, if declared."""
    reference_score: float | None = None
    """CPU benchmark score (e.g. SPEC); higher is faster."""
    expected: float | None = None
    """Ratio to the baseline that the two reference scores predict, or None if one of the scores is unknown."""

    @property
    def overall(self) -> float | None:
        """Geometric mean of the ratios of all queries."""
        return (
            math.exp(math.fsum(math.log(one.ratio) for one in self.ratios) / len(self.ratios)) if self.ratios else None
        )


@dataclass(frozen=True, slots=True)
class Queries:
    """Query times of all subjects, with the baseline first."""

    subjects: tuple[QuerySubject, ...]
    names: tuple[str, ...]
    """Names of the queries that at least one system answered, sorted."""
    in_blocks: bool = True
    """Whether the systems are configurations of one lab, whose trials are paired by block."""

    @property
    def compared(self) -> tuple[QuerySubject, ...]:
        return tuple(subject for subject in self.subjects if subject.ratios)

    @property
    def by_parallelism(self) -> tuple[QuerySubject, ...]:
        """The systems, ordered by degree of parallelism. Empty unless every system has a different degree."""
        known = sorted(
            (subject for subject in self.subjects if subject.parallelism), key=lambda one: one.parallelism or 0
        )
        degrees = {subject.parallelism for subject in known}
        return tuple(known) if len(degrees) == len(known) > 1 and len(known) == len(self.subjects) else ()


def queries(groups: Sequence[tuple[str, Sequence[Record]]], *, in_blocks: bool = True) -> Queries | None:
    """Returns the query times of each system. Returns None if no query was timed.

    `groups`: name and comparable trials of each system, with the baseline first. `in_blocks`: whether the systems are
    configurations of one lab. Trials of separate runs are not paired, because equal block numbers of runs mean nothing.
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
    """Returns the predicted ratio of query times, assuming that a CPU with twice the score takes half the time."""
    return baseline / score if score and baseline else None


def _times(record: Record) -> dict[str, float]:
    return {
        part_of(name).partition("=")[2]: value
        for name, value in record.metrics.items()
        if name.startswith(f"{_METRIC}{{query=") and value > 0
    }


def _by_trial(records: Sequence[Record]) -> list[TrialTimes]:
    return [(record.block, _times(record)) for record in records]


def _typical(records: Sequence[Record]) -> dict[str, float]:
    values = _values(_by_trial(records))
    return {query: statistics.geometric_mean(times) for query, times in sorted(values.items())}


TrialTimes = tuple[int, Mapping[str, float]]
"""Block of a trial, and the trial's times by query or statement. The times are positive."""


def paired_ratios(trials: Sequence[TrialTimes], baseline: Sequence[TrialTimes]) -> tuple[QueryRatio, ...]:
    """Compares configurations of one lab, whose trials are paired by block."""
    references = dict(baseline)
    pairs: dict[str, list[float]] = {}
    for block, times in trials:
        for query, time_s in times.items():
            if query in references.get(block, {}):
                pairs.setdefault(query, []).append(time_s / references[block][query])
    ratios = []
    for query, values in sorted(pairs.items()):
        ratios.append(QueryRatio(*paired(values).with_interval(LEVEL, LEAST_BLOCKS_SHOWN), query, len(values)))
    return tuple(ratios)


def unpaired_ratios(trials: Sequence[TrialTimes], baseline: Sequence[TrialTimes]) -> tuple[QueryRatio, ...]:
    """Compares separate runs, whose trials are not paired."""
    sides = [_values(baseline), _values(trials)]
    ratios = []
    for query in sorted(sides[0].keys() & sides[1].keys()):
        a, b = sides[0][query], sides[1][query]
        ratios.append(QueryRatio(*unpaired(a, b, LEVEL), query, min(len(a), len(b))))
    return tuple(ratios)


def _values(trials: Sequence[TrialTimes]) -> dict[str, list[float]]:
    values: dict[str, list[float]] = {}
    for _, times in trials:
        for query, time_s in times.items():
            values.setdefault(query, []).append(time_s)
    return values


# If queries are faster overall, a slower query goes against the trend. If queries are slower overall, a faster query
# does. The report shows how the plan of such a query differs.


_TREND = 0.05
"""There is a trend if the overall ratio differs from 1 by at least this much."""


class Files(Protocol):
    """Reader of a record's evidence files."""

    def text(self, id: str, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ContraryQuery:
    """A query of one subject that goes against the trend."""

    subject: str
    baseline: str
    overall: float
    """Geometric mean of the ratios of all queries."""
    ratio: QueryRatio
    plan: Note
    """Differences between the query's plan and the baseline's."""

    @property
    def slower(self) -> bool:
        return self.ratio.ratio > 1


def against(
    compared: Queries | None, groups: Sequence[tuple[str, Sequence[Record]]], files: Files
) -> tuple[ContraryQuery, ...]:
    """Lists the queries of each subject that go against the trend. For each subject, the query with the largest ratio
    is first. `groups`: subjects with their comparable trials.
    """
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
            ContraryQuery(subject.name, baseline, overall, one, difference(own.get(one.query), other.get(one.query)))
            for one in sorted(contrary, key=lambda one: -abs(math.log(one.ratio)))
        ]
    return tuple(named)


def _is_contrary(one: QueryRatio, overall: float) -> bool:
    """Returns whether the query differs significantly in the direction opposite to the overall ratio."""
    if abs(math.log(overall)) < math.log1p(_TREND) or not one.known:
        return False
    return one.low > 1 if overall < 1 else one.high < 1


def _of_one_block(
    records: Sequence[Record], baseline: Sequence[Record], files: Files
) -> tuple[Mapping[str, Steps], Mapping[str, Steps]]:
    """Returns the plans of both sides from the same block, because parameters differ between blocks. This is the first
    block that contains plans of both sides."""
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
    """Returns a note on the steps that only one of the two plans contains."""
    if not plan or not baseline:
        return note("plans-unknown")
    return note("plans-differ", more=_ranked(plan - baseline), less=_ranked(baseline - plan))


def _ranked(steps: Steps) -> tuple[tuple[str, int], ...]:
    """Sorts steps that access tables first, because they matter most."""
    return tuple((step, steps[step]) for step in sorted(steps, key=lambda step: (" on " not in step, step)))
