"""Measures the market of the brokerage workload on the null engine: orders per second and core, and the market's delay
at half of that rate."""

from __future__ import annotations

import json
from typing import Any

from bench.figures import at_least, at_most, report_median
from ironbench import _core
from ironbench.workloads.brokerage.transactions import ISOLATION

RUNS = 5
DURATION_S = 6.0
WARMUP_S = 6.0
"""Warm-up in seconds: longer than the maximum delay of an answer, so that the number of pending answers is constant."""
ASKED = 10_000
DATA = {"rows": "brokerage", "customers": 1000, "days": 10, "lob": "small", "seed": 0}
CARDS_PER_ORDER = 890 / 101


def main() -> None:
    orders = [_orders_per_core_second(_driven({"kind": "closed", "think_time_s": 0.0})) for _ in range(RUNS)]
    report_median("orders per core-second, with all other transactions of the mix", orders, at_least(ASKED))
    rate = {"kind": "open", "rate": ASKED / 2 * CARDS_PER_ORDER, "arrivals": "poisson"}
    results = [_driven(rate) for _ in range(RUNS)]
    lags = [result.histograms["market_lag"].quantile(0.99) * 1e3 for result in results]
    report_median("lag of the market at half of what is asked, p99, ms", lags, at_most(10))
    placed = [_orders(json.loads(result.summary)) / DURATION_S for result in results]
    report_median("orders per second then", placed, at_least(0.98 * ASKED / 2))


def _driven(schedule: dict[str, Any]) -> _core.DriveResult:
    """Runs the roles of the workload. Every script is a single statement, so that only the cost of the roles is
    measured."""
    plan = {
        "engine": {"kind": "null"},
        "scripts": [{"name": name, "text": "SELECT 1;\n", "weight": 1} for name in ISOLATION],
        "jobs": {"kind": "brokerage", "data": DATA, "no_data": True, "price_period_s": 5.0},
        "variables": [],
        "clients": 32,
        "threads": 1,
        "seed": 1,
        "schedule": schedule,
        "stop": {"duration_s": DURATION_S},
        "warmup_s": WARMUP_S,
        "max_tries": 10,
        "observers": [],
    }
    return _core.drive(json.dumps(plan).encode())


def _orders(summary: dict[str, Any]) -> int:
    return sum(script["transactions"] for script in summary["scripts"] if script["name"] == "trade_order")


def _orders_per_core_second(result: _core.DriveResult) -> float:
    summary = json.loads(result.summary)
    cpu = summary["client_cpu_s"]
    return float(_orders(summary) / (cpu["user"] + cpu["system"]))
