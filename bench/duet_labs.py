"""Labs by duet against labs by slices, of two equal systems: what is called different, and how precise a block is.

Labs of ten blocks take turns, in the same hour. The time that a method needs to find a difference goes with the
variance of a block's log ratio times the time that a block takes. Three labs of each method and workload take about
forty minutes. `IRONBENCH_BENCH_PAIRS=1` runs one of each, `IRONBENCH_BENCH_WORKLOADS=select-only` this one.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from scipy import special

from bench import slices
from bench.figures import Between, said
from bench.series import HOME, Declaration, asked, finding
from ironbench.analyse.subjects import DUET, method
from ironbench.experiment.noise import against_itself
from ironbench.model.finding import Conclusion
from ironbench.model.record import DUET_VARIANCE
from ironbench.record.labs import LabDirectory

BLOCKS, LABS = 10, 3
METHODS = ("duet", "slices")
WORKS = ("select-only", "tpcb-like")


@dataclass(frozen=True, slots=True)
class Series:
    """The labs of one workload and method."""

    logs: tuple[tuple[float, ...], ...]
    """Log ratios of blocks, by lab."""
    block_s: float
    """What a block after the first one takes, median."""
    called: Counter[Conclusion]
    pilots: tuple[float, ...]
    at_once: int
    """Labs that a pilot made a duet."""

    @property
    def variance(self) -> float:
        return statistics.fmean(statistics.variance(one) for one in self.logs)

    @property
    def freedom(self) -> int:
        return sum(len(one) - 1 for one in self.logs)


def declaration(name: str, how: str) -> Declaration:
    work = slices.WORKS[name]
    text = slices.LAB.format(
        workload=work.workload,
        scale=work.scale,
        clients=work.clients,
        seconds=slices.MEASURED_S,
        method=f'method = "{how}"\nslice = "500ms"',
    )
    return Declaration(f"duet-labs-{how}-{name}", text, lambda lab, secrets: against_itself(lab, secrets, BLOCKS))


def series(name: str, how: str, labs: int) -> Series:
    """Of labs that were measured, or are now."""
    declared = declaration(name, how)
    found = [finding(declared, number) for number in range(labs)]
    pilots, gaps, at_once = [], [], 0
    for number in range(labs):
        records = list(LabDirectory(HOME / declared.name / f"{number:03d}").records())
        began = sorted({(one.block, datetime.fromisoformat(one.started_at).timestamp()) for one in records})
        firsts = sorted(min(at for block, at in began if block == wanted) for wanted in {block for block, _ in began})
        gaps += [after - before for before, after in itertools.pairwise(firsts[1:])]
        pilots += [share for one in records[:1] if (share := one.metrics.get(DUET_VARIANCE)) is not None]
        at_once += method(records[0]) == DUET
    logs = tuple(tuple(math.log(ratio) for _, ratio in one.ratios) for one in found)
    return Series(logs, statistics.median(gaps), Counter(one.conclusion for one in found), tuple(pilots), at_once)


def main() -> None:
    labs = asked("IRONBENCH_BENCH_PAIRS", LABS)
    dice = random.Random(25)
    names = [name for name in slices.works() if name in WORKS]
    for number in range(labs):
        for name in names:
            for how in dice.sample(METHODS, len(METHODS)):
                finding(declaration(name, how), number)
    for name in names:
        _compared(name, [series(name, how, labs) for how in METHODS])


def _compared(name: str, both: Sequence[Series]) -> None:
    for how, of in zip(METHODS, both, strict=True):
        spread = f"{math.sqrt(of.variance):.4f} ({of.block_s:.1f} s a block)"
        said(f"{name}: spread of a block's log ratio, {how}", spread)
        counts = ", ".join(str(of.called[one]) for one in Conclusion)
        said(f"{name}: {how}, {len(of.logs)} labs: faster, slower, equivalent, cannot tell", counts)
    duet, turns = both
    pilots = ", ".join(f"{one:.2f}" for one in duet.pilots)
    said(f"{name}: pilots that chose a duet, of {len(duet.logs)}", duet.at_once, "", f"{duet.at_once} ({pilots})")
    ratio = duet.variance * duet.block_s / (turns.variance * turns.block_s)
    low, high = (ratio / float(special.fdtri(duet.freedom, turns.freedom, p)) for p in (0.95, 0.05))
    timed = Between(ratio, low, high)
    said(f"{name}: time of a duet over slices, same difference", timed, "", str(timed))
