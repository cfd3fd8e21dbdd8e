"""Results of a trial: its score, transaction mix and response times, compared with the limits of the specification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ironbench.model.driven import Driven
from ironbench.model.note import Note, note
from ironbench.workloads import rate_change, response_limits

SCORE = "trade_results_per_s"
MIX = {
    "trade_status": 0.190,
    "market_watch": 0.180,
    "security_detail": 0.140,
    "customer_position": 0.130,
    "trade_order": 0.101,
    "trade_result": 0.100,
    "trade_lookup": 0.080,
    "broker_volume": 0.049,
    "trade_update": 0.020,
    "market_feed": 0.010,
}
"""Specified share of each transaction in the mix. Data-Maintenance is not part of the mix."""
TOLERANCE = 0.002
"""Relative deviation of a share that is always permitted, however long the trial is."""
CHANCE = 3.0
"""Number of standard deviations by which a count may deviate in addition, by chance. Counts vary because the result of
an order follows later."""
LIMITS_S = {
    "trade_status": 1.0,
    "market_watch": 3.0,
    "security_detail": 3.0,
    "customer_position": 3.0,
    "trade_order": 2.0,
    "trade_result": 2.0,
    "trade_lookup": 3.0,
    "broker_volume": 3.0,
    "trade_update": 3.0,
    "market_feed": 2.0,
}
"""Limit for the 90th percentile of each transaction's response time, in seconds."""
MAINTENANCE, MAINTENANCE_S = "data_maintenance", 55.0
"""Name of Data-Maintenance, and the limit in seconds for its response times. Each single response time must be below
this limit."""
MIX_MISSED = "mix-missed"
NO_STEADY_STATE = "no-steady-state"
GIVEN_UP = "market-gave-up"
NO_SCORE = "no-score"
MARKETS = "unscheduled"
"""Column of the time line that counts two kinds of transactions: those of the market, and Data-Maintenance. Ten of
eleven market transactions are Trade-Results."""
LAG, TAKEN_BACK = "market_lag", "orders_taken_back"


def allowed(name: str, transactions: float) -> float:
    """Returns how far the count of transaction `name` may deviate from its specified share of all `transactions`."""
    specified = MIX[name] * transactions
    return TOLERANCE * specified + CHANCE * math.sqrt(specified)


def assessed(driven: Driven, seen: Sequence[Note]) -> tuple[Mapping[str, float], tuple[Note, ...]]:
    summary = driven.summary
    elapsed_s = float(summary.get("elapsed_s") or 0.0)
    counts = {script["name"]: int(script["transactions"]) for script in summary.get("scripts", ())}
    if elapsed_s <= 0 or not counts:
        return {}, ()
    values = {SCORE: counts.get("trade_result", 0) / elapsed_s}
    values |= _taken_back(summary)
    lag = driven.histograms.get(LAG)
    if lag is not None and lag.count:
        values[f"{LAG}_p99_s"] = lag.quantiles([0.99])[0]
    slow = [*response_limits.slow(driven, LIMITS_S), *_slow_maintenance(driven)]
    if summary.get("waiting_clients") == 0:
        return values, (note(NO_SCORE), *slow, *_given_up(summary))
    return values, (*_mix(counts), *slow, *_unsteady(driven, seen), *_given_up(summary))


def _taken_back(summary: Mapping[str, Any]) -> dict[str, float]:
    scripts = {script["name"]: script for script in summary["scripts"]}
    taken_back = scripts.get("trade_order", {}).get("rolled_back")
    return {} if taken_back is None else {TAKEN_BACK: float(taken_back)}


def _mix(counts: Mapping[str, int]) -> list[Note]:
    whole = sum(counts.get(name, 0) for name in MIX)
    missed = []
    for name, specified in MIX.items():
        count = counts.get(name, 0)
        if abs(count - specified * whole) > allowed(name, whole):
            off = abs(count / (specified * whole) - 1) if whole else 1.0
            missed.append((off, name, count / whole if whole else 0.0))
    # Only the largest deviations are reported, because one deviation causes others. For example, if results are
    # missing, all other shares are too large.
    return [
        note(MIX_MISSED, script=name, share=share, specified=MIX[name], transactions=whole)
        for _, name, share in sorted(missed, reverse=True)[:2]
    ]


def _slow_maintenance(driven: Driven) -> list[Note]:
    histogram = driven.histograms.get(f"response_time{{script={MAINTENANCE}}}")
    if histogram is None or histogram.count == 0 or histogram.max_s <= MAINTENANCE_S:
        return []
    return [note(response_limits.CODE, script=MAINTENANCE, longest_s=histogram.max_s, limit_s=MAINTENANCE_S)]


def _unsteady(driven: Driven, seen: Sequence[Note]) -> list[Note]:
    """Tests whether the rate of all transactions changed. Tests the market's rate separately, because the score depends
    on it."""
    if known := next((one for one in seen if one.code == rate_change.CODE), None):
        return [note(NO_STEADY_STATE, rate="all", **known.values)]
    column = driven.timeline.get(MARKETS, b"")
    if not rate_change.is_long_enough(column):
        return [note(NO_STEADY_STATE, least_s=rate_change.LEAST_S)]
    # The last tenth is not tested. There, the rate falls because customers end at different times.
    if change := rate_change.changed(column, float(driven.summary["elapsed_s"]), 0.9):
        return [note(NO_STEADY_STATE, rate="market", **change)]
    return []


def _given_up(summary: Mapping[str, Any]) -> list[Note]:
    """Returns a note if the market gave up transactions (`crates/…/roles/market.rs`). Transactions of the warm-up are
    also counted."""
    count = int(summary.get("figures", {}).get("market_given_up", 0))
    return [note(GIVEN_UP, given_up=count)] if count else []
