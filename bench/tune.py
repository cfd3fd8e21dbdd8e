"""`ironbench tune` with simulated trials: are the two relevant settings found, and no others?

Eight settings, of which one gains 25% and one costs 30%, on a machine whose level varies by 10% from block to block and
decreases from trial to trial. Trials vary by 5% and by 15%. Everything except the trials is production code. Target: at
least 18 of 20. `IRONBENCH_BENCH_TUNES=200` makes 200 runs.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

from bench.figures import at_least, at_most, report
from bench.tuning import claimed, planned, tuned
from ironbench.model.finding import Conclusion
from ironbench.records.labs import LabDirectory

FILE = """
question = "Which settings matter?"
[system]
engine = "postgres"
[workload]
name = "igen-oltp"
[load]
clients = 4
[vary.system.set]
synchronous_commit = ["on", "off"]
shared_buffers = "32MB..128MB"
wal_compression = ["off", "pglz"]
random_page_cost = "4..1.1"
work_mem = "4MB..16MB"
commit_delay = "0..100"
full_page_writes = ["on", "off"]
effective_io_concurrency = "1..16"
"""
TRUTH = {"synchronous_commit": math.log(1.25), "random_page_cost": math.log(0.7)}
EXPECTED = {"synchronous_commit": Conclusion.FASTER, "random_page_cost": Conclusion.SLOWER}
NOISES = (0.05, 0.15)


def main() -> None:
    runs = int(os.environ.get("IRONBENCH_BENCH_TUNES", "20"))
    with tempfile.TemporaryDirectory(prefix="ironbench-tune-") as folder:
        file = Path(folder) / "tune.toml"
        file.write_text(FILE)
        for noise in NOISES:
            _figures(file, noise, runs)


def _figures(file: Path, noise: float, runs: int) -> None:
    right, more, missed, picked, trials = 0, 0, 0, 0, 0
    for run in range(runs):
        seed = round(noise * 1000) * 1000 + run
        lab = planned(file, seed)
        study = tuned(lab, LabDirectory(file.with_name(f"lab-{seed}")), TRUTH, noise, seed)
        found = claimed(study)
        right += found == EXPECTED
        more += bool(found.keys() - EXPECTED.keys())
        missed += bool(EXPECTED.keys() - found.keys())
        picked += bool({one.name for one in study.screen.matter} - EXPECTED.keys()) if study.screen else 0
        trials += study.trials
    what = f"tune of 8 settings, trials vary by {noise:.0%}, {runs} runs"
    least = math.ceil(0.9 * runs)
    report(f"{what}: both found, no other claimed", right, at_least(least, f"≥ {least} of {runs}"))
    report("  another claimed", more, at_most(runs // 10, f"≤ {runs // 10} of {runs}"))
    report("  one of the two not found", missed)
    report("  another chosen by the screen, before fresh blocks", picked)
    report("  trials of a run, mean", round(trials / runs))


if __name__ == "__main__":
    main()
