"""Results of a trial: New-Orders per minute, transaction mix and response times, compared with the limits of the
specification."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ironbench.model.driven import Driven, scheduled
from ironbench.model.note import Note, note
from ironbench.workloads import response_limits
from ironbench.workloads.tpcc.transactions import NEW_ORDER

NOPM = "new_orders_per_min"
TPM = "transactions_per_min"
ROLLED_BACK = "rolled_back_share"
EFFICIENCY = "pacing_efficiency_share"
LEAST_SHARES = {"payment": 0.43, "order-status": 0.04, "delivery": 0.04, "stock-level": 0.04}
"""Transaction → smallest share of all transactions. New-Orders are the rest."""
DECK = 23
SHARES = {NEW_ORDER: 10 / DECK, "payment": 10 / DECK, "order-status": 1 / DECK, "delivery": 1 / DECK}
SHARES["stock-level"] = 1 / DECK
"""Transaction → share in the deck of cards."""
LIMITS_S = {NEW_ORDER: 5.0, "payment": 5.0, "order-status": 5.0, "delivery": 5.0, "stock-level": 20.0}
"""Transaction → limit for the 90th percentile of its response time."""
MOST_PER_WAREHOUSE = 12.86
"""New-Orders per minute and warehouse that are possible with the standard's keying and think times."""
CHANCE = 3.0
"""How many standard deviations a count may be too low by chance."""
MIX_MISSED = "mix-missed"


def least(name: str, transactions: float) -> float:
    """Returns how many of the transactions must be of this type; New-Order has no lower limit."""
    specified = LEAST_SHARES.get(name, 0.0) * transactions
    return specified - CHANCE * math.sqrt(specified)


def nopm(summary: Mapping[str, Any]) -> float:
    """Returns the committed New-Orders per minute: without those that were rolled back because of an unknown item."""
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
    counts = {name: int(script["transactions"]) for name, script in scripts.items()}
    return values, (*_mix(counts), *response_limits.slow(driven, LIMITS_S))


def _mix(counts: Mapping[str, int]) -> list[Note]:
    whole = sum(counts.get(name, 0) for name in SHARES)
    return [
        note(MIX_MISSED, script=name, share=counts.get(name, 0) / whole, specified=share, transactions=whole)
        for name, share in LEAST_SHARES.items()
        if counts.get(name, 0) < least(name, whole)
    ]
