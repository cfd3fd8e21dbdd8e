"""Measures how often a gate fails for a change without effect, and for a slowdown of 10%: the production code judges
simulated labs. Seeds are fixed.

An inconclusive gate counts as failed (`--undecided fail`), because it also stops a harmless change.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from bench.figures import Target, at_least, at_most, report
from ironbench.model.lab import Method, Stage
from ironbench.study.gate import GateVerdict, gated
from ironbench.study.verdict import judged, of_blocks

LABS = 2_000
NOISE, MARGIN = 0.03, 0.05
BLOCKS = (12, 16, 20)


def verdicts(slowdown: float, blocks: int, seed: int, labs: int = LABS) -> Counter[GateVerdict]:
    """Simulates labs whose new version has 1 / (1 + slowdown) of the old throughput, and counts the gate verdicts."""
    dice = np.random.default_rng(seed)
    ended: Counter[GateVerdict] = Counter()
    for _ in range(labs):
        old, new = 1000 * np.exp(NOISE * dice.standard_normal((2, blocks)))
        pairs = [(block, float(new[block]) / (1 + slowdown), float(old[block])) for block in range(blocks)]
        found = judged(of_blocks("throughput", "new", "old", pairs), Method((Stage(1, blocks),), 1))
        ended[gated(found, MARGIN).verdict] += 1
    return ended


def main() -> None:
    print(f"{LABS} simulated labs a figure, noise {NOISE:.0%} from trial to trial, margin {MARGIN:.0%}")
    for blocks in BLOCKS:
        same = verdicts(0.0, blocks, 1)
        of_same: Target | str = at_most(5.0) if blocks == BLOCKS[0] else ""
        tell("an A/A test that does not pass", 100 - _percent(same, GateVerdict.NOT_SLOWER), blocks, of_same)
        tell("  of them called slower", _percent(same, GateVerdict.SLOWER), blocks)
        slower = verdicts(0.1, blocks, 2)
        of_slower: Target | str = at_least(95.0) if blocks == BLOCKS[0] else ""
        tell("a slowdown of 10% that does not pass", 100 - _percent(slower, GateVerdict.NOT_SLOWER), blocks, of_slower)
        tell("  of them called slower", _percent(slower, GateVerdict.SLOWER), blocks)


def tell(what: str, percent: float, blocks: int, asked: Target | str = "") -> None:
    report(f"{what}, {blocks} blocks", round(percent, 2), asked, f"{percent:.2f} %")


def _percent(ended: Counter[GateVerdict], verdict: GateVerdict) -> float:
    return 100 * ended[verdict] / ended.total()
