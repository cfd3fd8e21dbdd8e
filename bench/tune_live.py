"""`ironbench tune` on a real PostgreSQL: are a missing index and `synchronous_commit` found, and nothing else?

Transactions of four clients read by an index and commit; eight factors vary, of which six have no effect on this work.
`IRONBENCH_BENCH_TUNES` sets the number of runs (2), `IRONBENCH_BENCH_BUDGET` the time of each (18m).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figures import equal, report
from bench.tuning import claimed
from ironbench.cli.verdict import SUSPECT
from ironbench.model.finding import Conclusion
from ironbench.records.labs import LabDirectory
from ironbench.study.archive import EMPTY
from ironbench.study.labstudy import lab_study

FILES = {
    "schema.sql": """
create table account (id int primary key, branch int not null, balance int not null, filler char(84) not null);
insert into account select i, i % 5000, 0, '' from generate_series(1, 300000) i;
create table movement (id bigint generated always as identity, account int not null, amount int not null);
create index account_branch on account (branch);
""",
    "without.sql": "drop index account_branch;\n",
    "work.sql": r"""
\set a random(1, 300000)
\set b random(0, 4999)
\set d random(-5000, 5000)
begin;
update account set balance = balance + :d where id = :a;
insert into movement (account, amount) values (:a, :d);
select sum(balance) from account where branch = :b;
end;
""",
    "tune.toml": """
question = "Which settings, and does the index, matter for these transactions?"
[system]
engine = "postgres"
[data]
setup = ["schema.sql"]
[workload]
name = "script"
files = ["work.sql"]
[load]
clients = 4
[vary.index]
kept = { data.setup = ["schema.sql"] }
dropped = { data.setup = ["schema.sql", "without.sql"] }
[vary.system.set]
synchronous_commit = ["on", "off"]
wal_compression = ["off", "pglz"]
work_mem = "4MB..16MB"
random_page_cost = "4..1.1"
commit_delay = "0..100"
checkpoint_completion_target = "0.9..0.5"
effective_io_concurrency = "1..16"
""",
}
EXPECTED = {"index": Conclusion.SLOWER, "synchronous_commit": Conclusion.FASTER}


def main() -> None:
    runs, budget = (
        os.environ.get(f"IRONBENCH_BENCH_{name}", usual) for name, usual in (("TUNES", "2"), ("BUDGET", "18m"))
    )
    right = 0
    with tempfile.TemporaryDirectory(prefix="ironbench-tune-") as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text)
        for run in range(int(runs)):
            found = _tuned(Path(folder), f"results-{run}", budget)
            report(f"run {run + 1}: claimed", ", ".join(f"{name} {end}" for name, end in found.items()))
            right += found == EXPECTED
    report("real tunes of 8 factors: both found, no other claimed", right, equal(int(runs), f"{runs} of {runs}"))


def _tuned(folder: Path, name: str, budget: str) -> dict[str, Conclusion]:
    command = [sys.executable, "-m", "ironbench.start", "tune", "tune.toml", "--budget", budget, "--results", name]
    ended = subprocess.run(command, cwd=folder, check=False).returncode
    if ended not in (0, SUSPECT):  # SUSPECT: flagged on a busy machine; its trials count
        raise RuntimeError(f"exit code {ended}")
    return claimed_conclusions(folder / name)


def claimed_conclusions(results: Path) -> dict[str, Conclusion]:
    directory = LabDirectory(results)
    study = lab_study(directory.lab(), directory.records(), EMPTY, stage=len(directory.declared()))
    return claimed(study)


if __name__ == "__main__":
    main()
