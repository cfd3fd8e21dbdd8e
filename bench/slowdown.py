"""Do slices detect a real slowdown of 10%, and never with the wrong sign? (target: at least 36 of 40 labs of 3 minutes)

Every transaction counts to `base` + `burn` on the server, so that `burn` adds a fixed time. First a lab determines
which `burn` makes transactions 10% slower; then 40 labs of ten blocks run with it, which takes about two hours. A
stopped series resumes. `IRONBENCH_BENCH_RUNS=8` runs eight labs.
"""

from __future__ import annotations

import math
from collections import Counter

from bench import power
from bench.figures import at_least, equal, report
from bench.series import HOME, Declaration, finding, number_from_environment, series_findings
from ironbench.model.finding import Conclusion

BLOCKS, SLOWER = 10, 0.10
BASE = 3000
SCRIPT = """\\set steps :base + :burn
SELECT count(*) FROM generate_series(1, :steps::int);
"""
LAB = (
    power.LAB.replace("@DATA@/power", "@DATA@/slowdown")
    .replace("work.sql", "count.sql")
    .replace("base = 1000", f"base = {BASE}")
    .replace('duration = "1s"', 'duration = "5s"')
    .replace('quiet = "2s"', 'quiet = "0s"\nrates = "none"\nmethod = "slices"\nslice = "0.5s"')
)


def main() -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "count.sql").write_text(SCRIPT)
    # Twice the effect is measured with twice the relative precision; the time of a transaction is proportional to its
    # steps.
    twice = finding(_declaration("slowdown-twice", round(2 * SLOWER * BASE)), 0)
    burn = round(SLOWER / (1 / twice.ratio - 1) * 2 * SLOWER * BASE)
    runs = number_from_environment("IRONBENCH_BENCH_RUNS", 40)
    kept = series_findings(_declaration(f"slowdown-{burn}", burn), runs)
    ended = Counter(one.conclusion for one in kept)
    ratio = math.exp(sum(math.log(one.ratio) for one in kept) / len(kept))
    what = f"{SLOWER:.0%} more time per transaction (really {1 / ratio - 1:.1%}), {runs} labs: called slower"
    report(what, ended[Conclusion.SLOWER], at_least(0.9 * runs, f"≥ 36 of 40, so {0.9 * runs:g}"))
    report("  called faster", ended[Conclusion.FASTER], equal(0))
    report("  faster, slower, equivalent, inconclusive", ", ".join(str(ended[one]) for one in Conclusion))


def _declaration(name: str, burn: int) -> Declaration:
    text = LAB.replace("@BURN@", str(burn)).replace("@BLOCKS@", str(BLOCKS))
    return Declaration(name, text)
