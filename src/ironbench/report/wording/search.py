"""Words for the results of searches for the best load."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Strings, names
from ironbench.words import grouped


@wording("search-failed")
def search_failed(of: str, low: int, high: int, at: int) -> str:
    """no clients in 1 to 128: every trial at 1 failed"""
    return f"no {of} in {low} to {high}: every trial at {at} failed"


@wording("search-none-sustained")
def none_sustained(
    of: str, tried: Sequence[int], too_few: Strings = "", percentiles: Sequence[Sequence[float]] = ()
) -> str:
    """no rate of those tried is sustained (tried: 20, 40)"""
    none = f"no {of} of those tried is sustained ({_tried(tried)})"
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
    """no clients of those tried keeps the limit on response_time_p99_s (tried: 1)"""
    doubt = _doubt(too_few, percentiles)
    if surely and not doubt:
        return f"no {of} of those tried keeps the limit on {limit} ({_tried(tried)})"
    why = doubt or "trials vary too much to tell at the lowest"
    return f"inconclusive: no {of} was shown to keep the limit on {limit} ({_tried(tried)}; {why})"


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
    """best clients: 8 with 940/s, by 12 trials; 6 to 8 cannot be told apart; 10 breaks the limit on …"""
    parts = [f"best {of}: {point} with {grouped(throughput)}/s, by {trials} trials"]
    if low != high:
        parts.append(f"{low} to {high} cannot be told apart")
    if ended_by == "range":
        parts.append(f"throughput still rises at the end of the range, {ended_at}")
    elif ended_by == "rate":
        parts.append(f"{ended_at} is not sustained")
    elif ended_by:
        parts.append(f"{ended_at} breaks the limit on {ended_by}")
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
    """repeat to decide whether it keeps the limit"""
    return "repeat to decide whether it keeps the limit"


@wording("search-best-undecided")
def search_best_undecided() -> str:
    """repeat to decide whether it is the best"""
    return "repeat to decide whether it is the best"


@wording("search-between")
def search_between(low: int, high: int) -> str:
    """between 4 and 8"""
    return f"between {low} and {high}"


def _tried(points: Sequence[int]) -> str:
    return f"tried: {', '.join(map(str, points))}"


def _doubt(too_few: Strings, percentiles: Sequence[Sequence[float]]) -> str:
    if not percentiles:
        return ""
    return f"the limit was held against percentiles of too few {names(too_few)}, {needed(percentiles)}"
