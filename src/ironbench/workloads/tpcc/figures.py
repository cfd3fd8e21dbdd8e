"""Results of a trial: New-Orders per minute, transaction mix and response times, compared with the limits of the
specification."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any

from ironbench.model.driven import Driven, scheduled
from ironbench.model.note import Note, note
from ironbench.workloads import response_limits
from ironbench.workloads.tpcc.transactions import DELIVERY, NEW_ORDER, REQUEST

NOPM = "new_orders_per_min"
TPM = "transactions_per_min"
ROLLED_BACK = "rolled_back_share"
RESPONSE_TIMES = (
    *("response_time_mean_s", "response_time_p50_s", response_limits.P90),
    *("response_time_p95_s", "response_time_p99_s"),
)
"""Metrics of response times that are recorded for each type of transaction."""
EFFICIENCY = "pacing_efficiency_share"
SKIPPED, LEFT, LAG = "skipped_districts", "deliveries_left", "delivery_lag"
LEAST_SHARES = {"payment": 0.43, "order-status": 0.04, DELIVERY: 0.04, "stock-level": 0.04}
"""Minimum share of each transaction in the mix. The rest of the mix is New-Orders."""
_LIMITS_S = {NEW_ORDER: 5.0, "payment": 5.0, "order-status": 5.0, DELIVERY: 5.0, "stock-level": 20.0}
"""Limit for the 90th percentile of each transaction's response time, in seconds."""
_DEFERRED_S = {REQUEST: 5.0, DELIVERY: 80.0}
"""Limits for the 90th percentile of a deferred Delivery, in seconds. The first is for the time until it is queued, and
the second for the time from then until it is committed."""
MOST_PER_WAREHOUSE = 12.86
"""Maximum number of New-Orders per minute and warehouse. More are not possible with the standard's keying and think
times."""
CHANCE = 3.0
"""Number of standard deviations by which a count may be too low by chance."""
MIX_MISSED = "mix-missed"


def limits_s(scripts: Container[str]) -> dict[str, float]:
    """Returns the limit for the 90th percentile of each transaction's response time, in seconds. `scripts`: names of
    the trial's scripts. These names show whether deliveries are deferred."""
    return _LIMITS_S | _DEFERRED_S if REQUEST in scripts else _LIMITS_S


def of_terminals(counts: Mapping[str, float]) -> dict[str, float]:
    """Returns the counts (or rates) of transactions without those of delivery clients. A deferred Delivery counts when
    a terminal has queued it."""
    counted = {name: count for name, count in counts.items() if name in _LIMITS_S}
    return counted | ({DELIVERY: counts[REQUEST]} if REQUEST in counts else {})


def least(name: str, transactions: float) -> float:
    """Returns how many of `transactions` must at least be transactions with this name. There is no minimum for
    New-Order."""
    specified = LEAST_SHARES.get(name, 0.0) * transactions
    return specified - CHANCE * math.sqrt(specified)


def nopm(summary: Mapping[str, Any]) -> float:
    """Returns the number of committed New-Orders per minute. New-Orders that were rolled back because of an unknown
    item are not counted."""
    script: Mapping[str, Any] = next((one for one in summary["scripts"] if one["name"] == NEW_ORDER), {})
    orders = int(script.get("transactions", 0)) - int(script.get("rolled_back", 0))
    return 60.0 * orders / float(summary["elapsed_s"])


def assessed(driven: Driven) -> tuple[Mapping[str, float], tuple[Note, ...]]:
    summary = driven.summary
    if not summary.get("scripts") or not summary.get("elapsed_s"):
        return {}, ()
    values = {NOPM: nopm(summary), TPM: 60.0 * scheduled(summary) / float(summary["elapsed_s"])}
    scripts = {script["name"]: script for script in summary["scripts"]}
    if NEW_ORDER in scripts and (orders := int(scripts[NEW_ORDER]["transactions"])):
        values[ROLLED_BACK] = int(scripts[NEW_ORDER]["rolled_back"]) / orders
    values |= {name: float(count) for name, count in summary.get("figures", {}).items() if name in (SKIPPED, LEFT)}
    lag = driven.histograms.get(LAG)
    if lag is not None and lag.count:
        values[f"{LAG}_p99_s"] = lag.quantiles([0.99])[0]
    counts = of_terminals({name: int(script["transactions"]) for name, script in scripts.items()})
    return values, (*_mix(counts), *response_limits.slow(driven, limits_s(scripts)))


def _mix(counts: Mapping[str, float]) -> list[Note]:
    whole = sum(counts.values())
    return [
        note(MIX_MISSED, script=name, share=counts.get(name, 0) / whole, specified=share, transactions=whole)
        for name, share in LEAST_SHARES.items()
        if counts.get(name, 0) < least(name, whole)
    ]
