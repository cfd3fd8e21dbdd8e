"""Synthetic labs: a plan, the records it left and findings on them; deterministic, free of any engine."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from factories import DISK, OLTP, record

from ironbench.analyse.summarise import t_quantile
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Claim, Factor, Lab, Method, Stage
from ironbench.model.record import Budget, Record
from ironbench.model.system import Cell, Layout, Load, Setup, System, Trial

SOURCE = """question = "Is the log what holds this database back?"

[workload]
name = "igen-oltp"

[vary]
log = ["disk", "memory"]

[measure]
repeats = 10
"""
SEED = 7


def lab(
    factors: Mapping[str, Sequence[str]],
    *,
    blocks: int = 10,
    question: str = "Is the log what holds this database back?",
    clients: int = 8,
    skipped: Mapping[str, str] | None = None,
    metric: str = "throughput",
    claims: Sequence[Claim] = (),
    full: bool = True,
) -> Lab:
    """Every combination of `factors` (`full`) or one at a time; the first is the baseline."""
    combinations = _full(factors) if full else _one_at_a_time(factors)
    setups = tuple(_setup(levels, clients, skipped or {}) for levels in combinations)
    baseline = setups[0].cell.name
    measured = [setup for setup in setups if not setup.skipped]
    dice = random.Random(SEED)
    trials = [Trial(setup.cell, block) for block in range(blocks) for setup in dice.sample(measured, len(measured))]
    return Lab(
        name="log",
        series="20261121T010000-log",
        question=question,
        factors=tuple(Factor(name, tuple(levels)) for name, levels in factors.items()),
        design="full" if full else "one-at-a-time",
        setups=setups,
        baseline=baseline,
        comparisons=tuple((setup.cell.name, baseline) for setup in measured[1:]),
        method=Method((Stage(1, blocks),), SEED, metric=metric),
        claims=tuple(claims),
        trials=tuple(trials),
        source=SOURCE,
        estimate_s=3600.0,
        estimate_bytes=4 << 30,
    )


def _full(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    combinations: list[dict[str, str]] = [{}]
    for name, levels in factors.items():
        combinations = [{**one, name: level} for one in combinations for level in levels]
    return combinations


def _one_at_a_time(factors: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    base = {name: levels[0] for name, levels in factors.items()}
    return [base, *({**base, name: level} for name, levels in factors.items() for level in levels[1:])]


def _setup(levels: dict[str, str], clients: int, skipped: Mapping[str, str]) -> Setup:
    name = " ".join(f"{factor}={level}" for factor, level in levels.items())
    load = Load(int(levels.get("clients", clients)), duration_s=30.0, warmup_s=5.0)
    where = "/shm/l" if levels.get("log") == "memory" else None
    settings = {key: level for key, level in levels.items() if key not in ("log", "clients", "memory")}
    system = System("postgres", "lab", {**DISK.settings, **settings}, Layout("/srv/d", None, where), 256 << 20)
    return Setup(Cell(name, load, levels), system, OLTP, skipped.get(name, ""))


def trials(
    plan: Lab, means: Mapping[str, float], spread: float = 0.03, drift: float = 0.0, **fields: object
) -> list[Record]:
    """A record for each planned trial, its throughput around the mean of its cell."""
    dice = random.Random(SEED)
    found = []
    for place, trial in enumerate(plan.trials):
        setup = plan.setup(trial.cell.name)
        noise = math.exp(dice.gauss(0, spread)) * (1 + drift * trial.block)
        busy = 0.55 + 0.1 * dice.random()
        one = record(
            setup.system,
            trial.cell.load.clients,
            means[trial.cell.name] * noise,
            block=trial.block,
            id=f"{plan.series}-{place}",
            series=plan.series,
            started_at=f"2026-11-21T{1 + place // 60:02}:{place % 60:02}:00",
            budget=Budget(busy * 0.62, busy * 0.2, 0.005, 0.0, busy * 0.1, 0.002, 1 - busy * 0.92 - 0.007),
            machine="m1",
            engine="e1",
            **fields,
        )
        found.append(replace(one, cell=trial.cell))
    return found


def findings(plan: Lab, records: Sequence[Record], metric: str = "", dropped: Sequence[str] = ()) -> list[Finding]:
    """Ratios paired by block, as the analysis would give them."""
    wanted = metric or plan.method.metric
    found = []
    for cell, baseline in plan.comparisons:
        values = {
            (one.cell.name, one.block): one.metrics[wanted]
            for one in records
            if one.status.comparable and wanted in one.metrics
        }
        ratios = [
            (block, values[cell, block] / values[baseline, block])
            for block in range(plan.method.blocks)
            if (cell, block) in values and (baseline, block) in values
        ]
        found.append(_finding(plan, cell, baseline, wanted, ratios, tuple(dropped)))
    return found


def _finding(
    plan: Lab, cell: str, baseline: str, metric: str, ratios: list[tuple[int, float]], dropped: tuple[str, ...]
) -> Finding:
    logs = [math.log(ratio) for _, ratio in ratios]
    centre = statistics.fmean(logs) if logs else 0.0
    half = t_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.7
    low, high = math.exp(centre - half), math.exp(centre + half)
    margin = plan.method.margin
    up, down = (
        (Conclusion.FASTER, Conclusion.SLOWER) if metric == "throughput" else (Conclusion.SLOWER, Conclusion.FASTER)
    )
    conclusion = Conclusion.CANNOT_TELL
    if len(logs) >= 6:
        if low > 1:
            conclusion = up
        elif high < 1:
            conclusion = down
        elif low > 1 / (1 + margin) and high < 1 + margin:
            conclusion = Conclusion.EQUIVALENT
    unsure = conclusion is Conclusion.CANNOT_TELL
    return Finding(
        metric, cell, baseline, tuple(ratios), math.exp(centre), low, high, 0.95, conclusion, margin,
        math.exp(1.4 * half) - 1, 0.2 if unsure else 0.001, f"t interval on log ratios of {len(logs)} blocks",
        "24 blocks would resolve 5 % (about 50 min more)" if unsure else "", (), dropped, metric == plan.method.metric,
    )  # fmt: skip
