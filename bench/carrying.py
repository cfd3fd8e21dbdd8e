"""Measures export and import of 10,000 records in one file, and commands that answer questions about these records."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from bench.archive import RECORDS, REPEATS, fill, installed, timed
from bench.figures import at_most, report

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "fewer-faster-cores.toml"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ironbench-carrying-") as made:
        folder = Path(made)
        fill(folder / "here")
        environment = installed(folder)
        bundle, here = str(folder / "all.ibr"), str(folder / "here")
        took = timed(["record", "export", "--results", here, "-o", bundle], environment)
        report(f"export of {RECORDS} records, s", took)
        report(f"file of {RECORDS} records, MB", Path(bundle).stat().st_size / 1e6)
        imports = []
        for number in range(REPEATS):
            imports.append(timed(["record", "import", bundle, "--results", f"{made}/there{number}"], environment))
        report(f"import of {RECORDS} records, s", statistics.median(imports), at_most(10))
        _answers(here, environment)


def _answers(here: str, environment: dict[str, str]) -> None:
    calls = {
        "leaderboard": ["leaderboard", "--results", here],
        "cost of a systems file": ["cost", "--systems", str(EXAMPLE), "--results", here],
        "cost of a target": ["cost", "--target", "p99 < 10ms at 500 tps", "--results", here],
    }
    for what, words in calls.items():
        timed(words, environment)
        time.sleep(0.2)
        took = [timed(words, environment) for _ in range(REPEATS)]
        report(f"{what}, beside {RECORDS} records, s", statistics.median(took), at_most(0.5))


if __name__ == "__main__":
    main()
