"""`make labs`: every lab in labs/ in full, one after another; called again, it goes on where it was stopped.

`make labs LABS="labs/spill.toml labs/upgrade.toml"` runs those alone, `LABS="--budget 15m labs/spill.toml"` within that
time. Each lies in ironbench-results/labs/full/NAME; remove that to measure it anew.
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
"""Exit codes of a lab that came to its end: 3, some of it is suspect; 4, an expectation is refuted."""
INTERRUPTED = 130


def main() -> int:
    """0 when every lab came to its end."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the running lab's, which keeps what it has and ends
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
    """A lab that has begun goes on; of one that is over it tells the answer again."""
    if (directory / "plan.json").exists():
        return ["resume", str(directory)]
    return ["run", str(file), "--results", str(directory), *budget]


if __name__ == "__main__":
    sys.exit(main())
