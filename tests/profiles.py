"""Synthetic profiles of a lab: a program with many functions, sampled at 99 Hz on two CPUs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from factories import Shelf
from labfactory import lab, trials

from ironbench.model.lab import Configuration, Lab
from ironbench.model.profile import BLOCKED, SampledStack
from ironbench.model.record import Record
from ironbench.records.evidence import PROFILE
from ironbench.study.profile import compare_profiles
from ironbench.study.profiled import ProfileComparison

HZ = 99
BURN = "main;serve;execute;project;burn"
BEFORE, AFTER = "extension=off", "extension=on"


@dataclass(frozen=True)
class Program:
    """Mean seconds per transaction by stack, on a CPU of the engine."""

    seconds: Mapping[str, float]
    waits: Mapping[str, float] = field(default_factory=dict)
    """Seconds per transaction in waits for an event, by stack."""


def program(functions: int = 150, whole_s: float = 300e-6, seed: int = 1) -> Program:
    """Returns a program whose functions take very different parts of a transaction's time."""
    dice = random.Random(seed)
    stacks = ["main;serve;execute"]
    for number in range(functions):
        stacks.append(f"{dice.choice(stacks[-40:])};f{number}")
    weights = [dice.lognormvariate(0, 1.2) for _ in stacks]
    times = {stack: whole_s * weight / sum(weights) for stack, weight in zip(stacks, weights, strict=True)}
    return Program(times | {"main;serve;read;__x64_sys_recvfrom_[k];tcp_recvmsg_[k]": whole_s / 10})


@dataclass
class ProfiledLab:
    """A lab of two configurations, and the stacks of its trials by id."""

    lab: Lab
    records: list[Record]
    stacks: dict[str, Sequence[SampledStack]]

    @property
    def shelf(self) -> Shelf:
        return Shelf(self.records, profiles=self.stacks)

    def sides(self) -> tuple[tuple[Configuration, list[Record]], tuple[Configuration, list[Record]]]:
        before, after = (
            (Configuration(name), [one for one in self.records if one.cell.name == name]) for name in (BEFORE, AFTER)
        )
        return before, after

    def compared(self) -> ProfileComparison:
        found = compare_profiles(*self.sides(), self.shelf, in_blocks=True)
        assert found is not None
        return found


def profiled(
    planted: Mapping[str, float],
    planted_waits: Mapping[str, float] | None = None,
    *,
    blocks: int = 6,
    seed: int = 1,
    cpu_s: float = 30.0,
    spread: float = 0.03,
    base: Program | None = None,
    reason: str = BLOCKED,
) -> ProfiledLab:
    """Measures the program against itself, with `planted` seconds per transaction added in the second configuration.

    `cpu_s`: CPU seconds that each trial is sampled. `spread`: SD of the time of a transaction from trial to trial; in
    addition, each function varies by the same amount. `reason`: reason of all waits.
    """
    dice, base = np.random.default_rng(seed), base or program()
    plan = lab({"extension": ("off", "on")}, blocks=blocks)
    records, stacks = [], {}
    for one in trials(plan, {BEFORE: 1000.0, AFTER: 1000.0}, files={PROFILE: "0" * 64}):
        more = one.cell.name == AFTER
        cpu = dict(base.seconds)
        waits = dict(base.waits)
        for stack, seconds in (planted if more else {}).items():
            cpu[stack] = cpu.get(stack, 0.0) + seconds
        for stack, seconds in ((planted_waits or {}) if more else {}).items():
            waits[stack] = waits.get(stack, 0.0) + seconds
        mood = math.exp(dice.normal(0, spread))
        transactions = cpu_s / (sum(cpu.values()) * mood)
        one.metrics["transactions"] = transactions
        found = []
        for stack, seconds in cpu.items():
            mean = seconds * mood * math.exp(dice.normal(0, spread)) * transactions * HZ
            if count := int(dice.poisson(mean)):
                found.append(SampledStack("cpu", "engine", "postgres", "", stack, "", count, count / HZ))
        for stack, seconds in waits.items():
            count = int(dice.poisson(transactions))
            whole = seconds * mood * math.exp(dice.normal(0, spread)) * count
            found.append(SampledStack("wait", "engine", "postgres", reason, stack, "", count, whole))
        records.append(one)
        stacks[one.id] = tuple(found)
    return ProfiledLab(plan, records, stacks)
