"""Measures how much faster a system runs when one part takes almost no time.

A part's share of the time is only an estimate of the gain, because the queue moves to another resource when a part
becomes fast. Therefore, a configuration in which the part has zero latency (`System.zero_latency_parts`) is compared
with the same configuration without this change. The verdict follows from that comparison and its confidence interval.
The comparison alone does not show where the difference comes from, because making a part zero-latency also changes
settings (a larger cache saves CPU time). A part therefore counts as a cause only if it took time in the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from statistics import fmean

from ironbench import catalogue
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Lab
from ironbench.model.observer import CLIENT, DATA_READ, DATA_WRITE, LOG_FLUSH, TEMP
from ironbench.model.record import Record
from ironbench.model.system import Choice, Load, Setup, System
from ironbench.records.described import EngineSettings, ideal_bytes, settings_of
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.study.bottleneck import Gain, TimeSpent
from ironbench.study.differences import Difference, differences

SPENT = {"log": (LOG_FLUSH,), "data": (DATA_READ, DATA_WRITE), "temp": (TEMP,), "client": (CLIENT,)}
"""For each part that can have zero latency, the parts of a transaction's time that disappear with its latency."""
SEEN_FROM = 0.01
"""Minimum share of a transaction's time for a part to count as a possible cause of a gain. Removing a smaller share
would gain about 1%, which is too little to detect."""
_READS, _READ_LATENCY = "device_reads_per_s{role=data}", "device_read_latency_s{role=data}"
_SETTINGS = "settings."


class PartVerdict(Enum):
    """Conclusion about a part, from the comparison with the configuration in which the part has zero latency."""

    NOT_MEASURED = "not measured"
    INCONCLUSIVE = "inconclusive"
    """The comparison is inconclusive."""
    UNAFFECTED = "unaffected"
    """There is no gain as large as the lab's margin."""
    SMALL = "small"
    """There is a gain, but it may be smaller than the margin."""
    UNSEEN = "unseen"
    """There is a gain, but the part took no time in the baseline, so the gain has another cause."""
    MEMORY = "memory"
    """There is a gain, but it may come from memory that was added to a limit."""
    DISTURBED = "disturbed"
    """The gain is above the margin, but other programs used more CPU time than server and client, which may explain the
    gain."""
    BOTTLENECK = "bottleneck"
    """The gain is above the margin. In addition, the part took time in the baseline, or the breakdown of time is
    unknown."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Facts about the configuration with which a zero-latency configuration is compared."""

    spent: TimeSpent | None = None
    reads: float | None = None
    """Number of device reads per transaction. Only files with tables and indexes count. The value is None if reads were
    not counted."""
    reads_s: float | None = None
    """Device time of these reads, in seconds per transaction."""

    @property
    def read_share(self) -> float | None:
        """Fraction of a transaction's time that is spent on device reads. None if unknown."""
        if self.spent is None or self.reads_s is None or not self.spent.total_s:
            return None
        return self.reads_s / self.spent.total_s

    @property
    def cached(self) -> bool:
        """Whether device reads take too little time to matter, for example because pages are in memory."""
        return self.read_share is not None and self.read_share < SEEN_FROM


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The measured gain from zero-latency parts, and what the gain shows about these parts."""

    parts: tuple[str, ...]
    """The parts: `log`, `data`, `temp` or `client`. There are several if they were given zero latency together."""
    speedup: float
    """The configuration's speed as a multiple of the baseline's speed. A higher value is always better, even if lower
    values of the metric are better. NaN if there is no complete block."""
    low: float
    high: float
    verdict: PartVerdict
    is_bottleneck: bool | None
    """Whether the parts cost more time than the lab's margin, or None if this is inconclusive."""
    finding: Finding
    seen: tuple[str, ...]
    """The parts that took time in the baseline. If the baseline's time was not observed, all of the parts."""
    shares: Mapping[str, float]
    """For each part, its share of the baseline's time per transaction. Empty if the time was not observed."""
    cached_reads: float | None = None
    """Number of device reads per transaction in the baseline. Only set if `data` is one of the parts and the reads took
    almost no time."""
    read_share: float = 0.0
    """Fraction of a transaction's time that these reads took on the device."""
    besides: tuple[Difference, ...] = ()
    """Engine settings that changed because the parts were made zero-latency, with their values before and after."""
    added_bytes: int = 0
    """Bytes by which the memory limit was raised, because files are now in memory. The engine can also use this memory
    to cache data."""
    on_device: bool = False
    """Whether the files were on a zero-latency device. The I/O path of an emulated device takes about 20 µs
    (docs/adr/0014), and more on a busy machine, so a fast real device may gain more. Files in memory do not have this
    overhead."""
    left: float | None = None
    """Share of a transaction's time that the parts still took on the zero-latency device. None if unknown."""
    predicted: Gain | None = None
    """Gain that the time shares predict for those of the parts that took time in the baseline. None if unknown."""
    taken: float = 0.0
    """`LimitingResource.taken` of the baseline."""


def ceilings(
    findings: Sequence[Finding],
    lab: Lab,
    baselines: Mapping[str, Baseline] | None = None,
    facts: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Ceiling]:
    """Returns a `Ceiling` for each finding whose configuration differs from its baseline only in zero-latency parts.

    `baselines` and `facts` have configuration names as keys. `facts`: values as from `differences.facts`.
    """
    results = []
    for finding in findings:
        cell, baseline = lab.setup(finding.cell), lab.setup(finding.baseline)
        free, before_free = cell.system.zero_latency_parts, baseline.system.zero_latency_parts
        more = tuple(part for part in free if part not in before_free)
        lost = set(before_free) - set(free)
        if more and not lost and _beside(cell, more) == _beside(baseline, more):
            known = (baselines or {}).get(finding.baseline, Baseline())
            before, after = ((facts or {}).get(name, {}) for name in (finding.baseline, finding.cell))
            besides = _besides(before, after, settings_of(cell.system.engine))
            found = ceiling(finding, more, known, _added(cell, more), besides)
            if any(map(cell.system.on_zero_latency_device, more)):
                spent = (baselines or {}).get(finding.cell, Baseline()).spent
                left = sum(spent.share(name) for part in more for name in SPENT[part]) if spent else None
                found = replace(found, on_device=True, left=left)
            results.append(found)
    return results


def measured_limit(spent: TimeSpent, measured: Sequence[Ceiling]) -> Ceiling | None:
    """Decides whether a measured gain or the time shares show what limits this configuration. Returns the measured
    gain, or None if the time shares show it. A measured gain in throughput takes precedence if the time shares name no
    resource, or if it is larger than the gain that they predict for the resource. If a share s of the time is removed,
    this prediction is a factor of 1 / (1 − s) (Amdahl, AFIPS 1967).
    """
    gains = [
        one
        for one in measured
        if one.finding.baseline == spent.cell
        and one.verdict is PartVerdict.BOTTLENECK
        and catalogue.metric(one.finding.metric).better == "higher"
    ]
    best = max(gains, key=lambda one: one.low, default=None)
    if best is None:
        return None
    return best if not spent.limit.resource or best.speedup * (1 - spent.limit.share) > 1 else None


def baseline_of(spent: TimeSpent | None, records: Sequence[Record]) -> Baseline:
    """Describes a baseline. `records`: the configuration's comparable trials."""
    counted = [one.metrics for one in records if _READS in one.metrics and one.metrics.get("throughput")]
    if not counted or any(one[_READS] and _READ_LATENCY not in one for one in counted):
        return Baseline(spent)
    reads = [one[_READS] / one["throughput"] for one in counted]
    seconds = [count * one.get(_READ_LATENCY, 0.0) for count, one in zip(reads, counted, strict=True)]
    return Baseline(spent, fmean(reads), fmean(seconds))


def _besides(before: Mapping[str, str], after: Mapping[str, str], engine: EngineSettings) -> tuple[Difference, ...]:
    """Returns the engine settings that differ, starting with the settings that a zero-latency part changes directly,
    such as the cache size. The user's own settings are equal in both configurations; `_beside` has checked this.
    """
    if not before or not after:
        return ()
    first = {name for names in engine.ideal.values() for name in names}
    rows = [row for row in differences([before, after]) if row.group == "engine" and row.name.startswith(_SETTINGS)]
    named = [replace(row, name=row.name.removeprefix(_SETTINGS)) for row in rows]
    return tuple(
        sorted((row for row in named if row.name not in engine.derived), key=lambda row: row.name not in first)
    )


def _added(setup: Setup, free: Collection[str]) -> int:
    if setup.system.memory_total_bytes is None:
        return 0
    return sum(needed for part, needed in ideal_bytes(setup.system).items() if part in free)


def _beside(setup: Setup, free: Collection[str]) -> tuple[System, Load, Choice]:
    """Returns system, load and work without all settings that ironbench changes to give these parts zero latency (see
    `plan.resolve`)."""
    system = replace(setup.system, label="", reference_score=None, ideal=())
    load, layout, settings = setup.cell.load, system.layout, dict(system.settings)
    if (limit := system.memory_total_bytes) is not None:  # the limit that the user declared
        system = replace(system, memory_total_bytes=limit - sum(ideal_bytes(setup.system).values()))
    if "client" in free:
        system, load = replace(system, client_cpus=None), replace(load, threads=0, think_time_s=0.0)
    if "data" in free:
        system, load = replace(system, memory_bytes=None, memory_total_bytes=None), replace(load, cache="")
    decided = settings_of(system.engine).ideal
    for name in [name for part in free for name in decided.get(part, ())]:
        settings.pop(name, None)
    layout = layout.without({"log", "temp"}.intersection(free))
    return replace(system, layout=layout, settings=settings), load, setup.choice


def ceiling(
    finding: Finding,
    parts: Sequence[str],
    baseline: Baseline | None = None,
    added_bytes: int = 0,
    besides: Sequence[Difference] = (),
) -> Ceiling:
    """Judges one finding. `parts`: parts that have zero latency in the finding's configuration and not in its baseline.
    `added_bytes`: bytes by which the memory limit was raised. The server can cache data in the unused part of this
    memory. This may explain a gain.
    """
    known = baseline or Baseline()
    spent = known.spent
    shares = {part: sum(spent.share(name) for name in SPENT[part]) for part in parts} if spent else {}
    seen = tuple(part for part in parts if spent is None or _took_time(part, spent, known.cached))
    taken = spent.limit.taken if spent else 0.0
    if finding.ratios:
        speedup, low, high = _as_speedup(finding)
        verdict = _verdict(finding, low, high, bool(seen), bool(added_bytes), bool(taken))
    else:
        speedup, low, high, verdict = math.nan, 0.0, math.inf, PartVerdict.NOT_MEASURED
    return Ceiling(
        parts=tuple(parts),
        speedup=speedup,
        low=low,
        high=high,
        verdict=verdict,
        is_bottleneck={PartVerdict.BOTTLENECK: True, PartVerdict.UNAFFECTED: False}.get(verdict),
        finding=finding,
        seen=seen,
        shares=shares,
        cached_reads=known.reads if "data" in parts and known.cached else None,
        read_share=known.read_share or 0.0,
        besides=tuple(besides),
        added_bytes=added_bytes,
        predicted=spent.gain([name for part in seen for name in SPENT[part]]) if spent and seen else None,
        taken=taken,
    )


def _took_time(part: str, spent: TimeSpent, cached: bool) -> bool:
    """Returns whether a part took time in the baseline. For `data`, reads do not count if they are served from the page
    cache."""
    names = (DATA_WRITE,) if part == "data" and cached else SPENT[part]
    return sum(spent.share(name) for name in names) >= SEEN_FROM


def _verdict(finding: Finding, low: float, high: float, seen: bool, more_memory: bool, taken: bool) -> PartVerdict:
    """Returns the verdict according to the finding's conclusion, which accounts for blocks, interim analyses and
    multiple comparisons."""
    margin = 1 + finding.margin
    told = finding.blocks >= LEAST_BLOCKS and not finding.barred and not finding.changed
    if finding.conclusion is Conclusion.CANNOT_TELL and not (told and high <= margin):
        return PartVerdict.INCONCLUSIVE
    if finding.conclusion is Conclusion.EQUIVALENT or high <= margin:
        return PartVerdict.UNAFFECTED
    if not seen:
        return PartVerdict.UNSEEN
    if more_memory:
        return PartVerdict.MEMORY if finding.conclusion is not Conclusion.CANNOT_TELL else PartVerdict.INCONCLUSIVE
    if low < margin:
        return PartVerdict.SMALL
    return PartVerdict.DISTURBED if taken else PartVerdict.BOTTLENECK


def _as_speedup(finding: Finding) -> tuple[float, float, float]:
    if catalogue.metric(finding.metric).better != "lower":
        return finding.ratio, finding.low, finding.high
    return _inverse(finding.ratio), _inverse(finding.high), _inverse(finding.low)


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf
