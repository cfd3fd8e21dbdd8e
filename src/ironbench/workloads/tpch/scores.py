"""Composite metrics of a power and a throughput test (TPC-H specification 2.17.3, clauses 5.3 and 5.4).

These are derived metrics, not comparable with published TPC results. The rules round times to 0.1 s, with a minimum of
0.1 s. Below scale factor 1, many queries take less than 0.05 s. Every metric is therefore also reported without
rounding and without the lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

_STEP = Decimal("0.1")
_FLOOR = 1000.0
_MINIMUM_STREAMS = ((1, 2), (10, 3), (30, 4), (100, 5), (300, 6), (1000, 7), (3000, 8), (10000, 9), (30000, 10))
_MOST_STREAMS = 11


MERITS = ("power", "stream_throughput", "composite")


def leading(scale: float) -> tuple[str, ...]:
    """Returns the metrics by which systems are compared.

    From scale factor 1 on, these are metrics computed from rounded times, as the rules require. Below scale factor 1,
    most queries take less than a tenth of a second, so these are metrics computed from exact times.
    """
    return MERITS if scale >= 1 else tuple(f"{name}_unrounded" for name in MERITS)


def rounded_s(interval_s: float) -> float:
    """Rounds a time to tenths of a second. A time below 0.05 s becomes 0.1 s (5.3.7.5)."""
    # Decimals are rounded instead of binary fractions, so that 0.25 is exactly halfway.
    return float(max(_STEP, Decimal(repr(interval_s)).quantize(_STEP, ROUND_HALF_UP)))


def floored_s(intervals_s: Sequence[float]) -> list[float]:
    """Replaces times that are shorter than a thousandth of the longest time by this thousandth (5.4.1.4)."""
    least = max(intervals_s) / _FLOOR
    return [max(interval_s, least) for interval_s in intervals_s]


def power(scale: float, queries_s: Sequence[float], refreshes_s: Sequence[float], *, by_the_rules: bool) -> float:
    """Returns the power metric, queries per hour times scale factor: 3600 · SF / geometric mean of all times (5.4.1.1).

    The rules require 22 queries and 2 refresh functions. The lower bound applies only to queries.
    """
    if by_the_rules:
        queries_s = floored_s([rounded_s(one) for one in queries_s])
        refreshes_s = [rounded_s(one) for one in refreshes_s]
    return 3600.0 * scale / geometric_mean([*queries_s, *refreshes_s])


def throughput(scale: float, streams: int, queries: int, elapsed_s: float, *, by_the_rules: bool) -> float:
    """Returns the throughput metric, queries per hour times scale factor. The rules require 22 queries in each stream
    (5.4.2.1)."""
    if by_the_rules:
        elapsed_s = rounded_s(elapsed_s)
    return streams * queries * 3600.0 / elapsed_s * scale


def composite(power_figure: float, throughput_figure: float) -> float:
    """Returns the geometric mean of power and throughput (5.4.3.1)."""
    return math.sqrt(power_figure * throughput_figure)


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def minimum_streams(scale: float) -> int:
    """Returns the minimum number of query streams of a throughput test (5.3.4, table 11). The rules define the number
    only for the scale factors in the table. Between them, the number of the lower one applies."""
    if scale >= 100000:
        return _MOST_STREAMS
    return max((streams for least, streams in _MINIMUM_STREAMS if scale >= least), default=_MINIMUM_STREAMS[0][1])


def of_power_test(scale: float, queries_s: Sequence[float], refreshes_s: Sequence[float]) -> dict[str, float]:
    return {
        "power": power(scale, queries_s, refreshes_s, by_the_rules=True),
        "power_unrounded": power(scale, queries_s, refreshes_s, by_the_rules=False),
    }


def of_throughput_test(scale: float, streams: int, elapsed_s: float) -> dict[str, float]:
    return {
        "stream_throughput": throughput(scale, streams, 22, elapsed_s, by_the_rules=True),
        "stream_throughput_unrounded": throughput(scale, streams, 22, elapsed_s, by_the_rules=False),
    }


def of_both(figures: Mapping[str, float]) -> dict[str, float]:
    """Returns the composite metrics, if both tests have results."""
    scores = {}
    for suffix in ("", "_unrounded"):
        pair = figures.get(f"power{suffix}"), figures.get(f"stream_throughput{suffix}")
        if pair[0] is not None and pair[1] is not None:
            scores[f"composite{suffix}"] = composite(pair[0], pair[1])
    return scores
