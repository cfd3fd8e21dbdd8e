"""Breaks down the time of a transaction and names the limiting resource.

The time of a transaction consists of parts. At any moment, the engine computes for the client, or the client waits for
a core, a page, the WAL, a lock or the client program. The mean number of clients in a part, divided by the throughput,
is the time per transaction spent in this part (Little, Operations Research 9(3), 1961). Suppose that a part with a
share s of the time is removed, and that everything else takes as long as before. Throughput is then 1 / (1 − s) times
as high (Amdahl, AFIPS 1967). This is an estimate, not a bound. The gain is smaller if the queue moves to another
resource. The gain is larger if the part also causes waits that disappear with it, for example waits for locks that a
backend holds during this part. `Gain` contains the estimate with its bounds; `ceiling` measures the gain. Unless
the server's CPU is the bottleneck, the estimate is never larger than the gain at which all cores are busy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ironbench.catalogue import base_name, part_of
from ironbench.model.judging_limits import BUSY
from ironbench.model.note import Note, note
from ironbench.model.observer import (
    CLIENT,
    CONCURRENCY,
    CPU,
    DATA_READ,
    DATA_WRITE,
    INTERNAL_LOCKS,
    LOCKS,
    LOG_FLUSH,
    OTHER,
    OTHER_PROGRAMS,
    RUN_QUEUE,
    SERVER_CPU,
    TEMP,
    WAIT_CLASSES,
)
from ironbench.model.record import Record
from ironbench.records.described import described
from ironbench.stats.intervals import wilson

RESOURCES: dict[str, tuple[str, ...]] = {
    SERVER_CPU: (CPU, RUN_QUEUE),
    "data-reads": (DATA_READ,),
    "data-writes": (DATA_WRITE,),
    "wal": (LOG_FLUSH,),
    "temp-files": (TEMP,),
    "locks": (LOCKS,),
    "internal-locks": (INTERNAL_LOCKS,),
    "client": (CLIENT,),
}
"""For each limiting resource, the parts of the time that are spent on this resource."""
_SHARED_CORES = RESOURCES | {SERVER_CPU: (CPU,), OTHER_PROGRAMS: (RUN_QUEUE,)}
"""Replaces `RESOURCES` if other programs used most of the CPU time. The wait for a core then counts as caused by the
other programs, because a faster CPU would not shorten it."""
IDLE_FROM = 0.25
"""If at least this fraction of all cores' CPU time was idle, more clients could use more cores."""
_QUEUE_UNTIL = 0.1
"""Maximum ratio of the time that backends wait for a core to the time that they compute. If they wait longer, the
server evidently could not use the idle cores."""
_MUCH_UNKNOWN = 0.2
"""Maximum fraction of the time that may belong to no known part. If the fraction is larger, a warning is added."""
_ALL = 0.99
"""Maximum fraction of the time for which a gain is estimated. With a larger fraction, almost no time would remain, and
the gain would be almost infinite."""
_CAUSED = (RUN_QUEUE, LOCKS, INTERNAL_LOCKS)
"""Waits that any other part may cause. For example, backends wait for a lock while another backend spends time in that
part and holds the lock."""
LIMITS_FROM = 0.4
"""Minimum fraction of the time for a resource to be named as the limit. Removing a resource with a smaller fraction
would give at most 1.7 times the throughput."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a transaction's time."""

    name: str
    share: float
    low: float
    high: float
    """Bounds of the share's 95% confidence interval. If the share was counted in one trial, both bounds equal the
    share."""
    time_s: float
    """Seconds per transaction."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Estimated throughput without a part of the time, as a multiple of the measured throughput. The estimate is not a
    bound."""

    low: float
    """Estimate that assumes the lower bound of the part's share, and that all other time stays the same."""
    high: float
    """Estimate that assumes the upper bound of the part's share, and that the waits that the part may cause disappear
    with it. Infinite if nearly all time is in these parts."""
    cores_busy: bool = False
    """Whether the CPU alone limits the estimate. `high` is then the throughput with all cores busy, and `low` is 1."""


@dataclass(frozen=True, slots=True)
class LimitingResource:
    """The resource that limits throughput. The result may also be that no resource can be named."""

    resource: str
    """A key of `RESOURCES`, `OTHER_PROGRAMS` or `CONCURRENCY`. Empty if inconclusive."""
    share: float
    gain: Gain | None
    """Estimate of the throughput if the resource took no time. For `CONCURRENCY`, estimate of the throughput with
    enough clients for all cores. The value is None if there is no estimate."""
    note: Note
    """Names the limit and the evidence for it. The report adds the estimated gain."""
    taken: float = 0.0
    """Fraction of all cores' CPU time that other programs used. 0 unless they used more than server and client
    together."""


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Breakdown of a transaction's time in one configuration."""

    cell: str
    trials: int
    """Number of trials that the breakdown averages."""
    observed: int
    """Number of usable trials in which backends were observed. This number is larger than `trials` if the comparisons
    of the configuration do not use all blocks."""
    total_s: float
    """Client seconds per transaction, including think time. In an open loop, this is the service time."""
    parts: tuple[Part, ...]
    """Parts in the order of `WAIT_CLASSES`, without parts that took no time. Shares sum to 1."""
    limit: LimitingResource
    roots: Mapping[str, float]
    """The backend at the head of a lock chain blocks all other backends of the chain. For each wait event of such a
    backend, the fraction of lock waits in its chains. Empty if there are no lock waits."""
    tables: Mapping[str, float]
    """For each table, the fraction of lock waits on it."""
    warnings: tuple[Note, ...] = ()
    functions: Note | None = None
    """Functions that take most of the limiting resource's time, if the trials were profiled
    (`wait_parts.functions_of_limit`)."""

    def share(self, name: str) -> float:
        return next((part.share for part in self.parts if part.name == name), 0.0)

    def gain(self, names: Collection[str]) -> Gain:
        """Estimates how much higher throughput would be if these parts took no time."""
        return _gain(self.parts, names)


def where_time_goes(records: Sequence[Record], blocks: Collection[int] | None = None) -> TimeSpent | None:
    """Returns the breakdown over the comparable trials of one configuration. Returns None if backends were not
    observed.

    `blocks`: the blocks whose trials are averaged; None for all.
    """
    every, lost = observed_trials(records)
    seen = [one for one in every if blocks is None or one.block in blocks]
    if not seen:
        return None
    totals = [total(record) for record in seen]
    total_s = fmean(totals)
    parts = tuple(part for name in WAIT_CLASSES if (part := _part(name, seen, totals)) is not None)
    roots, tables = (_means(seen, name) for name in ("lock_root_share", "lock_table_share"))
    limit = _limit(parts, roots, tables, seen)
    return TimeSpent(
        cell=seen[0].cell.name,
        trials=len(seen),
        observed=len(every),
        total_s=total_s,
        parts=parts,
        limit=limit,
        roots=roots,
        tables=tables,
        warnings=_warnings(seen, lost),
    )


def observed_trials(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """Returns the comparable trials whose backends were observed, and the observed trials that are left out.

    If a backend exits during a trial, the kernel's counters of CPU time and CPU scheduling waits may be lost. Such a
    trial would count the wait for a core as CPU time, and is therefore left out if other trials have the counters.
    """
    seen = [one for one in records if one.status.comparable and one.metrics.get("throughput") and _shares(one)]
    whole = [one for one in seen if _counted(one)]
    return (whole, [one for one in seen if not _counted(one)]) if whole else (seen, [])


def total(record: Record) -> float:
    """Returns the client seconds per transaction."""
    load, metrics = record.cell.load, record.metrics
    connections = described(record).connections or load.clients
    # As in `observe`. If some connections are always waiting for work, shares are relative to the busy connections. If
    # clients have think times, shares are relative to all connections.
    if load.rate is None and (connections == load.clients or load.think_time_s):
        clients = load.curve.mean(0.0, record.elapsed_s) if load.curve else connections
        return clients / metrics["throughput"]
    return metrics.get("service_time_mean_s", 0.0)


def times(record: Record) -> dict[str, float]:
    """Returns seconds per transaction by part, for one trial. Returns nothing if backends were not observed."""
    whole = total(record) if record.metrics.get("throughput") else 0.0
    return {name: share * whole for name, share in _shares(record).items()}


def _shares(record: Record) -> dict[str, float]:
    return _by_part(record, "time_share")


def _by_part(record: Record, metric: str) -> dict[str, float]:
    values = {name: value for name, value in record.metrics.items() if base_name(name) == metric}
    return {part_of(name).partition("=")[2]: value for name, value in values.items()}


def _part(name: str, records: Sequence[Record], totals: Sequence[float]) -> Part | None:
    """Computes one part of the breakdown. The share is relative to the mean total time of the trials. The seconds of
    two configurations can therefore be subtracted."""
    whole = sum(totals)
    weights = [one / whole for one in totals] if whole else [1 / len(totals)] * len(totals)
    values = [_shares(record).get(name, 0.0) for record in records]
    share = sum(weight * value for weight, value in zip(weights, values, strict=True))
    if share <= 0:
        return None
    numbers = [_by_part(record, "time_samples").get(name, 0.0) for record in records]
    # Trials with unequal weights count as fewer observations (Kish, Survey Sampling, 1965).
    n = sum(numbers) / (len(weights) * sum(weight**2 for weight in weights)) or None
    if len(values) > 2 and (spread := _spread(share, values, weights)) > 0:
        # Trials may vary more than sampling alone explains. The number of observations is then reduced to the number
        # that explains this variation.
        between = share * (1 - share) / spread
        n = between if n is None else min(n, between)
    low, high = (share, share) if n is None else wilson(share, n)
    return Part(name, share, min(low, share), max(high, share), share * whole / len(totals))


def _spread(share: float, values: Sequence[float], weights: Sequence[float]) -> float:
    """Returns the squared standard error of a ratio of sums (Cochran, Sampling Techniques, 1977, chapter 6)."""
    squares = sum((weight * (value - share)) ** 2 for weight, value in zip(weights, values, strict=True))
    return squares * len(values) / (len(values) - 1)


def _means(records: Sequence[Record], metric: str) -> dict[str, float]:
    """Returns the mean of each fraction of the lock waits over the trials. The largest fraction is first. Trials are
    weighted by their lock waits."""
    weights = [(record, _shares(record).get(LOCKS, 0.0)) for record in records]
    weights = [(record, weight) for record, weight in weights if _by_part(record, metric) and weight > 0]
    whole = sum(weight for _, weight in weights)
    means: dict[str, float] = {}
    for record, weight in weights:
        for key, value in _by_part(record, metric).items():
            means[key] = means.get(key, 0.0) + value * weight / whole
    return dict(sorted(means.items(), key=lambda pair: (-pair[1], pair[0])))


def _limit(
    parts: Sequence[Part], roots: Mapping[str, float], tables: Mapping[str, float], records: Sequence[Record]
) -> LimitingResource:
    """Returns the resource that takes the largest share of the time. The result names no resource if the share is not
    clearly the largest, if ironbench itself used too much CPU time, or if the system sustained the target rate. If
    cores were idle although the server mostly computed, the limit is the number of clients instead of the CPU."""
    by_name = {part.name: part for part in parts}
    taken = _taken_by_others(records)
    resources = _SHARED_CORES if taken else RESOURCES
    spent = {resource: _sum(by_name, names) for resource, names in resources.items()}
    first, second = sorted(spent, key=lambda resource: -spent[resource][0])[:2]
    (share, low, _), (_, _, next_high) = spent[first], spent[second]
    unknown = by_name[OTHER].share if OTHER in by_name else 0.0

    def limit(resource: str, why: Note, gain: Gain | None = None) -> LimitingResource:
        return LimitingResource(resource, share, gain, why, taken)

    if share < LIMITS_FROM or low <= next_high or share <= unknown:
        rivals = tuple(
            note("rival", resource=one, share=spent[one][0], **_apart(resources[one], by_name, records))
            for one in (first, second)
        )
        much_unknown = unknown if unknown > share / 2 else 0.0
        holders = _cpu_holders(records) if taken else ()
        return limit("", note("limit-unknown", rivals=rivals, unknown=much_unknown, cpu=holders))
    if first == OTHER_PROGRAMS:
        computing = by_name[CPU].share if CPU in by_name else 0.0
        holders = _cpu_holders(records)
        return limit(first, note("limit-other-programs", waiting=share, computing=computing, cpu=holders))
    if first == SERVER_CPU and all(record.warned("own-cpu-share") for record in records):
        # If ironbench's own CPU time is too high, the trial cannot show that CPU was the limit
        # (docs/reference/statuses.md).
        return limit("", note("limit-unknown-own-cpu", share=share))
    evidence = _evidence(first, by_name, roots, tables, records)
    if all(record.kept_rate for record in records):
        return limit("", note("limit-none", resource=first, share=share, evidence=evidence))
    idle = _idle_cores(by_name, records) if first == SERVER_CPU else None
    if idle is not None:
        clients = max(record.cell.load.clients for record in records)
        gain = Gain(1.0, 1 / (1 - idle) if idle < 1 else math.inf, cores_busy=True)
        return limit(CONCURRENCY, note("limit-clients", computing=share, idle=idle, clients=clients), gain)
    why = note("limit", resource=first, share=share, evidence=evidence)
    gain = _gain(parts, resources[first])
    if first == SERVER_CPU:
        return limit(first, why, gain)
    most = _cpu_limit(first, records)
    if most < gain.low:
        return limit(first, why, Gain(1.0, most, cores_busy=True))
    return limit(first, why, replace(gain, high=min(gain.high, most)))


def _evidence(
    resource: str,
    parts: Mapping[str, Part],
    roots: Mapping[str, float],
    tables: Mapping[str, float],
    records: Sequence[Record],
) -> tuple[Note, ...]:
    """Returns what is known about the cause of the time that a resource takes."""
    if resource == "locks":
        return _chain(roots, tables, described(records[0]).waits)
    if resource == SERVER_CPU:
        return (_cores(parts, records),)
    return (_client(records),) if resource == "client" else ()


def _gain(parts: Sequence[Part], names: Collection[str]) -> Gain:
    least = sum(part.low for part in parts if part.name in names)
    most = sum(part.high for part in parts if part.name in names or part.name in _CAUSED)
    return Gain(1 / (1 - min(least, _ALL)), 1 / (1 - most) if most < _ALL else math.inf)


def _cpu_limit(resource: str, records: Sequence[Record]) -> float:
    """Returns the throughput at which the server and the client use all CPU time that other programs leave, as a
    multiple of the measured throughput. This assumes that a transaction takes as much CPU time as before, and that the
    kernel's CPU time does not grow. If the client is the bottleneck, its CPU time does not count. Returns infinity if
    CPU time was not measured."""
    budgets = [record.budget for record in records]
    if not all(budget.measured for budget in budgets):
        return math.inf
    used = fmean(one.server + (0.0 if resource == CLIENT else one.client) for one in budgets)
    return max(1.0, (1 - fmean(one.taken for one in budgets)) / used) if used else math.inf


def _idle_cores(parts: Mapping[str, Part], records: Sequence[Record]) -> float | None:
    """Returns the idle fraction of all cores' CPU time if more clients could have used this time. This is the case if
    enough CPU time was idle and backends hardly waited for a core. Returns None otherwise, or if the fraction is
    unknown.
    """
    queue, computing = (parts[name].share if name in parts else 0.0 for name in (RUN_QUEUE, CPU))
    budgets = [record.budget for record in records]
    bound = records[0].system.server_cpus is not None or described(records[0]).limited_writers
    if bound or not all(_counted(record) for record in records) or not all(one.measured for one in budgets):
        return None
    idle = fmean(one.idle for one in budgets)
    return idle if idle >= IDLE_FROM and queue <= _QUEUE_UNTIL * computing else None


def _taken_by_others(records: Sequence[Record]) -> float:
    """Returns the fraction of all cores' CPU time that other programs and virtual machines used.

    Returns 0 if server and client together used as much or more, or if CPU time or the waits for a core were not
    counted.
    """
    budgets = [record.budget for record in records]
    if not all(budget.measured for budget in budgets) or not all(_counted(record) for record in records):
        return 0.0
    others, own = fmean(one.taken for one in budgets), fmean(one.server + one.client for one in budgets)
    return others if others > own else 0.0


def _apart(names: Sequence[str], parts: Mapping[str, Part], records: Sequence[Record]) -> dict[str, float]:
    """Returns the share of time spent computing and the share spent waiting for a core. Returns nothing if they were
    not measured separately."""
    if RUN_QUEUE not in names or CPU not in names or RUN_QUEUE not in parts or not all(map(_counted, records)):
        return {}
    return {"computing": parts[CPU].share if CPU in parts else 0.0, "waiting": parts[RUN_QUEUE].share}


def _sum(parts: Mapping[str, Part], names: Sequence[str]) -> tuple[float, float, float]:
    """Adds up the share, the lower bound and the upper bound of several parts. Adding bounds makes the interval wider
    than necessary."""
    chosen = [parts[name] for name in names if name in parts]
    return sum(p.share for p in chosen), sum(p.low for p in chosen), min(1.0, sum(p.high for p in chosen))


def _chain(roots: Mapping[str, float], tables: Mapping[str, float], waits: Mapping[str, str]) -> tuple[Note, ...]:
    """Returns a note on the cause of lock waits. `waits`: for each wait event, what a backend does during this
    event."""
    found = []
    if tables and (table := next(iter(tables.items())))[1] >= 0.5:
        found.append(note("locks-of-table", table=table[0]))
    if roots:
        event, share = next(iter(roots.items()))
        # The case of an event's name depends on the version of the engine.
        known = {name.lower(): does for name, does in waits.items()}
        found.append(note("locks-root", event=event, does=known.get(event.lower(), ""), share=share))
    return tuple(found)


def _cores(parts: Mapping[str, Part], records: Sequence[Record]) -> Note:
    """Returns a note that describes the CPU as the limit. The note recommends more cores only if other programs did not
    use the existing cores."""
    queue = parts[RUN_QUEUE].share if RUN_QUEUE in parts else 0.0
    computing = parts[CPU].share if CPU in parts else 0.0
    if not all(_counted(record) for record in records):
        return note("cpu-or-run-queue")
    if queue <= computing:
        return note("cpu-computing", share=computing)
    seen = [record for record in records if record.budget.measured]
    taken = bool(seen) and fmean(record.budget.taken for record in seen) > BUSY
    return note(
        "cpu-waiting", share=queue, more_cores=bool(seen) and not taken, cpu=_cpu_holders(seen) if taken else ()
    )


_HOLDERS = ("server", "client", "observers", "emulation", "relay", "kernel", "other", "steal")
"""Parts of the CPU budget that are listed as users of CPU time."""
_HELD_FROM = 0.02
"""A user of CPU time is named if it used at least this fraction of the CPU time."""


def _cpu_holders(records: Sequence[Record]) -> tuple[tuple[str, float], ...]:
    """Lists the users of CPU time with their mean fractions, the largest first."""
    means = {part: fmean(getattr(record.budget, part) for record in records) for part in _HOLDERS}
    return tuple(
        sorted(((part, share) for part, share in means.items() if share >= _HELD_FROM), key=lambda one: -one[1])
    )


def _client(records: Sequence[Record]) -> Note:
    if any(record.cell.load.think_time_s > 0 or described(record).rests for record in records):
        return note("client-thinks")
    if any(record.warned("client-saturated") for record in records):
        return note("client-busy")
    return note("client-waited-for")


def _warnings(records: Sequence[Record], lost: Sequence[Record]) -> tuple[Note, ...]:
    warnings = []
    if lost:
        warnings.append(note("waits-not-counted", trials=tuple(record.id for record in lost)))
    if not all(_counted(record) for record in records):
        warnings.append(note("run-queue-unknown"))
    if max(_shares(record).get(OTHER, 0.0) for record in records) > _MUCH_UNKNOWN:
        warnings.append(note("time-in-no-part"))
    return tuple(warnings)


def _counted(record: Record) -> bool:
    """Returns whether the kernel counted CPU time and CPU scheduling waits. Otherwise, both were sampled."""
    return CPU not in _by_part(record, "time_samples")
