"""Measures slices with long transactions: compares measured throughput with the exact throughput, for transactions of
known length.

Clients on the null engine sleep for a random time that the script chooses, so the exact throughput is the number of
clients divided by the mean of that time. Each case consists of slices of one system; the ratio of two systems is the
ratio of two cases. All cases run at the same time, because they need no CPU. Late timers make transactions longer, so
on a busy machine, the throughput of short transactions is lower than the exact throughput.

A single case with random lengths has too few transactions to show a bias of 1%. The target therefore applies to the
mean over all lengths of one distribution, weighted by precision: its whole 95% confidence interval must be within 1% of
the truth.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import scipy.stats

from bench.figures import Between, report, within
from ironbench import _core
from ironbench.model.system import Load
from ironbench.trial.drive.run import Tasks, compiled_plan
from ironbench.workloads import ScriptSource

CLIENTS, TURNS = 500, 24
START_UP_S, SLICE_S = 0.1, 1.0
LENGTHS_S = (0.05, 0.2, 0.5, 0.75, 1.0, 2.0)
FASTER = 0.926
"""Throughput of the second system relative to the first."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    script: str
    mean_s: float


def cases(mean_s: float) -> list[Case]:
    us = round(mean_s * 1e6)
    return [
        Case("fixed", f"\\sleep {us} us\nSELECT 1;\n", us / 1e6),
        Case("even, ± 50 %", f"\\set us random({us // 2}, {us + us // 2})\n\\sleep :us us\nSELECT 1;\n", us / 1e6),
        Case(
            "one of ten eleven times as long",
            f"\\set us {us // 2} * case when random(1, 10) = 1 then 11 else 1 end\n\\sleep :us us\nSELECT 1;\n",
            (us // 2) * 2 / 1e6,
        ),
    ]


def main() -> None:
    pairs = [(length_s, one) for length_s in LENGTHS_S for one in zip(*map(cases, _both(length_s)), strict=True)]
    with ThreadPoolExecutor(2 * len(pairs)) as pool:
        begun = [
            [pool.submit(rates, one, 2 * number + side) for side, one in enumerate(both)]
            for number, (_, both) in enumerate(pairs)
        ]
        found = [[one.result() for one in both] for both in begun]
    biases: dict[str, list[Between]] = {}
    for (length_s, (first, second)), (a, b) in zip(pairs, found, strict=True):
        exact = first.mean_s / second.mean_s
        measured = sum(b) / sum(a) / exact
        error = math.hypot(*(_error(one) / (sum(one) / len(one)) for one in (a, b)))
        ratio = _between(measured, measured * error)
        biases.setdefault(first.name, []).append(ratio)
        report(f"{length_s:g} s, {first.name}: measured / exact ratio", ratio)
        report("  throughput, measured / exact", sum(a) / len(a) * first.mean_s / CLIENTS)
    for name, ratios in biases.items():
        weights = [1 / max(one.high - one.low, 1e-9) ** 2 for one in ratios]
        mean = sum(weight * one.ratio for weight, one in zip(weights, ratios, strict=True)) / sum(weights)
        half = 0.5 / math.sqrt(sum(weights))
        report(
            f"{name}, all lengths: measured / exact ratio", Between(mean, mean - half, mean + half), within(0.99, 1.01)
        )


def rates(case: Case, seed: int) -> list[float]:
    """Returns the throughput of each slice."""
    progress = _core.Progress()
    progress.by_turns()
    load = Load(CLIENTS, duration_s=3600.0, seed=seed)
    plan = compiled_plan({"kind": "null", "service_ns": 0}, Tasks((ScriptSource("one", case.script),)), load, ())
    found = []
    with ThreadPoolExecutor(1) as pool:
        driven = pool.submit(_core.drive, plan, progress)
        assert progress.rested()
        for turn in range(TURNS + 1):
            progress.begin_turn(START_UP_S, SLICE_S if turn else 0.0, [])
            turned = progress.rested()
            assert turned is not None
            transactions, _, busy_s, *_ = turned
            found += [transactions * CLIENTS / busy_s] if turn else []
        progress.finish()
        driven.result()
    return found


def _both(length_s: float) -> tuple[float, float]:
    return length_s, length_s / FASTER


def _between(ratio: float, error: float) -> Between:
    """Slices are repeats, so Student's t applies to their mean, assuming that both systems have the same variance."""
    half = float(scipy.stats.t.ppf(0.975, TURNS - 1)) * error
    return Between(ratio, ratio - half, ratio + half)


def _error(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return float((sum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values)) ** 0.5)
