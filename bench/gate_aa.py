"""Runs a gate for a change without effect on this machine: 20 labs of 12 blocks with slices, which takes about 75
minutes.

`IRONBENCH_BENCH_PAIRS=2` runs only two labs.
"""

from __future__ import annotations

from collections import Counter

from bench.figures import at_most, report
from bench.noise_aa import LAB
from bench.series import Declaration, number_from_environment, series_findings
from ironbench.lab.noise import against_itself
from ironbench.model.finding import Conclusion
from ironbench.study.gate import GateVerdict, gated

BLOCKS, MARGIN = 12, 0.05
BY_SLICES = (
    LAB.replace('duration = "1.5s"', 'duration = "5s"')
    .replace('quiet = "2s"', 'quiet = "0s"\nmethod = "slices"\nslice = "0.5s"')
    .replace("@DATA@/aa", "@DATA@/gate")
)
"""With 12 trials of 1.5 s per side, confidence intervals were ±5.6% to ±8.5%, so they could not exclude a slowdown of
5%."""


def main() -> None:
    labs = number_from_environment("IRONBENCH_BENCH_PAIRS", 20)
    series = Declaration("gate-aa-slices", BY_SLICES, lambda lab, secrets: against_itself(lab, secrets, BLOCKS))
    kept = series_findings(series, labs)
    for margin in (MARGIN, 2 * MARGIN):
        ended = Counter(gated(one, margin).verdict for one in kept)
        closed = labs - ended[GateVerdict.NOT_SLOWER]
        limit = at_most(labs * 0.05, f"≤ 5 % of {labs}") if margin == MARGIN else ""
        report(f"A against A, {labs} labs of {BLOCKS} blocks, margin {margin:.0%}: closed", closed, limit)
        report("  not slower, slower, inconclusive", ", ".join(str(ended[one]) for one in GateVerdict))
    called = Counter(one.conclusion for one in kept)
    report("  faster, slower, equivalent, inconclusive", ", ".join(str(called[one]) for one in Conclusion))
