"""Words for metrics, for ratios as changes, and for the confidence intervals of changes."""

from __future__ import annotations

import math

from ironbench.catalogue import base_name, metrics, part_of
from ironbench.model.finding import LEAST_BLOCKS_SHOWN, Finding
from ironbench.report.numbers import NO_END, NOT_KNOWN, confidence, percent, times
from ironbench.report.wording.values import CI, is_multiple, sized
from ironbench.words import MINUS


def metric_words(metric: str) -> str:
    """Returns a metric's name in words: `99th-percentile response time of pay` for
    `response_time_p99_s{script=pay}`."""
    name, part = base_name(metric), part_of(metric)
    known = metrics().get(name)
    words = known.words if known else name
    kind, _, value = part.partition("=")
    if kind == "stream" and f"a {kind}" in words:
        return words.replace(f"a {kind}", f"{kind} {value}")
    return f"{words} of {_test_words(value) if kind == 'profile' else value}" if part else words


def _test_words(profile: str) -> str:
    from ironbench.catalogue import storage_tests

    test = storage_tests.storage_test(profile)
    return f"{test.title} {test.direction}" if test else profile


def change(value: float, metric: str = "throughput") -> str:
    """Formats a ratio as a change: `26% faster`, `2.82x as fast`, `37% lower`, `2.1x as high`."""
    if not math.isfinite(value):
        return NOT_KNOWN
    if metric == "throughput":
        return sized(value, "faster", "slower", "as fast")
    return sized(value, "higher", "lower", "as high")


def duration(ratio: float) -> str:
    """Formats a ratio of two times: `30% longer`, `2.1x the time`."""
    return sized(ratio, "longer", "shorter", "the time")


def than(value: float) -> str:
    """Returns the word that follows a change: `as` after a multiple such as `2.82x as fast`, and `than` otherwise."""
    return "as" if is_multiple(value) else "than"


def change_bounds(low: float, high: float, value: float) -> str:
    """Formats the confidence interval of a change in the same form as the change itself: `18% to 35%`, `2.69x to
    2.88x`. The bounds have signs if they have different directions: `−3.1% to +5.2%`."""
    if is_multiple(value):
        return f"{times(low)} to {times(high) if math.isfinite(high) else NO_END}"
    if low < 1 < high:
        return f"{_signed(low)} to {_signed(high) if math.isfinite(high) else NO_END}"
    ends = sorted((abs(low - 1), abs(high - 1)))
    return f"{percent(ends[0])} to {percent(ends[1]) if math.isfinite(ends[1]) else NO_END}"


def interval(low: float, high: float, value: float) -> str:
    """Formats the confidence interval of a ratio as a change: `95% CI 18% to 35%`. Without one, states that there is
    none."""
    if not (low > 0 and math.isfinite(high)):
        return "no confidence interval"
    return f"{CI} {change_bounds(low, high, value)}"


def _signed(value: float) -> str:
    return f"{MINUS if value < 1 else '+'}{percent(abs(value - 1))}"


def has_interval(finding: Finding) -> bool:
    """Returns whether a finding has a confidence interval, and enough blocks for it to be useful."""
    return finding.blocks >= LEAST_BLOCKS_SHOWN and finding.low > 0 and math.isfinite(finding.high)


def confidence_interval(finding: Finding) -> str:
    """Formats the confidence interval of a finding as a change: `95% CI 18% to 35%`. Without one, states that there is
    none."""
    if not has_interval(finding):
        return "no confidence interval"
    return f"{confidence(finding.confidence)} CI {change_bounds(finding.low, finding.high, finding.ratio)}"


def at_least(detectable: float) -> str:
    """Formats the smallest detectable difference: `6.4% or more`. Above 100%, an exact figure would mean little, so it
    is not shown."""
    return f"{percent(detectable)} or more" if detectable <= 1 else "more than a doubling"


def minimum_effect(detectable: float) -> str:
    """Formats a minimum detectable effect: `6.4%`. Above 100%, an exact figure would mean little, so it is not
    shown."""
    return percent(detectable) if detectable <= 1 else "more than a doubling"
