"""The figures of `python -m bench verdicts` with fewer labs; its array code decides as the production code does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench import simulated as sim
from bench.verdicts import MARGIN, NOISE, PLANS, TURNS, Figure, coverage, false_alarms, false_equivalents, power, slices
from ironbench.model.finding import Conclusion
from ironbench.model.lab import Method, Stage
from ironbench.study.interim import should_stop
from ironbench.study.verdict import judged, of_blocks

CODES = {
    Conclusion.CANNOT_TELL: sim.CANNOT_TELL,
    Conclusion.FASTER: sim.FASTER,
    Conclusion.SLOWER: sim.SLOWER,
    Conclusion.EQUIVALENT: sim.EQUIVALENT,
}
FEW = 4000
SLACK = 1.0
"""Percentage points: three standard errors of 5% in 4,000 labs."""


@pytest.mark.parametrize("planned", [(6,), (6, 10), (3, 6, 9)])
def test_simulated_labs_are_judged_as_real_ones(planned: tuple[int, ...]) -> None:
    labs = sim.simulated(sim.normal, 150, planned[-1], NOISE, math.log(1.02), seed=3)
    stages = tuple(Stage(n, b - a) for n, (a, b) in enumerate(zip((0, *planned), planned, strict=False), 1))
    method = Method(stages, seed=1, margin=MARGIN)
    expected = []
    for logs in labs.logs[:, :, 0]:
        for stage, blocks in enumerate(planned, 1):
            pairs = [(block, math.exp(log), 1.0) for block, log in enumerate(logs[:blocks])]
            one = judged(of_blocks("throughput", "A", "B", pairs), method, stage)
            if should_stop([one], stage, len(planned)):
                break
        expected.append(CODES[one.conclusion])
    assert sim.verdicts(labs, planned, MARGIN).tolist() == expected
    assert len(set(expected)) >= 3


def held(figure: Figure) -> None:
    assert figure.low - SLACK <= figure.value <= figure.high + SLACK, figure


@pytest.mark.parametrize("name", sim.MACHINES)
def test_few_false_alarms_whatever_the_noise(name: str) -> None:
    for figure in false_alarms(name, sim.MACHINES[name], FEW):
        held(figure)


@pytest.mark.parametrize("name", sim.MACHINES)
def test_few_false_equivalents_whatever_the_noise(name: str) -> None:
    for figure in false_equivalents(name, sim.MACHINES[name], FEW):
        held(figure)


@pytest.mark.parametrize("name", sim.MACHINES)
def test_intervals_cover_and_the_stated_effect_is_found(name: str) -> None:
    for figure in (*coverage(name, sim.MACHINES[name], FEW), *power(name, sim.MACHINES[name], FEW)):
        held(figure)


@pytest.mark.parametrize("name", TURNS)
def test_level_and_coverage_hold_by_slices_too(name: str) -> None:
    for figure in slices(name, TURNS[name], 4 * FEW):
        held(figure)


def test_both_cells_meet_the_machine_in_random_order() -> None:
    labs = sim.simulated(lambda dice, n, trials: np.tile(np.arange(trials, dtype=float), (n, 1)), 1000, 5, 1.0, seed=2)
    assert set(np.unique(labs.logs)) == {-1.0, 1.0}
    assert abs(labs.logs.mean()) < 0.05
    assert PLANS["analyses at 6 and 10"] == (6, 10)
