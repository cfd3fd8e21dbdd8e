"""A/A test on this machine: how often identical systems are called faster or slower (target: at most 6 of 60).

Runs 60 labs of igen-oltp of 6 blocks each, which takes about 35 minutes. `IRONBENCH_BENCH_PAIRS=3` runs only three
labs.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter

from bench.figures import at_most, report
from bench.series import Declaration, number_from_environment, series_findings
from ironbench.lab.noise import against_itself
from ironbench.model.finding import Conclusion

BLOCKS = 6
LAB = """
question = "Does a system differ from itself?"
[system]
engine = "postgres"
memory = "64MB"
[system.set]
synchronous_commit = "off"
[layout]
data = "@DATA@/aa"
[workload]
name = "igen-oltp"
[workload.with]
scale = 1
[load]
clients = 2
duration = "1.5s"
warmup = "0.3s"
[vary]
"load.clients" = [2, 3]
[measure]
seed = @SEED@
quiet = "2s"
"""


def main() -> None:
    report_series("igen-oltp", "noise-aa", LAB, number_from_environment("IRONBENCH_BENCH_PAIRS", 60))


def report_series(
    what: str, name: str, lab: str, pairs: int, *, allowed: float = 0.1, detectable: float | None = None
) -> None:
    """Reports A/A labs.

    Targets: at most the fraction `allowed` of the labs is called faster or slower, and in the median of the labs, 6
    blocks detect a difference of `detectable` (a fraction), if given.
    """
    series = Declaration(name, lab, lambda lab, secrets: against_itself(lab, secrets, BLOCKS))
    kept = series_findings(series, pairs)
    ended = Counter(one.conclusion for one in kept)
    false = ended[Conclusion.FASTER] + ended[Conclusion.SLOWER]
    most = int(pairs * allowed)
    report(
        f"A against A, {pairs} labs of {what}: called faster or slower", false, at_most(most, f"≤ {most} of {pairs}")
    )
    report("  faster, slower, equivalent, inconclusive", ", ".join(str(ended[one]) for one in Conclusion))
    detected = statistics.median(math.inf if one.detectable is None else one.detectable for one in kept)
    limit = at_most(detectable, f"≤ {detectable:.0%}") if detectable is not None else ""
    report("  difference that 6 blocks find, median of the labs", detected, limit, f"{detected:.1%}")
