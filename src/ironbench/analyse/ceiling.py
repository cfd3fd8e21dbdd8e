"""Measures how much faster a system runs with a part made as good as free.

A share of the time only bounds what can be gained (Amdahl), for the queue moves elsewhere when a part becomes fast. So
the part is made free (`System.ideal`) in a cell of its own and compared with the same cell without: the verdict is that
comparison's, with its interval.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ironbench import catalogue, engines, units
from ironbench.analyse.bottleneck import RESOURCES, TimeSpent
from ironbench.model.finding import LEAST_BLOCKS_SHOWN, Conclusion, Finding
from ironbench.model.lab import Lab
from ironbench.model.observer import CLIENT, DATA_READ, DATA_WRITE, LOG_FLUSH, RUN_QUEUE, TEMP
from ironbench.model.system import Choice, Load, Setup, System
from ironbench.stats.multiplicity import LEAST_BLOCKS
from ironbench.words import counted, grouped, in_percent, listed, roughly_times

_FREE = {
    "log": "a free log",
    "data": "all data in its cache",
    "temp": "free temporary files",
    "client": "a client that is held back by nothing",
}
_PART = {"log": "the log", "data": "reading data", "temp": "temporary files", "client": "the client"}
_SPENT = {"log": (LOG_FLUSH,), "data": (DATA_READ, DATA_WRITE), "temp": (TEMP,), "client": (CLIENT,)}
"""Ideal part → the parts of a transaction's time that go with it."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a part costs at most, with the finding that shows it."""

    parts: tuple[str, ...]
    """`log`, `data`, `temp`, `client`; more than one when they were made free together."""
    speedup: float
    """How many times as fast, whichever way the metric points; NaN without a complete block."""
    low: float
    high: float
    holds_back: bool | None
    """Whether it costs more than the lab's margin; None: cannot tell."""
    sentence: str
    finding: Finding
    added_bytes: int = 0
    """By which a limit on all memory grew for what lies in memory now: room for cached data, too."""
    bound: str = ""
    """The end of the sentence: the gain that the parts' share of the time predicts; empty where that is unknown."""

    @property
    def name(self) -> str:
        """`the log`, or of several parts all."""
        return listed([_PART[part] for part in self.parts])

    @property
    def free(self) -> str:
        """`a free log`, or of several parts all."""
        return listed([_FREE[part] for part in self.parts])


def ceilings(findings: Sequence[Finding], lab: Lab, spent: Mapping[str, TimeSpent] | None = None) -> list[Ceiling]:
    """Of every finding whose cell differs from its baseline in ideal parts alone. `spent`: by name of cell."""
    results = []
    for finding in findings:
        cell, baseline = lab.setup(finding.cell), lab.setup(finding.baseline)
        more = tuple(part for part in cell.system.ideal if part not in baseline.system.ideal)
        lost = set(baseline.system.ideal) - set(cell.system.ideal)
        if more and not lost and _beside(cell, more) == _beside(baseline, more):
            results.append(ceiling(finding, more, (spent or {}).get(finding.baseline), _added(cell, more)))
    return results


def _added(setup: Setup, free: Collection[str]) -> int:
    if setup.system.memory_total_bytes is None:
        return 0
    return sum(needed for part, needed in _needed_bytes(setup).items() if part in free)


def _needed_bytes(setup: Setup) -> dict[str, int]:
    """By free part, of memory; empty where this version does not know the engine, as in a lab from elsewhere."""
    engine = engines.find(setup.system.engine)
    return engine.ideal_bytes(setup.system) if engine else {}


def _beside(setup: Setup, free: Collection[str]) -> tuple[System, Load, Choice]:
    """What is measured, without what making those parts free decides (`plan.resolve` and the engines)."""
    system = replace(setup.system, label="", reference_score=None, ideal=())
    load, layout, settings = setup.cell.load, system.layout, dict(system.settings)
    if (limit := system.memory_total_bytes) is not None:  # as it was declared
        system = replace(system, memory_total_bytes=limit - sum(_needed_bytes(setup).values()))
    if "client" in free:
        system, load = replace(system, client_cpus=None), replace(load, threads=0, think_time_s=0.0)
    if "data" in free:
        system, load = replace(system, memory_bytes=None, memory_total_bytes=None), replace(load, cache="")
    engine = engines.find(system.engine)
    decided = engine.traits.ideal_settings if engine else {}
    for name in [name for part in free for name in decided.get(part, ())]:
        settings.pop(name, None)
    if in_memory := {"log", "temp"}.intersection(free):
        layout = layout.at(dict.fromkeys(in_memory))
    return replace(system, layout=layout, settings=settings), load, setup.choice


def ceiling(finding: Finding, parts: Sequence[str], spent: TimeSpent | None = None, added_bytes: int = 0) -> Ceiling:
    """`parts`: what was free in the finding's cell and not in its baseline. `spent`: of the baseline.

    `added_bytes`: by which a limit on all memory grew. What the parts leave of it caches data, so that a gain may be
    that memory's; without a gain they cost nothing all the same.
    """
    speedup, low, high = _as_speedup(finding)
    name = listed([_PART[part] for part in parts])
    free = listed([_FREE[part] for part in parts])
    if not finding.ratios:
        return Ceiling(tuple(parts), math.nan, 0.0, math.inf, None, f"What {name} costs was not measured.", finding)
    holds_back, verdict = _verdict(finding, low, high, name, "is" if len(parts) == 1 and parts[0] != "temp" else "are")
    bound = _bound(parts, spent, speedup, low)
    if added_bytes and holds_back is not False and finding.conclusion is not Conclusion.CANNOT_TELL:
        holds_back, bound = None, ""
        verdict = (
            f"cannot tell whether {name} or memory holds it back, since with {free} the limit on all memory was "
            f"{units.memory(added_bytes)} higher, and what was left of that could hold data"
        )
    known = f"{_times(low)} to {_times(high)}" if finding.blocks >= LEAST_BLOCKS_SHOWN else "no interval"
    doubt = f"{known}, {counted(finding.blocks, 'block')}"
    if finding.changed and not finding.barred:
        doubt += f"; the ratio {finding.changed}"
    sentence = f"With {free} it would run {_times(speedup)} × as fast ({doubt}): {verdict}.{bound}"
    return Ceiling(
        parts=tuple(parts),
        speedup=speedup,
        low=low,
        high=high,
        holds_back=holds_back,
        sentence=sentence,
        finding=finding,
        added_bytes=added_bytes,
        bound=bound,
    )


def _verdict(finding: Finding, low: float, high: float, name: str, be: str) -> tuple[bool | None, str]:
    """Follows the finding's conclusion, which accounts for blocks, looks and comparisons."""
    margin = 1 + finding.margin
    told = finding.blocks >= LEAST_BLOCKS and not finding.barred and not finding.changed
    if finding.conclusion is Conclusion.CANNOT_TELL and not (told and high <= margin):
        need = f"; to tell: {finding.advice}" if finding.advice else ""
        why = f": {finding.barred}" if finding.changed and finding.barred else ""
        return None, f"cannot tell whether {name} {'holds' if be == 'is' else 'hold'} it back{why}{need}"
    if finding.conclusion is Conclusion.EQUIVALENT or high <= margin:
        return False, f"{name} {be} not the bottleneck"
    if low >= margin:
        return True, f"{name} {'holds' if be == 'is' else 'hold'} it back"
    costs = "costs" if be == "is" else "cost"
    return None, f"{name} {costs} something; whether more than {in_percent(finding.margin)} is unknown"


def _as_speedup(finding: Finding) -> tuple[float, float, float]:
    if catalogue.metric(finding.metric).better != "lower":
        return finding.ratio, finding.low, finding.high
    return _inverse(finding.ratio), _inverse(finding.high), _inverse(finding.low)


def _inverse(value: float) -> float:
    return 1 / value if value else math.inf


def reconciled(spent: TimeSpent, measured_ceilings: Sequence[Ceiling]) -> TimeSpent:
    """Where the time goes, without a bound that a measured ceiling of the same part has passed."""
    limit = spent.limit
    passed = [
        one
        for one in measured_ceilings
        if one.finding.baseline == spent.cell
        and not one.added_bytes
        and one.speedup > limit.at_most
        and any(set(_SPENT[part]) & set(RESOURCES.get(limit.resource, ())) for part in one.parts)
    ]
    if not passed or not limit.bound:
        return spent
    most = max(one.speedup for one in passed)
    explained, measured = roughly_times(limit.at_most), roughly_times(most)
    words = f"Its share alone explains {explained} as much; with it free, {measured} was measured."
    return replace(spent, limit=replace(limit, sentence=limit.sentence.removesuffix(limit.bound) + words, bound=words))


def _bound(parts: Sequence[str], spent: TimeSpent | None, speedup: float, low: float) -> str:
    """The gain that the part's share of the time predicts, compared with the measured one.

    A share bounds the gain only while everything else takes as long as before (Amdahl). Waits elsewhere that the part
    caused, such as for locks that are held through a flush, go with it, so more may be gained.
    """
    if spent is None:
        return ""
    names = [name for part in parts for name in _SPENT[part]]
    share = in_percent(sum(spent.share(name) for name in names))
    queue = " and the waits for a core" if spent.share(RUN_QUEUE) >= 0.05 else ""
    most = spent.at_most(names)
    if speedup <= most:
        return f" By its share of the time ({share}{queue}) at most {_times(most)} × was to be expected."
    why = "waits elsewhere that it caused went with it" if low > most else "the interval holds that, too"
    return f" Its share of the time ({share}{queue}) alone explains {_times(most)} ×: {why}."


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 10 else grouped(value)
