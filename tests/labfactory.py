"""Synthetic labs: a plan and its records; deterministic, independent of any engine."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from factories import DISK, OLTP, Shelf, record

from ironbench.model.finding import Noise
from ironbench.model.lab import Claim, Factor, Lab, Method, Stage
from ironbench.model.record import Budget, Record
from ironbench.model.system import Cell, Layout, Load, Setup, System, Trial
from ironbench.report.answer import answer
from ironbench.study.labstudy import lab_study
from ironbench.study.study import Study

SOURCE = """question = "Is the log what holds this database back?"

[workload]
name = "igen-oltp"

[vary]
log = ["disk", "memory"]

[measure]
repeats = 10
"""
SEED = 7
FIELDS = {
    "log": "layout.log",
    "clients": "load.clients",
    "memory": "system.memory",
    "ideal": "system.ideal",
    "engine": "system.engine",
    "version": "system.bin",
    "driver": "layout.data",
    "data": "layout.data",
}
"""Factor → the field that it sets. All other factors are settings of the engine."""


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
    """Returns a lab with every combination of the factors' values (`full`), or with one value changed at a time. The
    first configuration is the baseline."""
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
        factors=tuple(
            Factor(name, tuple(levels), ((FIELDS.get(name, f"system.set.{name}"),),) * len(levels))
            for name, levels in factors.items()
        ),
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
    plan: Lab,
    means: Mapping[str, float],
    spread: float = 0.03,
    drift: float = 0.0,
    observed: bool = False,
    **fields: object,
) -> list[Record]:
    """Returns a record for each planned trial, with throughput around its configuration's mean. `observed`: with time
    shares."""
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
            purpose="lab",
            stage=trial.stage,
            id=f"{plan.series}-{place}",
            series=plan.series,
            started_at=f"2026-11-21T{1 + place // 60:02}:{place % 60:02}:00",
            budget=Budget(busy * 0.62, busy * 0.2, 0.005, 0.0, busy * 0.1, 0.002, 1 - busy * 0.92 - 0.007),
            machine="m1",
            engine="e1",
            metrics=_times(trial.cell, dice) if observed else {},
            **fields,
        )
        found.append(replace(one, cell=trial.cell))
    return found


def _times(cell: Cell, dice: random.Random) -> dict[str, float]:
    """Returns shares of a client's time: the WAL takes much of it if it is on disk."""
    log = 0.02 if cell.levels.get("log") == "memory" else 0.55 * dice.gauss(1, 0.04)
    rest = 1 - log
    shares = {"log flush": log, "CPU": 0.5 * rest, "run queue": 0.15 * rest, "data read": 0.1 * rest}
    shares |= {"internal locks": 0.08 * rest, "client": 0.12 * rest, "other": 0.05 * rest}
    samples = {f"time_samples{{part={part}}}": 400.0 for part in shares if part not in ("CPU", "run queue")}
    return {f"time_share{{part={part}}}": share for part, share in shares.items()} | samples


def studied(plan: Lab, records: list[Record], noise: Sequence[Noise] = ()) -> Study:
    return lab_study(plan, records, Shelf(records), noise)


def said(study: Study) -> str:
    """Returns the answer without formatting."""
    return " ".join(answer(study).sentences)
