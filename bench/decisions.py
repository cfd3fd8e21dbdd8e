"""Measures error rates of decisions: the production code judges simulated labs whose true effect is known. Seeds are
fixed.

- Verdicts with interim analyses: false alarms, and coverage of the confidence interval at which a lab stops.
- The gate with a margin of 5%: true slowdowns just below the margin must not fail, and adding rounds until there is a
  decision must not increase the error rate.
- History that is analysed after each of 40 nights: series without a change, with independent and with correlated
  nights.

`IRONBENCH_BENCH_QUESTIONS=history,correlated` selects these two questions; `IRONBENCH_BENCH_SERIES` and
`IRONBENCH_BENCH_SEED` are the number of simulated series and their seed.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bench.figures import Target, at_most, report, within
from ironbench.model.finding import Conclusion, Finding
from ironbench.model.lab import Lab, Method, Stage
from ironbench.stats.change_points import LEAST, NIGHTS, changes
from ironbench.stats.intervals import wilson
from ironbench.study import verdict
from ironbench.study.gate import GateVerdict, gated, levels

LABS = 2_000
SERIES = int(os.environ.get("IRONBENCH_BENCH_SERIES", "400"))
SEED = int(os.environ.get("IRONBENCH_BENCH_SEED", "4"))
"""Seed of the simulated series."""
NOISE, MARGIN = 0.03, 0.05
"""Standard deviation of a trial's log value, and margin of the gate."""
SLOWDOWNS = (0.04, 0.045, 0.049)
BETWEEN, WITHIN = 0.02, 0.005
"""Standard deviations: between nights, and of the mean of a night's trials."""


def main() -> None:
    print(f"{LABS} simulated labs a figure, noise {NOISE:.0%} from trial to trial, margin {MARGIN:.0%}")
    print(f"{SERIES} simulated series a figure, seed {SEED}, read after each of {NIGHTS} nights")
    named = os.environ.get("IRONBENCH_BENCH_QUESTIONS", "")
    for name in filter(None, named.split(",")) if named else QUESTIONS:
        QUESTIONS[name]()


def lab_of(stages: Sequence[int], rounds: int = 1) -> Lab:
    """Builds a lab with one comparison, in which each round has the same stages."""
    every = [(blocks, number == 0 and round_ > 0) for round_ in range(rounds) for number, blocks in enumerate(stages)]
    planned = tuple(Stage(number, blocks, added) for number, (blocks, added) in enumerate(every, 1))
    return Lab(
        name="simulated",
        series="simulated",
        question="",
        factors=(),
        design="explicit",
        setups=(),
        baseline="old",
        comparisons=(("new", "old"),),
        method=Method(planned, 1, margin=MARGIN),
        claims=(),
        trials=(),
        source="",
    )


def pairs(dice: np.random.Generator, blocks: int, ratio: float) -> list[tuple[int, float, float]]:
    new, old = np.exp(NOISE * dice.standard_normal((2, blocks)))
    return [(block, float(ratio * new[block]), float(old[block])) for block in range(blocks)]


def judged(lab: Lab, measured: Sequence[tuple[int, float, float]], look: int) -> Finding:
    return verdict.judged(verdict.of_blocks("throughput", "new", "old", measured), lab.method, look)


def interim_analyses() -> None:
    """Simulates labs with interim analyses at 6, 12 and 18 blocks. A lab stops at the first conclusive verdict."""
    lab, planned = lab_of((6, 6, 6)), (6, 12, 18)
    for ratio in (1.0, 0.97):
        dice, ended, covered = np.random.default_rng(1), Counter[Conclusion](), 0
        for _ in range(LABS):
            measured = pairs(dice, planned[-1], ratio)
            for look, blocks in enumerate(planned, 1):
                found = judged(lab, measured[:blocks], look)
                if found.conclusion is not Conclusion.CANNOT_TELL:
                    break
            ended[found.conclusion] += 1
            covered += found.low <= ratio <= found.high
        words = "an A/A test" if ratio == 1.0 else f"a true ratio of {ratio:g}"
        if ratio == 1.0:
            tell(f"{words} called faster or slower, looks at {planned}", _wrong(ended), LABS, at_most(5.5))
        else:
            tell(f"{words} called faster, looks at {planned}", ended[Conclusion.FASTER], LABS, at_most(1.0))
        tell(f"{words}: the interval at the last look holds it", covered, LABS, within(93.0, 99.0))


def _wrong(ended: Counter[Conclusion]) -> int:
    return ended[Conclusion.FASTER] + ended[Conclusion.SLOWER]


def gate_margins() -> None:
    for stages in ((12,), (6, 6, 6)):
        lab, looks = lab_of(stages), len(stages)
        for slowdown in SLOWDOWNS:
            dice, ended = np.random.default_rng(2), Counter[GateVerdict]()
            for _ in range(LABS):
                measured = pairs(dice, sum(stages), 1 / (1 + slowdown))
                ended[_gate(lab, measured, looks)] += 1
            words = f"a true slowdown of {slowdown:.1%} stopped as slower, {' + '.join(map(str, stages))} blocks"
            tell(words, ended[GateVerdict.SLOWER], LABS, at_most(5.0))


def _gate(lab: Lab, measured: Sequence[tuple[int, float, float]], look: int) -> GateVerdict:
    found = judged(lab, measured, look)
    return gated(found, MARGIN, levels(lab, found, look)).verdict


def gate_rounds(rounds: int = 5, blocks: int = 12) -> None:
    """Simulates a user who adds rounds while the gate is inconclusive. The true slowdown equals the margin."""
    lab, dice, ended = lab_of((blocks,), rounds), np.random.default_rng(3), Counter[GateVerdict]()
    for _ in range(LABS):
        verdict = GateVerdict.CANNOT_TELL
        for look in range(1, rounds + 1):
            verdict = _gate(lab, pairs(dice, blocks, 1 / (1 + MARGIN)), look)
            if verdict is not GateVerdict.CANNOT_TELL:
                break
        ended[verdict] += 1
    words = f"a true slowdown of {MARGIN:.0%}, up to {rounds} rounds of {blocks} blocks"
    tell(f"{words}: passes", ended[GateVerdict.NOT_SLOWER], LABS, at_most(7.0))
    tell(f"{words}: stopped as slower", ended[GateVerdict.SLOWER], LABS, at_most(5.0))


def history(correlation: float, asked: Target | str) -> None:
    """Measures in which fraction of series without a change a change point is found in any night. Nights follow an
    AR(1) process."""
    dice, alarms = np.random.default_rng(SEED), 0
    for _ in range(SERIES):
        levels_ = dice.standard_normal(NIGHTS)
        for night in range(1, NIGHTS):
            levels_[night] = correlation * levels_[night - 1] + math.sqrt(1 - correlation**2) * levels_[night]
        values = list(BETWEEN * levels_ + WITHIN * dice.standard_normal(NIGHTS))
        alarms += any(changes(values[:seen], [WITHIN**2] * seen).points for seen in range(LEAST, NIGHTS + 1))
    tell(f"a change point in {NIGHTS} nights without a change, correlation {correlation:g}", alarms, SERIES, asked)


QUESTIONS: Mapping[str, Callable[[], None]] = {
    "interim": interim_analyses,
    "margins": gate_margins,
    "rounds": gate_rounds,
    "history": lambda: history(0.0, at_most(1.0)),
    "correlated": lambda: history(0.5, ""),
}


def tell(what: str, count: int, of: int, asked: Target | str) -> None:
    part = count / of
    low, high = wilson(part, of)
    report(what, round(100 * part, 2), asked, f"{100 * part:.2f} % ({100 * low:.2f} to {100 * high:.2f})")
