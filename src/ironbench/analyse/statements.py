"""How long the SQL commands of the scripts took, as clients saw it: pooled by system or cell, and compared."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ironbench.analyse.archive import Archive
from ironbench.analyse.queries import QueryRatio, paired_ratios, unpaired_ratios
from ironbench.analyse.summarise import merged
from ironbench.model import sample
from ironbench.model.record import PERCENTILES, Record, Statement
from ironbench.words import cut

_SHOWN = 20
"""Most statements, those that took most time in all."""
_LONGEST = 400
"""Characters of a text."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One command, all trials together."""

    script: str
    line: int
    text: str
    count: int
    """Answers."""
    failed: int
    """Of them errors."""
    mean_s: float
    stdev_s: float
    percentiles: Mapping[str, float]
    """`p50_s` and so on, of all answers together; those that there are answers enough for."""
    ratio: QueryRatio | None
    """Its mean over that in the first system or cell; None there, and where the first does not have it."""
    first_s: float | None = None
    """Its mean in the first; None as above."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of one system or cell."""

    name: str
    statements: tuple[Timed | None, ...]
    """In one order for all, as written; None where this one does not have it."""


def times(
    groups: Sequence[tuple[str, Sequence[Record]]], archive: Archive, *, in_blocks: bool = True
) -> tuple[Times, ...]:
    """`groups`: name and comparable trials, the baseline first; those whose statements were not timed are left out.

    A command is the same one in another group where the script's file has the same name and the command the same text.
    """
    timed = {name: [(one.block, _by_key(_all(one, archive))) for one in records] for name, records in groups}
    timed = {name: trials for name, trials in timed.items() if any(own for _, own in trials)}
    if not timed:
        return ()
    first, baseline, records = next(iter(timed)), next(iter(timed.values())), dict(groups)
    pooled = {name: _pooled(own for _, own in trials) for name, trials in timed.items()}
    keys = _shown(pooled.values())
    compared = paired_ratios if in_blocks else unpaired_ratios
    times = []
    for name, trials in timed.items():
        own = () if trials is baseline else compared(_means(trials), _means(baseline))
        ratios = {one.query: one for one in own}
        answers = _answers(records[name], archive, [one for key in keys for one in pooled[name].get(key, ())])
        statements = (
            _timed(pooled[name][key], ratios.get(key), answers, pooled[first].get(key, ()))
            if key in pooled[name]
            else None
            for key in keys
        )
        times.append(Times(name, tuple(statements)))
    return tuple(times)


def _all(record: Record, archive: Archive) -> Sequence[Statement]:
    """Every statement; a record itself has only those that took most."""
    return (archive.timed(record.id) or record.statements) if record.statements else ()


def _by_key(statements: Sequence[Statement]) -> dict[str, Statement]:
    """By what makes it the same command in another script: the n-th with this text in a file of this name."""
    seen: Counter[str] = Counter()
    by_key = {}
    for one in statements:
        name = f"{_file(one.script)}\t{one.text}"
        seen[name] += 1
        by_key[f"{name}\t{seen[name]}"] = one
    return by_key


def _file(script: str) -> str:
    return script.rpartition("/")[2]


def _means(trials: Iterable[tuple[int, Mapping[str, Statement]]]) -> list[tuple[int, dict[str, float]]]:
    return [(block, {key: one.mean_s for key, one in own.items() if one.mean_s > 0}) for block, own in trials]


def _pooled(trials: Iterable[Mapping[str, Statement]]) -> dict[str, list[Statement]]:
    alike: dict[str, list[Statement]] = {}
    for key, one in (pair for own in trials for pair in own.items()):
        alike.setdefault(key, []).append(one)
    return alike


def _shown(pooled: Iterable[Mapping[str, Sequence[Statement]]]) -> list[str]:
    """Of all groups, in the order of the first that has them."""
    spent: dict[str, float] = {}
    for group in pooled:
        for key, own in group.items():
            spent[key] = max(spent.get(key, 0.0), math.fsum(one.count * one.mean_s for one in own))
    most = set(sorted(spent, key=lambda key: -spent[key])[:_SHOWN])
    return [key for key in spent if key in most]


def _answers(records: Sequence[Record], archive: Archive, shown: Sequence[Statement]) -> dict[str, Any]:
    """Histogram by name, of all trials together."""
    return merged(records, sorted({one.histogram for one in shown}), archive)


def _percentiles(own: Sequence[Statement], answers: Mapping[str, Any]) -> Mapping[str, float]:
    """Of several trials only histograms tell: no percentile is made of percentiles."""
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
) -> Timed:
    count, mean_s = sum(one.count for one in own) or 1, _mean_s(own)
    squares = math.fsum(one.count * (one.stdev_s**2 + (one.mean_s - mean_s) ** 2) for one in own)
    return Timed(
        script=_file(own[0].script),
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


def sure(subjects: Sequence[Times]) -> Iterator[tuple[str, Timed, QueryRatio]]:
    """Name, command and ratio where its interval leaves out 1, of each system or cell the farthest from 1 first."""
    for subject in subjects:
        known = [(one, one.ratio) for one in subject.statements if one is not None and one.ratio is not None]
        apart = [(one, ratio) for one, ratio in known if ratio.known and (ratio.low > 1 or ratio.high < 1)]
        for one, ratio in sorted(apart, key=lambda pair: -abs(math.log(pair[1].ratio))):
            yield subject.name, one, ratio
