"""Words for the results of searches for the best load."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Strings, names
from ironbench.words import grouped


@wording("search-failed")
def search_failed(of: str, low: int, high: int, at: int) -> str:
    """search failed: no result for clients in 1 to 128, because every trial at 1 failed"""
    return f"search failed: no result for {of} in {low} to {high}, because every trial at {at} failed"


@wording("search-none-sustained")
def none_sustained(
    of: str, tried: Sequence[int], too_few: Strings = "", percentiles: Sequence[Sequence[float]] = ()
) -> str:
    """no rate was sustained (tried: 20, 40)"""
    none = f"no {of} was sustained ({_tried(tried)})"
    return "; ".join(filter(None, (none, _doubt(too_few, percentiles))))


@wording("search-none-within-limit")
def none_within_limit(
    of: str,
    tried: Sequence[int],
    limit: str,
    surely: bool,
    too_few: Strings = "",
    percentiles: Sequence[Sequence[float]] = (),
) -> str:
    """limit on response_time_p99_s exceeded at every value of clients (tried: 1)"""
    doubt = _doubt(too_few, percentiles)
    if surely and not doubt:
        return f"limit on {limit} exceeded at every value of {of} ({_tried(tried)})"
    why = doubt or "trials at the lowest value vary too much"
    return f"inconclusive: the limit on {limit} was not shown to be met at any value of {of} ({_tried(tried)}; {why})"


@wording("search-best")
def search_best(
    of: str,
    tried: Sequence[int],
    point: int,
    throughput: float,
    trials: int,
    low: int,
    high: int,
    ended_by: str,
    ended_at: int,
    too_few: Strings = "",
    percentiles: Sequence[Sequence[float]] = (),
) -> str:
    """best clients: 8 with 940/s, from 12 trials; no difference shown between 6 and 8; 10 exceeds the limit on …"""
    parts = [f"best {of}: {point} with {grouped(throughput)}/s, from {trials} trials"]
    if low != high:
        parts.append(f"no difference shown between {low} and {high}")
    if ended_by == "range":
        parts.append(f"throughput still rises at {ended_at}, the end of the range")
    elif ended_by == "rate":
        parts.append(f"{ended_at} was not sustained")
    elif ended_by:
        parts.append(f"{ended_at} exceeds the limit on {ended_by}")
    return "; ".join(filter(None, (*parts, _doubt(too_few, percentiles))))


@wording("search-ladder")
def search_ladder() -> str:
    """next step up"""
    return "next step up"


@wording("search-repeat")
def search_repeat() -> str:
    """repeat"""
    return "repeat"


@wording("search-near-limit")
def search_near_limit() -> str:
    """repeat to decide whether the limit is met"""
    return "repeat to decide whether the limit is met"


@wording("search-best-undecided")
def search_best_undecided() -> str:
    """repeat to decide whether this value is the best"""
    return "repeat to decide whether this value is the best"


@wording("search-between")
def search_between(low: int, high: int) -> str:
    """between 4 and 8"""
    return f"between {low} and {high}"


def _tried(points: Sequence[int]) -> str:
    return f"tried: {', '.join(map(str, points))}"


def _doubt(too_few: Strings, percentiles: Sequence[Sequence[float]]) -> str:
    if not percentiles:
        return ""
    return f"the limit was compared with percentiles of too few {names(too_few)}, {needed(percentiles)}"
