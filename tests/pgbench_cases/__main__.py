"""`make pgbench-cases PGBENCH_TESTS=DIR`: prints a table of cases and every disagreement; exits with 1 if there is
one."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from raw_server import RawServer

from pgbench_cases import cases
from pgbench_cases.compare import Both, Verdict
from pgbench_cases.differences import TITLES

PROGRAMS = "/usr/lib/postgresql/15/bin"


def verdicts(directory: Path, programs: Path, names: tuple[str, ...] = cases.FILES) -> Iterator[tuple[str, Verdict]]:
    """Yields every case of the files; each file uses separate servers. `programs`: directory of that PostgreSQL's
    programs."""
    for name in names:
        with (
            RawServer(programs=programs) as theirs,
            RawServer(programs=programs) as ours,
            tempfile.TemporaryDirectory(prefix="ironbench-cases-") as scratch,
        ):
            both = Both(str(programs / "pgbench"), Path(scratch), theirs, ours)
            for step in cases.read(directory / name):
                if isinstance(step, cases.Preparation):
                    both.prepare(step)
                else:
                    yield name, both.run(step)


def main() -> int:
    directory = Path(os.environ.get("PGBENCH_TESTS", ""))
    programs = Path(os.environ.get("PGBENCH_PROGRAMS") or PROGRAMS)
    if not os.environ.get("PGBENCH_TESTS") or cases.missing(directory):
        print(cases.HOW_TO_GET, file=sys.stderr)
        return 2
    if not (programs / "pgbench").exists():
        print(f"{programs} holds no pgbench: apt-get install postgresql-15, or PGBENCH_PROGRAMS=DIR", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the reference servers are stopped however the run ends
    counts: Counter[tuple[str, str]] = Counter()
    for name, verdict in verdicts(directory, programs):
        counts[name, verdict.word] += 1
        counts[name, "cases"] += 1
        if verdict.word == "documented difference":
            counts["", verdict.difference] += 1
        if verdict.word != "agree":
            text = "; ".join(verdict.disagreements) or TITLES.get(verdict.difference, "the case says nothing about us")
            print(f"{verdict.word}: {verdict.case.name}: {text}", flush=True)
    words = ("cases", "agree", "documented difference", "disagree", "pgbench itself fails")
    print(f"\n{'':30}" + "".join(f"{word:>23}" for word in words))
    for name in cases.FILES:
        print(f"{name:30}" + "".join(f"{counts[name, word]:>23}" for word in words))
    print("\nDocumented differences (docs/workloads/scripts.md):")
    for (file, key), n in sorted(counts.items()):
        if not file:
            print(f"{n:5}  {TITLES[key]}")
    return 1 if any(counts[name, word] for name in cases.FILES for word in words[3:]) else 0


if __name__ == "__main__":
    sys.exit(main())
