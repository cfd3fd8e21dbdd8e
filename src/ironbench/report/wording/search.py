"""Words for the results of searches for the best load."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench import catalogue, units
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Strings, in_unit, names
from ironbench.words import counted, listed

Limits = Sequence[tuple[str, float]]
"""Pairs of a metric and its limit. Records of earlier versions do not contain them."""
Refusals = Sequence[tuple[int, str, float]]
"""Confirmation trials that did not confirm a load. Each tuple contains the load, the reason, and the measured value.
The reason is `rate`, `failed`, or the metric whose limit was exceeded."""


def search_subject(of: str) -> str:
    """Returns words for what a search varies. `of`: `clients` or `rate`. For `clients`, returns `number of clients`."""
    return "number of clients" if of == "clients" else of


@wording("search-failed")
def search_failed(of: str, low: int, high: int, at: int) -> str:
    """Example with of='number of clients', low=1, high=128, at=1: `the search for the best number of clients from 1 to
    128 has no result, because every trial with 1 client failed`."""
    return (
        f"the search for the best {search_subject(of)} from {low} to {high} has no result, because every trial "
        f"{_with(of, at)} failed"
    )


@wording("search-none-sustained")
def none_sustained(
    of: str,
    tried: Sequence[int],
    too_few: Strings = "",
    percentiles: Sequence[Sequence[float]] = (),
    longer_s: float = 0.0,
) -> str:
    """Example with of='rate', tried=(20, 40): `no rate was sustained (tried: 20, 40)`."""
    none = f"no {search_subject(of)} was sustained ({_tried(tried)})"
    return "; ".join(filter(None, (none, _doubt(too_few, percentiles, longer_s))))


@wording("search-none-within-limit")
def none_within_limit(
    of: str,
    tried: Sequence[int],
    limit: str,
    exceeds_limit: bool = True,
    too_few: Strings = "",
    percentiles: Sequence[Sequence[float]] = (),
    longer_s: float = 0.0,
    limits: Limits = (),
    surely: bool = True,
) -> str:
    """Example with of='clients', tried=(1,), limit='response_time_p99_s', exceeds_limit=True,
    limits=(('response_time_p99_s', 0.05),): `the limit on response_time_p99_s (50 ms) was exceeded at every number of
    clients (tried: 1)`.

    `surely`: the value that records of earlier builds contain instead of `exceeds_limit`.
    """
    doubt = _doubt(too_few, percentiles, longer_s)
    limit = _limit(limit, limits)
    if exceeds_limit and surely and not doubt:
        return f"the limit on {limit} was exceeded at every {search_subject(of)} ({_tried(tried)})"
    why = doubt or "the trials at the lowest value vary too much"
    values = f"any {search_subject(of)} ({_tried(tried)}; {why})"
    return f"inconclusive: the limit on {limit} was not shown to be met at {values}"


@wording("search-unconfirmed")
def search_unconfirmed(
    of: str,
    tried: Sequence[int],
    too_few: Strings = "",
    percentiles: Sequence[Sequence[float]] = (),
    longer_s: float = 0.0,
    limits: Limits = (),
    refused: Refusals = (),
) -> str:
    """Example with of='rate', tried=(200, 381), limits=(('response_time_p99_s', 0.05),), refused=((381,
    'response_time_p99_s', 0.0526),): `inconclusive: no rate was confirmed (limit: response_time_p99_s at most 50 ms); a
    confirmation trial at 381/s exceeded the limit (response_time_p99_s 52.6 ms); repeat the search with longer trials,
    or while fewer other programs use the machine`."""
    within = listed([f"{metric} at most {_value(metric, most)}" for metric, most in limits])
    none = f"inconclusive: no {search_subject(of)} was confirmed" + (f" (limit: {within})" if within else "")
    why = [_refused(of, refused, limits)] if refused else [] if percentiles else ["the confirmation trials are missing"]
    again = "" if percentiles else "repeat the search with longer trials, or while fewer other programs use the machine"
    return "; ".join(filter(None, (none, *why, again, _doubt(too_few, percentiles, longer_s))))


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
    longer_s: float = 0.0,
    limits: Limits = (),
    confirmations: int = 0,
    completed: float = 0.0,
    measured: Limits = (),
    refused: Refusals = (),
    over_below: Sequence[int] = (),
) -> str:
    """Example with of='clients', tried=(1, 8), point=8, throughput=940.0, trials=12, low=6, high=8,
    ended_by='response_time_p99_s', ended_at=10, limits=(('response_time_p99_s', 0.05),): `best number of clients: 8,
    with 940/s, found in 12 trials; no difference was shown between 6 and 8 clients; the limit on response_time_p99_s
    (50 ms) is exceeded with 10 clients`."""
    best = f"best {search_subject(of)}: {_load(of, point)}"
    if of == "rate":
        done = f"completed: {_measured(throughput)} in {trials} trials"
        if confirmations:
            done = (
                f"completed: {_measured(completed)} in {counted(confirmations, 'confirmation trial')}, after a search "
                f"of {trials} trials"
            )
        parts = [f"{best} (target rate; {done})"]
    else:
        parts = [f"{best}, with {_measured(throughput)}, found in {trials} trials"]
    parts += [_within(metric, value, limits) for metric, value in measured]
    if low != high:
        clients = "" if of == "rate" else " clients"
        parts.append(f"no difference was shown between {_load(of, low)} and {_load(of, high)}{clients}")
    if ended_by == "range":
        parts.append(f"throughput still rises {_with(of, ended_at)}, the end of the searched range")
    elif ended_by == "rate":
        parts.append(f"{_load(of, ended_at)} was not sustained")
    elif ended_by:
        parts.append(f"the limit on {_limit(ended_by, limits)} is exceeded {_with(of, ended_at)}")
    if refused:
        parts.append(_refused(of, refused, limits))
    if over_below:
        below = listed([_with(of, one) for one in over_below])
        if limits:
            parts.append(f"the limits were not met {below}, although they were met {_with(of, point)}, a higher load")
        else:
            parts.append(f"the rate was not sustained {below}, although it was sustained {_with(of, point)}")
    return "; ".join(filter(None, (*parts, _doubt(too_few, percentiles, longer_s))))


@wording("search-ladder")
def search_ladder() -> str:
    """Example: `next higher value`."""
    return "next higher value"


@wording("search-repeat")
def search_repeat() -> str:
    """Example: `repeat`."""
    return "repeat"


@wording("search-near-limit")
def search_near_limit() -> str:
    """Example: `a repeat to decide whether the limit is met`."""
    return "a repeat to decide whether the limit is met"


@wording("search-best-undecided")
def search_best_undecided() -> str:
    """Example: `a repeat to decide whether this value is the best`."""
    return "a repeat to decide whether this value is the best"


@wording("search-between")
def search_between(low: int, high: int) -> str:
    """Example with low=4, high=8: `between 4 and 8`."""
    return f"between {low} and {high}"


@wording("search-confirm")
def search_confirm(trials: int) -> str:
    """Example with trials=3: `3 new trials to confirm the result`."""
    return f"{trials} new trials to confirm the result"


def _load(of: str, point: int) -> str:
    """Formats a number of clients, or a target rate with its unit. The unit shows which of the two it is."""
    return units.rate(point) if of == "rate" else str(point)


def _with(of: str, point: int) -> str:
    """Examples: `at 500/s`, `with 8 clients`."""
    return f"at {units.rate(point)}" if of == "rate" else f"with {counted(point, 'client')}"


def _measured(per_second: float) -> str:
    """Formats a measured rate with three digits, as tables do."""
    return f"{units.number(per_second)}/s"


def _limit(metric: str, limits: Limits) -> str:
    """Example: `response_time_p99_s (50.0 ms)`. Records of earlier versions contain no limits, so the value is left
    out."""
    most = dict(limits).get(metric)
    return metric if most is None else f"{metric} ({_value(metric, most)})"


def _within(metric: str, value: float, limits: Limits) -> str:
    most = dict(limits).get(metric)
    limit = "" if most is None else f" (limit {_value(metric, most)})"
    return f"{metric} {_value(metric, value)}{limit}"


def _refused(of: str, refused: Refusals, limits: Limits) -> str:
    """Example: `a confirmation trial at 381/s exceeded the limit (response_time_p99_s 52.6 ms)`."""
    texts = []
    for point, by, value in refused:
        if by == "rate":
            why = f"completed only {_measured(value)}"
        elif by == "failed":
            why = "failed"
        else:
            why = f"exceeded the limit ({by} {_value(by, value, dict(limits).get(by))})"
        texts.append(f"a confirmation trial {_with(of, point)} {why}")
    return listed(texts)


def _value(metric: str, value: float, other_than: float | None = None) -> str:
    """Formats the value of a metric. If the value would look equal to the limit `other_than`, it has more digits."""
    unit = catalogue.metric(metric).unit
    same = other_than is not None and in_unit(value, unit) == in_unit(other_than, unit)
    return in_unit(value, unit, 6 if same else 3)


def _tried(points: Sequence[int]) -> str:
    return f"tried: {', '.join(map(str, points))}"


def _doubt(too_few: Strings, percentiles: Sequence[Sequence[float]], longer_s: float) -> str:
    if not percentiles:
        return ""
    compared = f"the limit was compared with percentiles computed from too few {names(too_few)}: {needed(percentiles)}"
    longer = f"; use trials of {units.span(math.ceil(longer_s))} or longer" if longer_s else ""
    return f"{compared}{longer}"
