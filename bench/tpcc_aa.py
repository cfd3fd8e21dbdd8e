"""A/A test with the workload `tpcc`, by slices: how often identical PostgreSQL servers are called faster or slower
(target: at most 1 of 20), and which difference 6 blocks detect (target: at most 8% in the median of the labs).

Two servers with equal configurations and their own copies of the data take turns of one second. Runs 20 labs of 6
blocks each, which takes about an hour. `IRONBENCH_BENCH_PAIRS=2` runs only two labs.
"""

from __future__ import annotations

from bench.noise_aa import report_series
from bench.series import number_from_environment

LAB = """
question = "Does an order-entry system differ from itself?"
[system]
engine = "postgres"
memory = "256MB"
[layout]
data = "@DATA@/tpcc-aa"
[workload]
name = "tpcc"
with = { warehouses = 2 }
[load]
clients = 4
duration = "8s"
warmup = "2s"
[vary]
"load.clients" = [4, 5]
[measure]
metric = "new_orders_per_min"
method = "slices"
slice = "1s"
seed = @SEED@
quiet = "0s"
rates = "none"
"""
"""The slice length is given, because a pilot in every lab would take time and could choose different lengths."""


def main() -> None:
    report_series(
        "tpcc by slices",
        "tpcc-aa",
        LAB,
        number_from_environment("IRONBENCH_BENCH_PAIRS", 20),
        allowed=1 / 20,
        detectable=0.08,
    )
