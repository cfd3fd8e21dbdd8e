"""Slices compared with trials: how much time does each method need to find the same difference?

Blocks of two equal configurations alternate between slices and trials, under the same conditions and with the same
measured time. The time that a method needs is proportional to the variance of a block's log ratio times the duration of
a block. Also checks, by their counters, whether paused systems used resources.

40 blocks of each workload and method take about two hours. `IRONBENCH_BENCH_PAIRS=8` measures eight,
`IRONBENCH_BENCH_WORKLOADS=select-only,tpcb-like` selects these two. `python -m bench variance` splits the noise of the
same blocks into components.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy import special

from bench.figures import Between, at_most, report
from bench.series import HOME, Declaration, finding, number_from_environment
from ironbench.lab.noise import against_itself
from ironbench.model.record import Record
from ironbench.records.labs import LabDirectory

MEASURED_S = 5
"""Measured seconds of each system in a block."""
METHODS = ("slices", "trials")
LAB = """
question = "Does a system differ from itself?"
[system]
engine = "postgres"
memory = "128MB"
[layout]
data = "@DATA@/slices"
[workload]
name = "{workload}"
with = {{ scale = {scale} }}
[load]
clients = {clients}
duration = "{seconds}s"
warmup = "1s"
[vary.work_mem]
"4MB" = {{ system.set.work_mem = "4MB" }}
"8MB" = {{ system.set.work_mem = "8MB" }}
[measure]
seed = @SEED@
quiet = "0s"
rates = "none"
{method}
"""
HOW = {"slices": 'method = "slices"\nslice = "1s"', "trials": 'method = "trials"'}
"""The slice length is given, because each block is a separate lab here and would need its own pilot."""


@dataclass(frozen=True, slots=True)
class Work:
    """A workload and its load."""

    workload: str
    scale: int
    clients: int


WORKS: Mapping[str, Work] = {
    "select-only": Work("select-only", 5, 4),
    "tpcb-like": Work("tpcb-like", 5, 4),
    "simple-update": Work("simple-update", 5, 4),
    "igen-oltp light": Work("igen-oltp", 1, 1),
    "igen-oltp heavy": Work("igen-oltp", 1, 8),
}


def works() -> list[str]:
    named = os.environ.get("IRONBENCH_BENCH_WORKLOADS", "")
    return named.split(",") if named else list(WORKS)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of two equal systems."""

    log_ratio: float
    took_s: float
    """Duration from reading the lab file to the finding, including data, starts and warm-ups."""
    records: tuple[Record, ...]
    directory: LabDirectory


def declaration(name: str, method: str, blocks: int = 1) -> Declaration:
    work = WORKS[name]
    seconds = MEASURED_S if blocks == 1 else MEASURED_S // 2
    text = LAB.format(
        workload=work.workload, scale=work.scale, clients=work.clients, seconds=seconds, method=HOW[method]
    )
    kind = "" if blocks == 1 else f"-{blocks}"
    series = f"{method}-{name.replace(' ', '-')}{kind}"
    return Declaration(series, text, lambda lab, secrets: against_itself(lab, secrets, blocks))


def block(name: str, method: str, number: int) -> Block | None:
    """Measures a block, or reuses an existing measurement; None if one of its trials was not usable."""
    declared = declaration(name, method)
    took, began = HOME / declared.name / f"{number:03d}.took", time.monotonic()
    found = finding(declared, number)
    if not took.exists():
        took.write_text(str(time.monotonic() - began))
    directory = LabDirectory(HOME / declared.name / f"{number:03d}")
    usable = tuple(one for one in directory.records() if one.status.comparable)
    if not found.ratios:
        return None
    return Block(math.log(found.ratios[0][1]), float(took.read_text()), usable, directory)


def measured(pairs: int) -> dict[tuple[str, str], list[Block]]:
    """(workload, method) → blocks; methods in random order within each pair, workloads interleaved."""
    dice, kept = random.Random(25), dict[tuple[str, str], list[Block]]()
    for number in range(pairs):
        for name in works():
            for method in dice.sample(METHODS, len(METHODS)):
                if (one := block(name, method, number)) is not None:
                    kept.setdefault((name, method), []).append(one)
    return kept


def main() -> None:
    pairs = number_from_environment("IRONBENCH_BENCH_PAIRS", 40)
    kept = measured(pairs)
    used = [one.metrics for blocks in kept.values() for block in blocks for one in block.records]
    for name in works():
        both = [kept.get((name, method), []) for method in METHODS]
        if min(map(len, both)) > 1:
            _compared(name, *both)
    frozen = [figures["frozen_cpu_s"] for figures in used if "frozen_cpu_s" in figures]
    bytes_ = [figures["frozen_io_bytes"] for figures in used if "frozen_io_bytes" in figures]
    report(
        f"CPU time of {len(frozen)} systems while frozen, in all", sum(frozen), at_most(0.0, "0"), f"{sum(frozen):g} s"
    )
    report(
        f"I/O of {len(bytes_)} systems while frozen, in all", sum(bytes_), at_most(0.0, "0"), f"{sum(bytes_):g} bytes"
    )


def _compared(name: str, by_slices: Sequence[Block], by_trials: Sequence[Block]) -> None:
    spreads = [statistics.stdev(one.log_ratio for one in blocks) for blocks in (by_slices, by_trials)]
    took = [statistics.fmean(one.took_s for one in blocks) for blocks in (by_slices, by_trials)]
    for method, spread, took_s in zip(METHODS, spreads, took, strict=True):
        report(f"{name}: spread of a block's log ratio, {method}", f"{spread:.4f} ({took_s:.1f} s a block)")
    ratio = spreads[0] ** 2 * took[0] / (spreads[1] ** 2 * took[1])
    freedom = len(by_slices) - 1, len(by_trials) - 1
    # 90% confidence interval by the F distribution, assuming normal noise.
    low, high = (ratio / float(special.fdtri(*freedom, p)) for p in (0.95, 0.05))
    timed = Between(ratio, low, high)
    report(f"{name}: time of slices over trials, same difference", timed, at_most(1 / 3, "≤ 1/3"), str(timed))
