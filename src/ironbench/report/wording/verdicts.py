"""Words for the outcomes of an author's claims, and for the reasons of a gate's decision."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench import units
from ironbench.model.note import Note
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.values import percent
from ironbench.words import counted, grouped

_LIMIT = {"confirmed": "within the limit", "refuted": "beyond the limit"}
_RANGE = {"confirmed": "inside", "refuted": "outside"}


@wording("value-against-limit")
def value_against_limit(verdict: str, low: float, high: float, unit: str, confidence: float, trials: int) -> str:
    """1.2 ms to 1.4 ms at 95 % confidence, 6 trials: within the limit"""
    place = _LIMIT.get(verdict, "partly beyond the limit; more trials narrow it")
    seen = f"{_value(low, unit)} to {_value(high, unit)} at {100 * confidence:.3g} % confidence"
    return f"{seen}, {trials} trials: {place}"


def _value(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value:.3g} s" if value >= 0.9995 else f"{value * 1e3:.3g} ms"
    if unit == "1/s":
        return units.rate(value)
    return f"{value:.4g}" if unit == "1" else f"{value:.4g} {unit}"


@wording("interval-against-range")
def interval_against_range(verdict: str, low: float, high: float, confidence: float) -> str:
    """the interval 1.180 to 1.350 at 95 % confidence lies inside the range"""
    seen = f"{_ratio(low)} to {_ratio(high)} at {100 * confidence:.3g} % confidence"
    return f"the interval {seen} lies {_RANGE.get(verdict, 'partly outside')} the range"


def _ratio(value: float) -> str:
    """Formats four significant digits: a bound of 0.000 would be useless."""
    return grouped(value) if 1000 <= value < math.inf else f"{value:#.4g}"


@wording("too-few-transactions")
def too_few_transactions(needs: Sequence[Sequence[float]]) -> str:
    """99 % needs 299"""
    return needed(needs)


@wording("too-few-trials")
def too_few_trials(trials: int, least: int) -> str:
    """2 of 3 trials that a confidence interval needs"""
    return f"{trials} of {least} trials that a confidence interval needs"


@wording("no-interval-at-look")
def no_interval_at_look() -> str:
    """no interval: this configuration decides nothing at this look"""
    return "no interval: this configuration decides nothing at this look"


@wording("rate-sustained")
def rate_sustained(trials: int, of: int, rate: float) -> str:
    """5 of 6 trials sustained 500/s"""
    return f"{trials} of {of} trials sustained {units.rate(rate)}"


@wording("not-compared")
def not_compared(cells: Sequence[str]) -> str:
    """log=disk and log=memory were not compared"""
    return f"{' and '.join(cells)} were not compared"


@wording("fewer-blocks")
def fewer_blocks(least: int) -> str:
    """fewer than 6 complete blocks"""
    return f"fewer than {least} complete blocks"


_ORDER = {"slower": "{} is slower than {}", "equivalent": "{} is equivalent to {}"}


@wording("order-of-two")
def order_of_two(cell: str, following: str, conclusion: str) -> str:
    """log=disk is slower than log=memory"""
    return _ORDER.get(conclusion, "{} against {} is undecided").format(cell, following)


@wording("order-confirmed")
def order_confirmed() -> str:
    """each is better than the next"""
    return "each is better than the next"


@wording("fell-behind")
def fell_behind(cell: str, trials: int, of: int) -> str:
    """log=disk rate=90% fell behind in 6 of 6"""
    return f"{cell} fell behind in {trials} of {of}"


@wording("budget-too-small")
def budget_too_small(budget_s: float, blocks: int, least: int, needed_s: float, resumes: str = "") -> str:
    """the budget of 20 min had no room for cells at rates, and a verdict on them needs 6 blocks: a budget of about …"""
    room = f"only {counted(blocks, 'block')} of cells at rates" if blocks else "no room for cells at rates"
    more = f", and so does `ironbench lab resume {resumes} --more {least}`" if resumes else ""
    return (
        f"the budget of {units.span(budget_s)} had {room}, and a verdict on them needs {least} blocks: a budget of "
        f"about {units.span(needed_s)} holds these{more}"
    )


# Of a gate.


def _allowed(margin: float) -> str:
    return f"{percent(margin)} {'is' if margin <= 1 else 'are'} allowed"


def _to_tell(advice: Note | None) -> str:
    return f". To tell: {text(advice)}" if advice is not None else ""


@wording("slower")
def slower(slowdown: float, margin: float) -> str:
    """it is slower by 12%; 5% is allowed"""
    return f"it is slower by {percent(slowdown)}; {_allowed(margin)}"


@wording("not-slower")
def not_slower(bound: float, margin: float) -> str:
    """it is not slower by 2% at most; 5% is allowed"""
    by = f"by {percent(bound)} at most" if bound > 0 else "at all"
    return f"it is not slower {by}; {_allowed(margin)}"


@wording("perhaps-slower")
def perhaps_slower(least: float, most: float, margin: float, advice: Note | None = None) -> str:
    """it may be slower by 9%; 5% is allowed. To tell: a round of 9 blocks, which finds …"""
    if least > 0:
        words = f"it is slower by {percent(least)} to {percent(most)}"
    else:
        words = f"it may be slower by {percent(most)}"
    return f"{words}; {_allowed(margin)}{_to_tell(advice)}"


@wording("slower-at-one-end")
def slower_at_one_end(change: Note | None, slowdown: float, margin: float) -> str:
    """the ratio drifted from 1.00 to 0.80 over the blocks: at one end it is slower by 25%; 5% is allowed"""
    drift = text(change) if change is not None else "the ratio changed over the blocks"
    return f"{drift}: at one end it is slower by {percent(slowdown)}; {_allowed(margin)}"


@wording("slower-in-earlier-round")
def slower_in_earlier_round(round: int, why: Note) -> str:
    """round 1: it is slower by 12%; 5% is allowed. A later round does not take that back"""
    return f"round {round}: {text(why)}. A later round does not take that back"


@wording("trials-still-to-run")
def trials_still_to_run(missing: int) -> str:
    """3 planned trials still to be run"""
    return f"{counted(missing, 'planned trial')} still to be run"


@wording("no-better-direction")
def no_better_direction(metric: str) -> str:
    """neither more nor less wal_bytes_per_s is better"""
    return f"neither more nor less {metric} is better"


@wording("gate-of-too-few-blocks")
def gate_of_too_few_blocks(blocks: int, least: int, advice: Note | None = None) -> str:
    """3 complete blocks of 6 that a verdict needs. To tell: a round of 6 complete blocks at least"""
    return f"{counted(blocks, 'complete block')} of {least} that a verdict needs{_to_tell(advice)}"
