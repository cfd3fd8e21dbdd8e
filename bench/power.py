"""Is a slowdown of the size that ironbench calls detectable actually found? (target: at least 90% of 40 real runs are
called slower)

Every transaction looks up an account and then counts to `base` + `burn`: a higher `burn` takes more CPU time per
statement. First, A/A blocks measure the variation, from which the stated minimum detectable effect of six blocks
follows. Then pairs of blocks determine which `burn` makes statements slower by exactly this effect. Then 40 labs of six
blocks each run with this `burn`. The same is done with a slowdown of 3%, which must never be called faster. Each part
takes about 15 minutes and resumes where it was stopped. `IRONBENCH_BENCH_RUNS=2` makes only two runs of each part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from bench.figures import at_least, equal, report
from bench.series import DATA, HOME, Declaration, finding, number_from_environment, series_findings
from ironbench.lab.noise import against_itself
from ironbench.model.finding import Conclusion, Finding
from ironbench.stats.multiplicity import LEVEL
from ironbench.stats.power import detectable

BLOCKS = 6
SPREAD_BLOCKS = 20
"""Number of A/A blocks. They determine the variation to within a third (chi square, 19 degrees of freedom)."""
FIRST_BURN = 2000
"""First value of `burn`: large enough that its cost is well above the noise. The cost of smaller values is
proportional."""
SMALL = 0.03
SCRIPT = """\\set aid random(1, 100000)
\\set steps :base + :burn
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SELECT count(*) FROM generate_series(1, :steps::int);
"""
LAB = """
question = "Is more work per statement seen?"
[system]
engine = "postgres"
memory = "64MB"
[layout]
data = "@DATA@/power"
[workload]
name = "script"
files = ["work.sql"]
[workload.define]
base = 1000
burn = 0
[load]
clients = 2
duration = "1s"
warmup = "0.3s"
[vary]
"workload.define.burn" = [0, @BURN@]
[measure]
repeats = @BLOCKS@
seed = @SEED@
quiet = "2s"
"""


def main() -> None:
    _load()
    runs = number_from_environment("IRONBENCH_BENCH_RUNS", 40)
    spread_blocks = number_from_environment("IRONBENCH_BENCH_BLOCKS", SPREAD_BLOCKS)
    noise = finding(
        Declaration("power-noise", _text(1, spread_blocks), lambda lab, own: against_itself(lab, own, spread_blocks)), 0
    )
    effect = detectable(_spread(noise), BLOCKS, LEVEL, len(noise.ratios))
    assert effect is not None
    report(f"minimum detectable effect of {BLOCKS} blocks, from {len(noise.ratios)} A/A blocks", f"{effect:.1%}")
    # The cost per step differs between the first hundreds of steps and later ones, so a second attempt is made close to
    # the effect.
    burn = FIRST_BURN
    for attempt in ("first", "second"):
        cost = finding(Declaration(f"power-{attempt}", _text(burn, spread_blocks)), 0)
        per_burn = (1 / cost.ratio - 1) / burn
        report(f"cost of {burn} steps, share of a transaction's time", f"{1 / cost.ratio - 1:.1%}")
        burn = max(1, round(effect / per_burn))
    for name, slower, wanted in (("effect", effect, "called slower"), ("small", SMALL, "called faster")):
        burn = max(1, round(slower / per_burn))
        kept = series_findings(Declaration(f"power-{name}-{burn}", _text(burn, BLOCKS)), runs)
        _tell(kept, slower, wanted)


def _tell(kept: Sequence[Finding], slower: float, wanted: str) -> None:
    ended = Counter(one.conclusion for one in kept)
    really = math.exp(sum(math.log(one.ratio) for one in kept) / len(kept))
    what = f"{slower:.1%} more time per transaction (really {1 / really - 1:.1%}), {len(kept)} labs: {wanted}"
    if wanted == "called slower":
        report(what, ended[Conclusion.SLOWER], at_least(0.9 * len(kept), "≥ 90 %"))
    else:
        report(what, ended[Conclusion.FASTER], equal(0))
    report("  faster, slower, equivalent, inconclusive", ", ".join(str(ended[one]) for one in Conclusion))


def _spread(found: Finding) -> float:
    """Returns the standard deviation of the log ratios."""
    logs = [math.log(ratio) for _, ratio in found.ratios]
    mean = sum(logs) / len(logs)
    return math.sqrt(sum((one - mean) ** 2 for one in logs) / (len(logs) - 1))


def _text(burn: int, blocks: int) -> str:
    return LAB.replace("@BURN@", str(burn)).replace("@BLOCKS@", str(blocks))


def _load() -> None:
    """Loads the accounts once, in the directory that the lab of the script uses."""
    from ironbench import engines, workloads
    from ironbench.model.plan import Plan
    from ironbench.model.system import Cell, Choice, Layout, Load, System, Trial
    from ironbench.printer import Printer
    from ironbench.trial import load

    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "work.sql").write_text(SCRIPT)
    place = DATA / "ironbench-bench" / "power"
    system, secrets = engines.get("postgres").validated(System("postgres", "power", {}, Layout(str(place))), 2)
    choice = Choice("select-only", workloads.get("select-only").validated({}))
    with engines.running(system, secrets, 2) as session:
        load.data_ready(session, Plan("power", system, choice, (Trial(Cell("one", Load()), 0),), 0), Printer())
