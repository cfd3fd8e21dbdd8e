"""A/A test on this machine: how often identical systems are called faster or slower (target: at most 6 of 60).

Runs 60 labs of igen-oltp of 6 blocks each, which takes about 35 minutes. `IRONBENCH_BENCH_PAIRS=3` runs only three
labs.
"""

from __future__ import annotations

from collections import Counter

from bench.figures import at_most, report
from bench.series import Declaration, asked, found
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
    told("igen-oltp", "noise-aa", LAB, asked("IRONBENCH_BENCH_PAIRS", 60))


def told(what: str, name: str, lab: str, pairs: int) -> None:
    """Reports A/A labs, of which at most a tenth may be called faster or slower."""
    series = Declaration(name, lab, lambda lab, secrets: against_itself(lab, secrets, BLOCKS))
    kept = found(series, pairs)
    ended = Counter(one.conclusion for one in kept)
    false = ended[Conclusion.FASTER] + ended[Conclusion.SLOWER]
    report(
        f"A against A, {pairs} labs of {what}: called faster or slower",
        false,
        at_most(pairs // 10, f"≤ {pairs // 10} of {pairs}"),
    )
    report("  faster, slower, equivalent, inconclusive", ", ".join(str(ended[one]) for one in Conclusion))
    spread = sorted(one.detectable or 0.0 for one in kept)
    report("  difference that 6 blocks find, median of the labs", f"{spread[len(spread) // 2]:.1%}")
