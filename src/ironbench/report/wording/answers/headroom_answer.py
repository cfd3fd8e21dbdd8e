"""Words for the answer of `headroom`: how far today's load can grow on each system, and how the systems compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ironbench.report.numbers import number, percent, quantity, times
from ironbench.report.wording.answers.ratios import metric_words
from ironbench.report.wording.values import CI, is_multiple
from ironbench.stats.multiplicity import LEAST_BLOCKS as LEAST_BLOCKS_OF_VERDICT
from ironbench.study.headroom import LEAST_BLOCKS, RateInterval
from ironbench.units import rate
from ironbench.words import counted, listed


def limit_in_words(metric: str, most: float) -> str:
    """Example with metric='response_time_p99_s', most=0.02: `99th-percentile response time of at most 20.0 ms`."""
    return f"{metric_words(metric)} of at most {quantity(most, 's')}"


def highest(name: str, found: RateInterval, units: str, limit: str) -> str:
    """Example with name='A', found=RateInterval(1140.0, 1060.0, 1220.0, 6), units='transactions', limit='p99 of at most
    20 ms': `A sustains 1,140 transactions per second (95% CI 1,060 to 1,220, 6 blocks) with a p99 of at most 20 ms.`"""
    return f"{name} sustains {number(found.value)} {units} per second ({_interval(found, number)}) with a {limit}."


def growth(name: str, found: RateInterval, today: float, units: str, metric: str, most: float) -> str:
    """Example with name='A', found=RateInterval(1140.0, 1060.0, 1220.0, 6), today=812.0, units='transactions',
    metric='response_time_p99_s', most=0.02: `On A, today's load can grow by 40% (95% CI 31% to 50%, 6 blocks), to 1,140
    transactions per second, before the 99th-percentile response time exceeds 20.0 ms.`"""
    ratio, end = found.over(today), f"before the {metric_words(metric)} exceeds {quantity(most, 's')}"
    if ratio.known and not ratio.clear:
        ends = f"{percent(ratio.low or 0.0)} and {percent(ratio.high or 0.0)} of today's load"
        return f"{name}: inconclusive, because the highest sustained rate is between {ends} ({CI}, {_blocks(ratio)})."
    if ratio.value < 1:
        return f"{name} sustains only {percent(ratio.value)} of today's load ({_interval(ratio, percent)})."
    most_done = f"to {number(found.value)} {units} per second, {end}"
    if is_multiple(ratio.value):
        size = f"{times(ratio.value)} its size ({_interval(ratio, times)})"
        return f"On {name}, today's load can grow to {size}, {most_done}."
    return f"On {name}, today's load can grow by {percent(ratio.value - 1)} ({_interval(ratio, _more)}), {most_done}."


def compared(name: str, baseline: str, ratio: RateInterval, paired: bool) -> str:
    """Example with name='B', baseline='A', ratio=RateInterval(1.9, 1.75, 2.06, 6), paired=True: `B sustains 1.90x the
    rate of A (95% CI 1.75x to 2.06x, 6 blocks).`"""
    how = _interval(ratio, times)
    if not ratio.known or ratio.blocks < LEAST_BLOCKS_OF_VERDICT:
        needs = f"a verdict needs {LEAST_BLOCKS_OF_VERDICT} blocks"
        return f"{name} sustained {times(ratio.value)} the rate of {baseline} ({how}; {needs})."
    apart = (
        ""
        if paired
        else " The trials of the two runs were not interleaved, so other differences between the runs may affect the "
        "result."
    )
    if not ratio.clear:
        ends = f"{times(ratio.low or 0.0)} to {times(ratio.high or 0.0)}"
        return f"Inconclusive: {name} sustains {ends} the rate of {baseline} ({CI}, {_blocks(ratio)}).{apart}"
    if ratio.value < 1:
        share = f"{percent(ratio.value)} of the rate of {baseline} ({_interval(ratio, percent)})"
        return f"{name} sustains only {share}.{apart}"
    return f"{name} sustains {times(ratio.value)} the rate of {baseline} ({how}).{apart}"


def at_today(today: float, values: Sequence[tuple[str, float]], metric: str) -> str:
    """Example with today=812.0, values=[('A', 0.0081), ('B', 0.003)], metric='response_time_p99_s': `At today's rate of
    812/s, the 99th-percentile response time is 8.10 ms on A and 3.00 ms on B.`"""
    each = listed([f"{quantity(value, 's')} on {name}" for name, value in values])
    return f"At today's rate of {rate(today)}, the {metric_words(metric)} is {each}."


def beyond(name: str, blocks: int, rate_tried: float, limit: str) -> str:
    """Example with name='A', blocks=2, rate_tried=2000.0, limit='p99 of at most 20 ms': `In 2 blocks, A had a p99 of at
    most 20 ms even at the highest rate, 2,000/s: measure higher rates.`"""
    where = f"In {counted(blocks, 'block')}"
    return f"{where}, {name} had a {limit} even at the highest rate, {rate(rate_tried)}: measure higher rates."


def exceeded(name: str, blocks: int, rate_tried: float, limit: str, short: int) -> str:
    """Example with name='A', blocks=2, rate_tried=200.0, limit='p99 of at most 20 ms', short=0: `In 2 blocks, A did not
    have a p99 of at most 20 ms even at the lowest rate, 200/s: measure lower rates.`"""
    where = f"In {counted(blocks, 'block')}"
    if short:
        lowest = f"the lowest rate with enough transactions, {rate(rate_tried)}"
        few = f"{counted(short, 'trial')} had too few finished transactions for this percentile"
        advice = f"{few}, so use a longer duration"
        return f"{where}, {name} did not have a {limit} even at {lowest}; {advice}."
    return f"{where}, {name} did not have a {limit} even at the lowest rate, {rate(rate_tried)}: measure lower rates."


def short(name: str, trials: int) -> str:
    """Example with name='A', trials=3: `A: 3 trials had too few finished transactions for this percentile; use a longer
    duration.`"""
    few = f"{counted(trials, 'trial')} had too few finished transactions for this percentile"
    return f"{name}: {few}; use a longer duration."


def left_out(names: Sequence[str]) -> str:
    """Example with names=('A', 'B'): `Left out, because `headroom` needs trials of a system at two or more rates: A and
    B.`"""
    return f"Left out, because `headroom` needs trials of a system at two or more rates: {listed(list(names))}."


def too_few_blocks(name: str, blocks: int) -> str:
    """Example with name='A', blocks=2: `A was measured in 2 usable blocks; a confidence interval needs 3.`"""
    return f"{name} was measured in {counted(blocks, 'usable block')}; a confidence interval needs {LEAST_BLOCKS}."


def flagged(name: str, trials: int) -> str:
    """Example with name='A', trials=2: `A: 2 trials at sustained rates are flagged; `ironbench report` shows the
    reasons.`"""
    are = "is" if trials == 1 else "are"
    return f"{name}: {counted(trials, 'trial')} at sustained rates {are} flagged; `ironbench report` shows the reasons."


def how_measured() -> str:
    """Example: `In each block, the rate at which the limit is reached is interpolated between two measured rates. Rates
    and ratios are geometric means over blocks with Student's 95% CI. The CI does not include …`."""
    return (
        "In each block, the rate at which the limit is reached is interpolated between two measured rates. Rates and "
        f"ratios are geometric means over blocks with Student's {CI}. The CI does not include "
        "the error of interpolation, which is smaller than the distance between the two rates."
    )


def _interval(found: RateInterval, written: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return f"{_blocks(found)}: too few for a confidence interval"
    return f"{CI} {written(found.low)} to {written(found.high)}, {_blocks(found)}"


def _blocks(found: RateInterval) -> str:
    return counted(found.blocks, "block")


def _more(ratio: float) -> str:
    return percent(ratio - 1)
