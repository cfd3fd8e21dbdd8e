"""The history of a metric over time, for the same work, load and data, with one line per configuration.

A point contains the trials of one commit, version or run. The value of a point is the geometric mean of its trials, and
their variation determines its confidence interval and weight. Points with the same machine and configuration form a
line, in which change points are detected (`stats/change_points.py`). A different configuration starts a new line, with
a list of the differences.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from ironbench.catalogue import better
from ironbench.errors import InputError
from ironbench.model.finding import LEAST_BLOCKS_SHOWN, GroupRatio
from ironbench.model.note import Note, note
from ironbench.model.purpose import AUXILIARY
from ironbench.model.record import Record, Status, machines_of
from ironbench.model.sample import listed
from ironbench.model.system import Load, System
from ironbench.records.described import is_usual_place, settings_of
from ironbench.records.work import work, work_name
from ironbench.stats.intervals import half_width
from ironbench.study import differences as facts_of_systems
from ironbench.study.archive import Archive
from ironbench.study.differences import Difference, chosen_settings
from ironbench.study.subjects import leading, marked

DATE, TAG = "date", "tag:"
_NAMED = ("commit", "version")
"""Orders of points that use the tag of the same name."""
_LEAST_VARIANCE = 1e-12
"""Lower bound of the variance of a metric's logarithm. This bound is used for metrics that never vary, such as
counts."""
_UNDER_TEST = ("engine.version", "engine.server_version_num", "engine.configure", "engine.installation")
"""Prefixes of facts that identify the database program. These facts are ignored if points are ordered by a tag, because
the tag may name the version of this program."""
_CLIENT = ("software.ironbench", "software.build")
"""Facts about the measuring software that can affect a result."""


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The trials of one commit, version or run."""

    name: str
    """The tag's value. For a run: the date, and the time if there are several runs on that day."""
    started_at: str
    """Start of the first trial."""
    trials: tuple[Record, ...]
    value: float
    """Geometric mean, in base units."""
    interval: tuple[float, float] | None
    """95% t interval from the variation of the trials, or None with too few trials."""
    deviation: float
    """Standard deviation of the logarithms of the trials' values. 0 for one trial."""
    variance: float = 0.0
    """Variance of the mean log value (see `_variances`). 0 if the point has no verdict."""

    @property
    def judged(self) -> bool:
        """Whether the point has enough repeats for a verdict."""
        return self.interval is not None

    @property
    def suspect(self) -> int:
        return sum(trial.status is Status.SUSPECT for trial in self.trials)

    @property
    def flagged(self) -> bool:
        """Whether every trial of the point is flagged."""
        return self.suspect == len(self.trials)


@dataclass(frozen=True, slots=True)
class HistoryChange(GroupRatio):
    """A change point, at which a new segment begins. The ratio is the mean of the new segment divided by the mean of
    the previous segment, with its 95% confidence interval."""

    place: int
    """Index, within the line, of the new segment's first point."""
    worse: bool | None
    """Whether the change is for the worse, or None if the metric has no better direction."""


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """Points of one configuration on one machine, in chronological order."""

    name: str
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...] = ()
    spikes: tuple[int, ...] = ()
    """Indices of outliers, which differ from the points before and after them."""
    unconfirmed: bool = False
    """Whether the last point with a verdict differs from the points before it. The next point will show whether this is
    a change or an outlier."""
    between: float = 0.0
    """Additional relative standard deviation between points, beyond what the variation of their trials explains."""
    correlation: float = 0.0
    """Estimated correlation of neighbouring points, which change detection takes into account."""
    differs: tuple[Difference, ...] = ()
    """Differences between the configuration of the previous line and that of this line, with the previous value and the
    new value."""
    open_question: Note | None = None
    """Reason why the line was not searched for change points, or None if it was."""
    detectable: float | None = None
    """Minimum detectable effect. A new segment that differs by this relative difference is detected after three points
    with 90% probability."""

    @property
    def segments(self) -> tuple[tuple[int, int], ...]:
        """First and last index of each segment between change points."""
        starts = [0, *(change.place for change in self.changes), len(self.points)]
        return tuple((a, b - 1) for a, b in itertools.pairwise(starts))

    def mean(self, first: int, last: int) -> float:
        """Returns the geometric mean of the points from `first` to `last` in base units. Outliers are left out. The
        weights are those of the search for change points."""
        judged = [place for place, point in enumerate(self.points) if point.variance]
        out = {*self.spikes, *judged[-1:]} if self.unconfirmed else {*self.spikes}
        points = [self.points[place] for place in judged if first <= place <= last and place not in out]
        weights = [1 / (point.variance + math.log1p(self.between) ** 2) for point in points]
        logs = [weight * math.log(point.value) for weight, point in zip(weights, points, strict=True)]
        return math.exp(sum(logs) / sum(weights))


@dataclass(frozen=True, slots=True)
class History:
    """The history of a work under one load."""

    work: str
    load: Note
    metric: str
    lines: tuple[HistoryLine, ...]

    @property
    def order(self) -> tuple[HistoryPoint, ...]:
        """Points of all lines in chronological order."""
        return tuple(sorted((point for line in self.lines for point in line.points), key=lambda one: one.started_at))


@dataclass(frozen=True, slots=True)
class Histories:
    """Histories shown on a page."""

    by: str
    all: tuple[History, ...]
    left_out: tuple[Note, ...]


def require_order(by: str) -> None:
    """Checks the order. Raises InputError unless it is `date`, `commit`, `version` or `tag:KEY`."""
    if by in (DATE, *_NAMED) or (by.startswith(TAG) and by != TAG):
        return
    raise InputError(f"--by {by}", "is not a valid order", "use date, commit, version, or tag:KEY for your own tag")


def histories(records: Sequence[Record], archive: Archive, metric: str = "", by: str = DATE) -> Histories:
    """Groups records into histories. `metric`: name of the metric; empty for the leading metric of each work. `by`:
    order of the points, see `require_order`."""
    tag = "" if by == DATE else by.removeprefix(TAG)
    entering = [one for one in records if one.status.comparable and one.purpose not in AUXILIARY]
    tagged = [one for one in entering if not tag or tag in one.tags]
    left_out = _left_out(records, entering, tagged, tag)
    groups: dict[str, list[Record]] = {}
    for record in sorted(tagged, key=lambda one: (one.started_at, one.id)):
        groups.setdefault(_like(record), []).append(record)
    known = _Facts(archive, tag)
    found = []
    for group in groups.values():
        shown = metric or next((name for name in leading(group[0]) if name in group[0].metrics), "throughput")
        lines = _lines(group, shown, tag, known)
        if lines:
            found.append(History(work_name(group[0].choice), _load(group[0].cell.load), shown, lines))
    if metric and not found and tagged:
        left_out = (*left_out, note("metric-without-values", metric=metric))
    return Histories(by, tuple(found), left_out)


def _left_out(
    records: Sequence[Record], entering: Sequence[Record], tagged: Sequence[Record], tag: str
) -> tuple[Note, ...]:
    out, missing = len(records) - len(entering), len(entering) - len(tagged)
    unusable = [note("unusable-left-out", trials=out)] if out else []
    return (*unusable, *([note("untagged-left-out", trials=missing, tag=tag)] if missing else []))


def _like(record: Record) -> str:
    """Returns a key of the work, the data and the load, which must be equal for a comparison over time."""
    load = record.cell.load
    shape = replace(load.shape, rate=None if load.rate_share else load.rate)
    workers = record.metrics.get("workers", load.workers)  # fewer than requested if machines were lost
    key = (work(record), shape, load.clients, load.threads, workers)
    return msgspec.json.encode(key, order="sorted").decode()


def _load(load: Load) -> Note:
    if load.rate_share:
        return note("load-over-time", clients=load.clients, rate_share=load.rate_share)
    if load.curve:
        return note("load-over-time", clients=load.clients, curve=load.curve.text)
    return note("load-over-time", clients=load.clients, rate=load.rate)


class _Facts:
    """Facts that distinguish configurations, read once for each machine, engine and system."""

    def __init__(self, archive: Archive, tag: str) -> None:
        self._archive, self._tag = archive, tag
        self._known: dict[str, dict[str, str]] = {}

    def of(self, record: Record) -> Mapping[str, str]:
        system = replace(record.system, label="", reference_score=None)
        client = [record.software.get(name.partition(".")[2]) for name in _CLIENT]
        how = record.method  # trials in slices do not include writes between slices
        key = msgspec.json.encode((machines_of(record), record.engine, system, client, how)).decode()
        if key not in self._known:
            flat, _ = chosen_settings(facts_of_systems.facts(record, self._archive))
            known = {name: value for name, value in flat.items() if self._distinguishes(name, value, record)}
            self._known[key] = {**known, "load.method": how}
        return self._known[key]

    def _distinguishes(self, name: str, value: str, record: Record) -> bool:
        kind = name.partition(".")[0]
        if kind in ("load", "tag") or (kind == "software" and name not in _CLIENT) or name.endswith(".number"):
            return False  # `.number`: a reboot may change device numbers
        if name == "system.layout.data" and is_usual_place(value, record.system.engine):
            return False
        if name.rpartition(".")[2] in _computed(record.system):
            return False
        return not (self._tag and (name.startswith(_UNDER_TEST) or name.rpartition(".")[2] == "bin"))


def _computed(system: System) -> frozenset[str]:
    """Returns the settings that ironbench computes from the size of the data when the server starts. These settings are
    not part of the configuration, because the size of the data varies slightly. For example, for zero-latency data, the
    size of the cache depends on the size of the data and differs by a page from run to run.
    """
    decided = settings_of(system.engine).ideal
    return frozenset(name for part in system.ideal for name in decided.get(part, ()))


def _lines(group: Sequence[Record], metric: str, tag: str, known: _Facts) -> tuple[HistoryLine, ...]:
    """Returns one line for each configuration. The lines are ordered by the start of their first trial."""
    by_configuration: dict[tuple[tuple[str, str], ...], list[Record]] = {}
    for record in group:
        value = record.metrics.get(metric)
        if value is not None and value > 0 and math.isfinite(value) and listed(record, metric):
            by_configuration.setdefault(tuple(sorted(known.of(record).items())), []).append(record)
    found: list[HistoryLine] = []
    before: Mapping[str, str] | None = None
    for configuration, records in by_configuration.items():
        now = dict(configuration)
        differs = facts_of_systems.differences([before, now]) if before is not None else ()
        name = marked(records[0].system.label or records[0].system.engine, records)
        found.append(replace(_line(name, _points(records, metric, tag), metric), differs=differs))
        before = now
    return _named_apart(found)


def _named_apart(lines: Sequence[HistoryLine]) -> tuple[HistoryLine, ...]:
    """Makes the names of lines unique by numbering lines that have the same name."""
    names = [line.name for line in lines]
    return tuple(
        replace(line, name=f"{line.name} ({names[: place + 1].count(line.name)})")
        if names.count(line.name) > 1
        else line
        for place, line in enumerate(lines)
    )


def _points(records: Sequence[Record], metric: str, tag: str) -> list[HistoryPoint]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.tags[tag] if tag else record.series, []).append(record)
    days = [group[0].started_at[:10] for group in groups.values()]
    found = [_point(key if tag else _date(group[0], days), group, metric) for key, group in groups.items()]
    return sorted(found, key=lambda one: one.started_at)


def _date(first: Record, days: Sequence[str]) -> str:
    """Returns the date of a run, with the time if there are several runs on that day."""
    start = first.started_at
    return start[:10] if days.count(start[:10]) == 1 else start[:16].replace("T", " ")


def _point(name: str, trials: Sequence[Record], metric: str) -> HistoryPoint:
    logs = [math.log(trial.metrics[metric]) for trial in trials]
    mean, n = statistics.fmean(logs), len(logs)
    deviation = statistics.stdev(logs) if n > 1 else 0.0
    interval = None
    if n >= LEAST_BLOCKS_SHOWN:
        half = half_width(logs)
        interval = math.exp(mean - half), math.exp(mean + half)
    return HistoryPoint(name, trials[0].started_at, tuple(trials), math.exp(mean), interval, deviation)


def _line(name: str, points: Sequence[HistoryPoint], metric: str) -> HistoryLine:
    from ironbench.stats import change_points

    judged = [place for place, point in enumerate(points) if point.judged]
    if "cpu" in metric and any(point.suspect for point in points):
        return HistoryLine(name, tuple(points), open_question=note("suspect-cpu"))
    if len(judged) < change_points.LEAST:
        few = note("few-points", points=len(judged), least=change_points.LEAST, trials=LEAST_BLOCKS_SHOWN)
        return HistoryLine(name, tuple(points), open_question=few)
    variances = dict(zip(judged, _variances([points[place] for place in judged]), strict=True))
    points = [replace(point, variance=variances.get(place, 0.0)) for place, point in enumerate(points)]
    logs = [math.log(points[place].value) for place in judged]
    found = change_points.changes(logs, [variances[place] for place in judged])
    question = None
    if found.detectable is None:
        kept = len(judged) - len(found.spikes) - found.unconfirmed
        question = note("few-points-besides-outliers", points=kept, least=change_points.LEAST)
    return HistoryLine(
        name,
        tuple(points),
        tuple(
            HistoryChange(
                math.exp(one.difference),
                math.exp(one.low),
                math.exp(one.high),
                judged[one.place],
                _worse(one.difference, better(metric)),
            )
            for one in found.points
        ),
        tuple(judged[place] for place in found.spikes),
        found.unconfirmed,
        math.expm1(found.between),
        found.correlation,
        open_question=question,
        detectable=math.expm1(found.detectable) if found.detectable else None,
    )


def _worse(difference: float, direction: str) -> bool | None:
    return None if direction == "neither" else (difference < 0) == (direction == "higher")


def _variances(points: Sequence[HistoryPoint]) -> list[float]:
    """Returns the variance of each point's mean. A variance from few repeats is unreliable, so it is averaged with the
    pooled variance of all points.

    (Moderated variances: Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004.)
    """
    freedom = [len(point.trials) - 1 for point in points]
    pooled = sum(n * point.deviation**2 for n, point in zip(freedom, points, strict=True)) / sum(freedom)
    return [max(_LEAST_VARIANCE, (point.deviation**2 + pooled) / 2 / len(point.trials)) for point in points]
