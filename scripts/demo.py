"""`make demo`: runs labs/demo.toml on this machine: how much would a faster WAL device help PostgreSQL?

`scripts/demo.py [DIR]`: the lab is stored in a new folder of DIR, by default ironbench-results/demo.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAB = ROOT / "labs" / "demo.toml"
IRONBENCH = Path(sys.executable).parent / "ironbench"
MEASURED = (0, 3)
"""Exit codes of a complete lab. 3: a trial was disturbed, as explained in the last line on stderr."""


def main() -> int:
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is handled by the lab, which keeps its results and ends
    results = Path(*sys.argv[1:2] or [ROOT / "ironbench-results" / "demo"])
    lab, report = results / time.strftime("%Y%m%dT%H%M%S"), results / "report.html"
    data = results / "data"
    try:
        code = ironbench("lab", "run", str(LAB), "--results", str(lab), IRONBENCH_DATA=str(data))
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return ironbench("report", str(lab), "-o", str(report)) if code in MEASURED else code


def ironbench(*arguments: str, **environment: str) -> int:
    sys.stderr.write(f"$ ironbench {' '.join(arguments)}\n")
    return subprocess.run([IRONBENCH, *arguments], check=False, env=os.environ | environment).returncode


if __name__ == "__main__":
    sys.exit(main())
