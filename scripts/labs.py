"""`make labs`: runs every lab in labs/ in full, one after another; when called again, it resumes where it was stopped.

`make labs LABS="labs/spill.toml labs/upgrade.toml"` runs only these, `LABS="--budget 15m labs/spill.toml"` within that
time. Results are in ironbench-results/labs/full/NAME; delete that directory to measure again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "ironbench-results" / "labs" / "full"
IRONBENCH = Path(sys.executable).parent / "ironbench"
MEASURED = (0, 3, 4)
"""Exit codes of a complete lab. 3: some of its trials are flagged; 4: an expectation is refuted."""
INTERRUPTED = 130


def main() -> int:
    """Returns 0 if every lab was completed."""
    # Ctrl-C is handled by the running lab, which keeps its results and ends
    signal.signal(signal.SIGINT, lambda *_: None)
    given = sys.argv[1:]
    budget = given[:2] if given[:1] == ["--budget"] else []
    named = [Path(word).absolute() for word in given[len(budget) :]]
    stopped = []
    for file in named or sorted((ROOT / "labs").glob("*.toml")):
        sys.stderr.write(f"\n== {file.stem}\n")
        code = subprocess.run([IRONBENCH, "lab", *words(file, RESULTS / file.stem, budget)], check=False).returncode
        if code == INTERRUPTED:
            return code
        if code not in MEASURED:
            stopped.append(file.stem)
    if stopped:
        sys.stderr.write(f"\ndid not come to their end: {', '.join(stopped)}; `make labs` tries them again\n")
    return int(bool(stopped))


def words(file: Path, directory: Path, budget: Sequence[str] = ()) -> list[str]:
    """Returns the arguments that start or resume a lab. Resuming a completed lab shows its answer again."""
    if (directory / "plan.json").exists():
        return ["resume", str(directory)]
    return ["run", str(file), "--results", str(directory), *budget]


if __name__ == "__main__":
    sys.exit(main())
