"""`make demo`: does the log's place matter? A real PostgreSQL, its log on disk and in memory, 1 to 20 clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "ironbench-results" / "demo"
REPORT = ROOT / "ironbench-results" / "demo.html"
IRONBENCH = Path(sys.executable).parent / "ironbench"
SUSPECT = 3
"""Exit code of trials that something disturbed, such as other virtual machines; the report says so."""


def main() -> int:
    data, disk, memory = RESULTS / "data", RESULTS / "log", Path("/dev/shm") / f"ironbench-demo-{os.getuid()}"
    labels = []
    try:
        for label, log in (("log on disk", disk), ("log in memory", memory)):
            code = ironbench(
                "run", "igen-oltp", "--with", "scale=4", "--with", "weight=heavy", "--clients", "1,2,4,8,12,16,20",
                "--duration", "5s", "--warmup", "1s", "--checkpoint", "1500ms",
                "--memory", "512MB", "--data", str(data), "--log", str(log),
                "--label", label, "--results", str(RESULTS),
            )  # fmt: skip
            if code not in (0, SUSPECT):
                return code
            labels.append(label)
    finally:
        # A log in memory must not outlive the demo, and data without their log are of no use.
        for made in (data, disk, memory):
            shutil.rmtree(made, ignore_errors=True)
    return ironbench("report", *labels, "--results", str(RESULTS), "-o", str(REPORT))


def ironbench(*arguments: str) -> int:
    sys.stderr.write(f"$ ironbench {' '.join(arguments)}\n")
    return subprocess.run([IRONBENCH, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
