"""Words for the bottleneck of a configuration, and for the gain that was measured with a zero-latency device."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench import units
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.lab import NOTHING_ELSE, Configuration
from ironbench.model.observer import CONCURRENCY
from ironbench.report.facts import fact
from ironbench.report.numbers import confidence, number
from ironbench.report.wording.answers.ratios import change, change_bounds
from ironbench.report.wording.registry import text
from ironbench.report.wording.terms import configuration
from ironbench.study.bottleneck import RESOURCES, Gain, TimeSpent
from ironbench.study.ceiling import SPENT, Ceiling, PartVerdict, measured_limit
from ironbench.words import counted, in_percent, listed, roughly, upper_first

_ZERO_LATENCY = {
    "log": "zero-latency WAL",
    "data": "all data cached",
    "temp": "zero-latency temporary files",
    "client": "an unconstrained client",
}
_PART = {"log": "WAL", "data": "data I/O", "temp": "temporary files", "client": "the client"}
_FILES = {**_PART, "data": "data"}
_SETTINGS_NAMED = 3
_MOST_PERCENT = 2.0
"""Gains below this factor are written as percentages, larger ones as multiples."""
_NO_GAIN = 1.05
"""An estimate below this factor is written as no gain, because `1x` says nothing."""


def _files_on_device(parts: Sequence[str]) -> str:
    """Names the files on zero-latency devices: `for WAL and temporary files`. A statement about real devices applies
    only to these files."""
    return f"for {listed([_FILES[part] for part in parts])}"


def _zero_latency_parts(one: Ceiling) -> str:
    """Lists the parts of the system that have zero latency, such as `zero-latency WAL`."""
    return listed([_ZERO_LATENCY[part] for part in one.parts])


def _names(parts: Sequence[str]) -> str:
    """Lists parts of the system: `WAL and data I/O`."""
    return listed([_PART[part] for part in parts])


def limit_sentence(spent: TimeSpent, measured: Sequence[Ceiling] = ()) -> str:
    """Names the bottleneck of a configuration, and the gain in throughput without it: `The bottleneck is WAL. With
    zero-latency WAL, throughput is 26% higher (95% CI 18% to 35%, 6 paired repeats).` If no configuration has zero
    latency for this resource, the gain is an estimate. If the trials were profiled, the sentence also names the
    functions with most of this time."""
    functions = f" {upper_first(text(spent.functions))}." if spent.functions else ""
    return f"{_limit_and_gain(spent, measured)}{functions}"


def _limit_and_gain(spent: TimeSpent, measured: Sequence[Ceiling]) -> str:
    limit = spent.limit
    why = f"{upper_first(text(limit.note)).rstrip('.')}."
    if decisive := measured_limit(spent, measured):
        gain = f"With {_zero_latency_parts(decisive)}, throughput is {_interval(decisive)}."
        return f"The bottleneck is {_names(decisive.seen)}. {gain}"
    of_it = [one for one in measured if one.finding.baseline == spent.cell and _only_of(one, limit.resource)]
    if of_it:
        return f"{why} With {_zero_latency_parts(of_it[0])}, throughput is {_interval(of_it[0])}."
    if limit.gain is None:
        return why
    if limit.resource == CONCURRENCY:
        return f"{why} Estimate: with all cores busy, up to {roughly(limit.gain.high)}x the throughput."
    if limit.gain.cores_busy:
        if limit.gain.high < _NO_GAIN:
            return f"{why} Estimate: without this bottleneck, the throughput is the same, because all cores are busy."
        most = f"up to {roughly(limit.gain.high)}x the throughput, with all cores busy"
        return f"{why} Estimate: without this bottleneck, {most}."
    return f"{why} Estimate: without this bottleneck, {_range(limit.gain)} throughput."


def _only_of(one: Ceiling, resource: str) -> bool:
    if len(one.parts) > 1 or one.added_bytes or one.verdict is PartVerdict.NOT_MEASURED or resource not in RESOURCES:
        return False
    return set(RESOURCES[resource]) <= set(SPENT[one.parts[0]])


def _range(gain: Gain) -> str:
    if math.isinf(gain.high):
        return f"at least {roughly(gain.low)}x the"
    if gain.high < _MOST_PERCENT:
        low, high = in_percent(gain.low - 1), in_percent(gain.high - 1)
        return f"{high} more" if low == high else f"{low} to {high} more"
    low, high = roughly(gain.low), roughly(gain.high)
    return f"{high}x the" if low == high else f"{low}x to {high}x the"


def ceiling_sentence(one: Ceiling, where: Configuration = NOTHING_ELSE) -> str:
    """States the gain that was measured with zero latency, and what follows from it: `With zero-latency WAL, throughput
    is 26% higher (95% CI 18% to 35%, 6 paired repeats). No real device for WAL can bring a larger gain. WAL is a
    bottleneck.`

    Further sentences name other settings that changed, and state whether a faster disk could speed up reads. `where`:
    the values of other factors with which the gain was measured.
    """
    if one.verdict is PartVerdict.NOT_MEASURED:
        return f"The throughput cost of {_names(one.parts)} was not measured.{_need(one)}"
    at = f" at {configuration(where)}" if where.values else ""
    sentences = [
        f"With {_zero_latency_parts(one)}{at}, throughput is {_interval(one)}.",
        _upper_bound(one),
        _settings(one),
        _verdict(one),
        _reads(one),
    ]
    return " ".join(filter(None, sentences))


def unexplained(one: Ceiling) -> str:
    """States that the time in the wait classes does not explain the whole measured gain. Returns an empty text if it
    does, or if this is unknown: `The gain is larger than the time in the wait classes explains (WAL 6%), so part of the
    gain has another cause.`"""
    if (
        one.predicted is None
        or one.verdict not in (PartVerdict.SMALL, PartVerdict.DISTURBED, PartVerdict.BOTTLENECK)
        or one.low <= one.predicted.high
    ):
        return ""
    shares = listed([f"{_PART[part]} {in_percent(one.shares[part])}" for part in one.seen])
    return (
        f"The gain is larger than the time in the wait classes explains ({shares}), so part of the gain has "
        "another cause."
    )


def _upper_bound(one: Ceiling) -> str:
    """States whether a real device could bring a larger gain. Returns an empty text if there is no gain, or if the part
    is not on a device."""
    if one.low <= 1 or "client" in one.parts:
        return ""
    if not one.on_device:
        return f"No real device {_files_on_device(one.parts)} can bring a larger gain."
    if one.left is None or one.left <= one.finding.margin:
        return f"A real device {_files_on_device(one.parts)} can hardly bring a larger gain."
    return (
        f"A real device {_files_on_device(one.parts)} with a faster I/O path could bring a larger gain: on the "
        f"zero-latency device, {_names(one.parts)} still took {in_percent(one.left)} of transaction time."
    )


def _interval(one: Ceiling) -> str:
    """Formats a gain with its confidence interval and the number of blocks: `26% higher (95% CI 18% to 35%, 6 paired
    repeats)`."""
    known = "no confidence interval"
    if one.finding.blocks >= LEAST_BLOCKS_SHOWN:
        known = f"{confidence(one.finding.confidence)} CI {change_bounds(one.low, one.high, one.speedup)}"
    seen = f"{known}, {counted(one.finding.blocks, 'paired repeat')}"
    if one.finding.changed and not one.finding.barred:
        seen += f"; {text(one.finding.changed)}"
    return f"{change(one.speedup, '')} ({seen})"


def _settings(one: Ceiling) -> str:
    """Names other settings that differ between the two configurations, because they may explain part of the gain."""
    if not one.besides or one.verdict not in (
        PartVerdict.SMALL,
        PartVerdict.UNSEEN,
        PartVerdict.DISTURBED,
        PartVerdict.BOTTLENECK,
    ):
        return ""
    changes = [
        f"{row.name} from {fact(row.name, row.values[0])} to {fact(row.name, row.values[1])}"
        for row in one.besides[:_SETTINGS_NAMED]
    ]
    if more := one.besides[_SETTINGS_NAMED:]:
        changes.append(counted(len(more), "other setting"))
    return f"This configuration also changes {listed(changes)}, which may explain part of the gain."


def _verdict(one: Ceiling) -> str:
    every, finding = _names(one.parts), one.finding
    if one.verdict is PartVerdict.INCONCLUSIVE:
        why = f": {text(finding.barred)}" if finding.barred else ""
        return f"The measurement does not show whether {every} {_is(one.parts)} a bottleneck{why}.{_need(one)}"
    if one.verdict is PartVerdict.UNAFFECTED:
        return f"{upper_first(every)} {_is(one.parts)} not the bottleneck."
    if one.verdict is PartVerdict.UNSEEN:
        return f"The baseline spent no time on {every}, so the gain must have another cause."
    if one.verdict is PartVerdict.MEMORY:
        return (
            f"The measurement does not show whether {every} or memory is the bottleneck: the memory limit was "
            f"{units.memory(one.added_bytes)} higher, and the unused part of the additional memory could cache "
            "data."
        )
    seen = _names(one.seen)
    if one.verdict is PartVerdict.SMALL:
        small = (
            f"{upper_first(seen)} {_costs(one.seen)} some throughput. The measurement does not show whether the cost "
            f"is more than {in_percent(finding.margin)} of throughput."
        )
        return f"{small}{_unseen(one)}"
    if one.verdict is PartVerdict.DISTURBED:
        return (
            f"The measurement does not show whether {seen} would be a bottleneck without other programs on the "
            f"machine: other programs used {in_percent(one.taken)} of the CPU time, which may explain part of the "
            f"gain.{_unseen(one)}"
        )
    return f"{upper_first(seen)} {_is(one.seen)} a bottleneck.{_unseen(one)}"


def _need(one: Ceiling) -> str:
    return f" To decide: {text(one.finding.advice)}." if one.finding.advice else ""


def _unseen(one: Ceiling) -> str:
    rest = [part for part in one.parts if part not in one.seen]
    return f" The baseline spent no time on {_names(rest)}." if rest else ""


def _reads(one: Ceiling) -> str:
    if one.cached_reads is None:
        return ""
    if not one.cached_reads:
        return "All pages were cached and the device served no reads, so a faster disk cannot speed up reads."
    count = f"{number(one.cached_reads)} per transaction"
    share = f"Device reads ({count}) took {in_percent(one.read_share)} of transaction time"
    return f"{share}, so a faster disk can hardly speed up reads."


def _is(parts: Sequence[str]) -> str:
    return "is" if len(parts) == 1 and parts[0] != "temp" else "are"


def _costs(parts: Sequence[str]) -> str:
    return "costs" if _is(parts) == "is" else "cost"
