"""A/A test with the brokerage workload: how often identical systems are called faster or slower (target: at most 2 of
20).

Runs 20 labs of 6 blocks each, which takes about 75 minutes. `IRONBENCH_BENCH_PAIRS=2` runs only two labs.
"""

from __future__ import annotations

from bench.noise_aa import report_series
from bench.series import number_from_environment

LAB = """
question = "Does a brokerage differ from itself?"
[system]
engine = "postgres"
memory = "256MB"
[system.set]
synchronous_commit = "off"
[layout]
data = "@DATA@/brokerage-aa"
[workload]
name = "brokerage"
[workload.with]
customers = 1000
days = 2
lob = "none"
isolation = "locks"
price_period = 2
[load]
clients = 4
duration = "3s"
warmup = "2s"
[vary]
"load.clients" = [4, 5]
[measure]
metric = "trade_results_per_s"
seed = @SEED@
quiet = "2s"
"""


def main() -> None:
    pairs = number_from_environment("IRONBENCH_BENCH_PAIRS", 20)
    report_series("brokerage", "brokerage-aa", LAB, pairs)
