"""Times of SQL commands in scripts, as measured by clients. The times are combined over the trials of each system, and
compared between systems.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.model import sample
from ironbench.model.record import PERCENTILES, Record, Statement
from ironbench.study.archive import Archive
from ironbench.study.commands import CommandKey, aligned, file_name, keyed, with_replacements
from ironbench.study.inside import TrialTotals, trial_totals
from ironbench.study.queries import QueryRatio, paired_ratios, unpaired_ratios
from ironbench.study.summarise import merged
from ironbench.words import cut

_SHOWN = 20
"""Maximum number of statements shown, chosen by total time."""
_LONGEST = 400
"""Maximum number of characters of a statement's text."""


@dataclass(frozen=True, slots=True)
class TimedCommand:
    """Times of one command over all trials."""

    script: str
    line: int
    text: str
    count: int
    """Number of answers, including errors."""
    failed: int
    """Number of errors."""
    mean_s: float
    stdev_s: float
    percentiles: Mapping[str, float]
    """Percentiles by name (`p50_s` and so on), in seconds, over all answers together. A percentile is left out if there
    are too few answers for it."""
    ratio: QueryRatio | None
    """Mean time as a multiple of the mean time in the first system. The value is None in the first system itself, and
    for commands that the first system lacks."""
    first_s: float | None = None
    """Mean time in the first system, or None if `ratio` is None."""


@dataclass(frozen=True, slots=True)
class StatementTimings:
    """Times of all commands in one system or configuration."""

    name: str
    statements: tuple[TimedCommand | None, ...]
    """Commands in the same order for all systems. The entry is None if this system lacks the command."""
    counted: TrialTotals
    """Time and transactions of the trials in which statements were timed."""
    complete: bool
    """Whether every command is known. Without evidence files, a record contains only the top commands by time."""


_Trial = tuple[int, Mapping[CommandKey, Statement]]
"""Block and commands of a trial."""


def times(
    groups: Sequence[tuple[str, Sequence[Record]]], archive: Archive, *, in_blocks: bool = True
) -> tuple[StatementTimings, ...]:
    """Returns command times of each group. Groups without timed statements are left out.

    `groups`: name and comparable trials, with the baseline first. `in_blocks`: whether the groups are configurations of
    one lab, whose trials are paired by block.
    """
    records = {name: own for name, every in groups if (own := [one for one in every if one.statements])}
    if not records:
        return ()
    first = next(iter(records))
    complete = {name: all(archive.timed(one.id) for one in own) for name, own in records.items()}
    timed: dict[str, Sequence[_Trial]] = {}
    for name, own in records.items():
        written = [(one.block, _by_key(one, archive)) for one in own]
        timed[name] = _as_first(written, timed[first], complete[name] and complete[first]) if timed else written
    pooled = {name: _pooled(own for _, own in trials) for name, trials in timed.items()}
    keys = _commands_to_show(pooled.values())
    compared = paired_ratios if in_blocks else unpaired_ratios
    times = []
    for name, trials in timed.items():
        to_first = () if name == first else compared(_means(trials), _means(timed[first]))
        ratios = {one.query: one for one in to_first}
        histograms = {one.histogram for key in keys for one in pooled[name].get(key, ())}
        answers = merged(records[name], sorted(histograms), archive)
        statements = (
            _timed(pooled[name][key], ratios.get(str(key)), answers, pooled[first].get(key, ()))
            if key in pooled[name]
            else None
            for key in keys
        )
        times.append(StatementTimings(name, tuple(statements), trial_totals(records[name]), complete[name]))
    return tuple(times)


def _by_key(record: Record, archive: Archive) -> dict[CommandKey, Statement]:
    """Returns all statements of a trial by key. If there are no evidence files, only the statements in the record are
    known, which are those with the most time."""
    return keyed((one.script, one.text, one) for one in archive.timed(record.id) or record.statements)


def _as_first(trials: Sequence[_Trial], first: Sequence[_Trial], complete: bool) -> list[_Trial]:
    """Gives each command the key that the same command has in the first group. `complete`: whether all commands are
    known. Commands with changed texts are then matched by position."""
    own, others = (list(dict.fromkeys(key for _, by_key in side for key in by_key)) for side in (trials, first))
    shared = (with_replacements if complete else aligned)(own, others)
    return [(block, {shared[key]: one for key, one in by_key.items()}) for block, by_key in trials]


def _means(trials: Iterable[_Trial]) -> list[tuple[int, dict[str, float]]]:
    return [(block, {str(key): one.mean_s for key, one in own.items() if one.mean_s > 0}) for block, own in trials]


def _pooled(trials: Iterable[Mapping[CommandKey, Statement]]) -> dict[CommandKey, list[Statement]]:
    alike: dict[CommandKey, list[Statement]] = {}
    for key, one in (pair for own in trials for pair in own.items()):
        alike.setdefault(key, []).append(one)
    return alike


def _commands_to_show(pooled: Iterable[Mapping[CommandKey, Sequence[Statement]]]) -> list[CommandKey]:
    """Selects the commands to show. For each command, the group in which it took the most time counts. Commands are in
    the order of the first group. Commands that it lacks follow in the order of the other groups."""
    spent: dict[CommandKey, float] = {}
    for group in pooled:
        for key, own in group.items():
            spent[key] = max(spent.get(key, 0.0), math.fsum(one.count * one.mean_s for one in own))
    most = set(sorted(spent, key=lambda key: -spent[key])[:_SHOWN])
    return [key for key in spent if key in most]


def _percentiles(own: Sequence[Statement], answers: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns a command's percentiles. Percentiles cannot be averaged, so the result is empty for several trials
    without histograms."""
    whole = answers.get(own[0].histogram)
    if whole is not None and whole.count == sum(one.count for one in own):
        return sample.quantiles(whole, PERCENTILES)
    if len(own) > 1:
        return {}
    return {name: value for name in PERCENTILES if (value := getattr(own[0], name)) is not None}


def _mean_s(own: Sequence[Statement]) -> float:
    return math.fsum(one.count * one.mean_s for one in own) / (sum(one.count for one in own) or 1)


def _timed(
    own: Sequence[Statement], ratio: QueryRatio | None, answers: Mapping[str, Any], first: Sequence[Statement]
) -> TimedCommand:
    count, mean_s = sum(one.count for one in own) or 1, _mean_s(own)
    squares = math.fsum(one.count * (one.stdev_s**2 + (one.mean_s - mean_s) ** 2) for one in own)
    return TimedCommand(
        script=file_name(own[0].script),
        line=own[0].line,
        text=cut(own[0].text, _LONGEST),
        count=sum(one.count for one in own),
        failed=sum(one.failed for one in own),
        mean_s=mean_s,
        stdev_s=math.sqrt(squares / count),
        percentiles=_percentiles(own, answers),
        ratio=ratio,
        first_s=_mean_s(first) if ratio is not None and first else None,
    )


def sure(subjects: Sequence[StatementTimings]) -> Iterator[tuple[str, TimedCommand, QueryRatio]]:
    """Yields the name of the system, the command and the ratio for each significant difference. For each system, the
    largest ratio is first."""
    for subject in subjects:
        known = [(one, one.ratio) for one in subject.statements if one is not None and one.ratio is not None]
        apart = [(one, ratio) for one, ratio in known if ratio.known and (ratio.low > 1 or ratio.high < 1)]
        for one, ratio in sorted(apart, key=lambda pair: -abs(math.log(pair[1].ratio))):
            yield subject.name, one, ratio
