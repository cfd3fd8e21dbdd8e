"""Words for the outcomes of claims in a lab file, and for the reasons of a gate."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ironbench import units
from ironbench.model.lab import Configuration
from ironbench.model.note import Note
from ironbench.report.wording.findings import too_few_blocks
from ironbench.report.wording.footnotes import needed
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.terms import configuration
from ironbench.report.wording.values import agreed, in_unit, percent, sized
from ironbench.words import counted, grouped, listed

_LIMIT = {"confirmed": "within the limit", "refuted": "beyond the limit"}
_RANGE = {"confirmed": "inside", "refuted": "outside"}


@wording("value-against-limit")
def value_against_limit(verdict: str, low: float, high: float, unit: str, confidence: float, trials: int) -> str:
    """Example with verdict='confirmed', low=0.0012, high=0.0014, unit='s', confidence=0.95, trials=6: `95% CI 1.2 ms to
    1.4 ms from 6 trials, within the limit`."""
    place = _LIMIT.get(verdict, "partly within and partly beyond the limit, so run more trials")
    seen = f"{100 * confidence:.3g}% CI {in_unit(low, unit)} to {in_unit(high, unit)}"
    return f"{seen} from {trials} trials, {place}"


@wording("interval-against-range")
def interval_against_range(verdict: str, low: float, high: float, confidence: float) -> str:
    """Example with verdict='confirmed', low=1.18, high=1.35, confidence=0.95: `95% CI of the ratio: 1.180 to 1.350,
    inside the claimed range`."""
    seen = f"{100 * confidence:.3g}% CI of the ratio: {_ratio(low)} to {_ratio(high)}"
    return f"{seen}, {_RANGE.get(verdict, 'partly outside')} the claimed range"


def _ratio(value: float) -> str:
    """Formats a bound of a ratio with four significant digits. Three decimals would show a small bound as 0.000."""
    return grouped(value) if 1000 <= value < math.inf else f"{value:#.4g}"


@wording("too-few-transactions")
def too_few_transactions(needs: Sequence[Sequence[float]]) -> str:
    """Example with needs=[(0.99, 299)]: `a trial has too few response times: the 99th percentile needs at least
    299`."""
    return f"a trial has too few response times: {needed(needs)}"


@wording("too-few-trials")
def too_few_trials(trials: int, least: int) -> str:
    """Example with trials=2, least=3: `a confidence interval needs at least 3 trials, but there are only 2`."""
    return f"a confidence interval needs at least {least} trials, but there {agreed(trials, 'is', 'are')} only {trials}"


@wording("no-interval-at-look")
def no_interval_at_look() -> str:
    """Example: `there is no confidence interval at this interim analysis`."""
    return "there is no confidence interval at this interim analysis"


@wording("rate-sustained")
def rate_sustained(trials: int, of: int, rate: float) -> str:
    """Example with trials=5, of=6, rate=500: `5 of 6 trials sustained 500/s`."""
    return f"{trials} of {of} trials sustained {units.rate(rate)}"


@wording("not-compared")
def not_compared(cells: Sequence[Configuration]) -> str:
    """Example with cells=['WAL on disk', 'WAL in memory']: `WAL on disk and WAL in memory were not compared with each
    other`."""
    return f"{' and '.join(map(configuration, cells))} were not compared with each other"


@wording("fewer-blocks")
def fewer_blocks(least: int) -> str:
    """Example with least=6: `there are fewer than 6 complete blocks`."""
    return f"there are fewer than {least} complete blocks"


_ORDER = {"slower": "{} is slower than {}", "equivalent": "{} is equivalent to {}"}


@wording("order-of-two")
def order_of_two(cell: Configuration, following: Configuration, conclusion: str) -> str:
    """Example with cell='WAL on disk', following='WAL in memory', conclusion='slower': `WAL on disk is slower than WAL
    in memory`."""
    return _ORDER.get(conclusion, "the comparison {} vs. {} is inconclusive").format(
        configuration(cell), configuration(following)
    )


@wording("order-confirmed")
def order_confirmed() -> str:
    """Example: `every configuration is better than the next one in the claimed order`."""
    return "every configuration is better than the next one in the claimed order"


@wording("fell-behind")
def fell_behind(cell: Configuration, trials: int, of: int) -> str:
    """Example with cell='WAL on disk, 90% of peak throughput', trials=6, of=6: `6 of 6 trials with WAL on disk, 90% of
    peak throughput did not sustain the target rate`."""
    return f"{trials} of {counted(of, 'trial')} with {configuration(cell, listed)} did not sustain the target rate"


@wording("budget-too-small")
def budget_too_small(budget_s: float, blocks: int, least: int, needed_s: float, resumes: str = "") -> str:
    """Example with budget_s=1200.0, blocks=4, least=6, needed_s=1800.0: `the budget of 20 min was too short for the
    configurations at a fixed rate: a verdict about these configurations needs 6 blocks, but only 4 ran. Use a budget of
    about 30 min`."""
    done = f", but only {blocks} ran" if blocks else ""
    more = f", or run `ironbench lab resume {resumes} --more {least}`" if resumes else ""
    return (
        f"the budget of {units.span(budget_s)} was too short for the configurations at a fixed rate: a verdict about "
        f"these configurations needs {least} blocks{done}. Use a budget of about {units.span(needed_s)}{more}"
    )


# Reasons of a gate.


def _size(slowdown: float, higher_is_better: bool) -> str:
    """Formats a slowdown as the change of the metric, in the same way as findings. `slowdown`: the additional time for
    the same work, as a fraction of the old time. For example, 25% more time is 20% less throughput."""
    if higher_is_better:
        slowdown = slowdown / (1 + slowdown) if math.isfinite(slowdown) else 1.0
    return percent(slowdown)


def _allowed(margin: float, higher_is_better: bool) -> str:
    longer = f" (the same work may take {percent(margin)} longer)" if higher_is_better else ""
    return f"the allowed slowdown is {_size(margin, higher_is_better)}{longer}"


def _to_decide(advice: Note | None) -> str:
    return f". To decide: {text(advice)}" if advice is not None else ""


@wording("slower")
def slower(slowdown: float, margin: float, higher_is_better: bool = False) -> str:
    """Example with slowdown=0.12, margin=0.05: `12% slower; the allowed slowdown is 5%`."""
    return f"{_size(slowdown, higher_is_better)} slower; {_allowed(margin, higher_is_better)}"


@wording("not-slower")
def not_slower(bound: float, margin: float, higher_is_better: bool = False) -> str:
    """Example with bound=0.02, margin=0.05: `at most 2% slower; the allowed slowdown is 5%`."""
    size = f"at most {_size(bound, higher_is_better)} slower" if bound > 0 else "not slower"
    return f"{size}; {_allowed(margin, higher_is_better)}"


@wording("perhaps-slower")
def perhaps_slower(
    least: float, most: float, margin: float, higher_is_better: bool = False, advice: Note | None = None
) -> str:
    """Example with least=-0.02, most=0.09, margin=0.05, advice=note('another-round', blocks=9, margin=0.05): `between
    2% faster and 9% slower; the allowed slowdown is 5%. To decide: run another round of 9 blocks, which detect or rule
    out a difference of 5% with 90% power`."""
    return f"{slowdowns(least, most, higher_is_better)}; {_allowed(margin, higher_is_better)}{_to_decide(advice)}"


def slowdowns(least: float, most: float, higher_is_better: bool) -> str:
    """Formats a slowdown as both ends of its confidence interval: `3% to 9% slower`, `between 2% faster and 9%
    slower`."""
    slower = f"{_size(most, higher_is_better)} slower"
    if least > 0:
        return f"{_size(least, higher_is_better)} to {slower}"
    if least <= -1:  # the lower bound is unknown
        return f"possibly up to {slower}"
    return f"between {_faster(-least, higher_is_better)} and {slower}"


def _faster(saved: float, higher_is_better: bool) -> str:
    """Formats a gain as the change of the metric: `9% faster`, `2.8x as fast`. `saved`: the time saved for the same
    work, as a fraction of the old time."""
    ratio = 1 / (1 - saved) if higher_is_better else 1 + saved
    return sized(ratio, "faster", "slower", "as fast")


@wording("slower-at-one-end")
def slower_at_one_end(change: Note | None, slowdown: float, margin: float, higher_is_better: bool = False) -> str:
    """Example with change=None, slowdown=0.25, margin=0.05, higher_is_better=True: `the ratio changed from block to
    block, and in the first or the last block the slowdown is 20%; the allowed slowdown is 4.8% (the same work may take
    5% longer)`."""
    drift = text(change) if change is not None else "the ratio changed from block to block"
    size = _size(slowdown, higher_is_better)
    return f"{drift}, and in the first or the last block the slowdown is {size}; {_allowed(margin, higher_is_better)}"


@wording("slower-in-earlier-round")
def slower_in_earlier_round(round: int, why: Note) -> str:
    """Example with round=1, why=note('slower', slowdown=0.12, margin=0.05): `in round 1: 12% slower; the allowed
    slowdown is 5%. Later rounds do not change this result`."""
    return f"in round {round}: {text(why)}. Later rounds do not change this result"


@wording("trials-still-to-run")
def trials_still_to_run(missing: int) -> str:
    """Example with missing=3: `3 planned trials have not run yet`."""
    return f"{counted(missing, 'planned trial')} {'has' if missing == 1 else 'have'} not run yet"


@wording("no-better-direction")
def no_better_direction(metric: str) -> str:
    """Example with metric='wal_bytes_per_s': `neither higher nor lower values of wal_bytes_per_s are better`."""
    return f"neither higher nor lower values of {metric} are better"


@wording("gate-of-too-few-blocks")
def gate_of_too_few_blocks(blocks: int, least: int, advice: Note | None = None) -> str:
    """Example with blocks=3, least=6, advice=note('least-blocks', least=6): `a verdict needs at least 6 complete
    blocks, but there are only 3. To decide: run another round with at least 6 complete blocks`."""
    return f"{too_few_blocks(blocks, least)}{_to_decide(advice)}"
