"""Series of many small labs, each in its own directory, so that a stopped series can be continued."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ironbench.lab import declare, freeze
from ironbench.lab import loop as pipeline
from ironbench.model.finding import Finding
from ironbench.model.lab import Lab
from ironbench.model.record import Record, Status
from ironbench.model.secrets import Secrets
from ironbench.printer import Printer
from ironbench.records.labs import LabDirectory
from ironbench.study.findings import findings

HOME = Path(os.environ.get("IRONBENCH_BENCH_HOME", "bench-results"))
"""Directory of all series; delete it to start again."""
DATA = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else Path("/tmp")
"""Data are in memory, because these series test verdicts and not disks."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """The lab file of a series; `turn` modifies each lab before it runs."""

    name: str
    text: str
    turn: Callable[[Lab, dict[str, Secrets]], tuple[Lab, dict[str, Secrets]]] = lambda lab, secrets: (lab, secrets)

    def lab(self, number: int) -> tuple[Lab, dict[str, Secrets]]:
        """Returns the lab with this number, with its own seed and trial order."""
        path = HOME / f"{self.name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text.replace("@SEED@", str(number)).replace("@DATA@", str(DATA / "ironbench-bench")))
        lab, secrets = declare.lab(path)
        # Observed trials are disabled: no explanation of differences is needed, and their duration matters.
        plain = replace(lab, series=f"{self.name}-{number}", method=replace(lab.method, observed=False))
        return self.turn(plain, secrets)


def measured(declaration: Declaration, number: int) -> tuple[LabDirectory, list[Record]]:
    """Returns a lab of the series and its records; measures trials that have not been measured yet."""
    lab, secrets = declaration.lab(number)
    directory = LabDirectory(HOME / declaration.name / f"{number:03d}")
    with directory.locked(), _quietly() as printer:
        if not directory.begun():
            directory.begin(freeze.freeze(lab, secrets, directory.store))
        records = pipeline.conduct(secrets, directory, printer)
    if records[-1].status is Status.CUT_SHORT:
        raise KeyboardInterrupt
    return directory, list(records)


def finding(declaration: Declaration, number: int) -> Finding:
    """Returns the first declared finding of a lab of the series."""
    directory, records = measured(declaration, number)
    return findings(records, directory.lab(), len(directory.declared()), others=())[0]


def series_findings(declaration: Declaration, count: int) -> list[Finding]:
    """Returns the findings of `count` labs; prints each and the remaining time on stderr."""
    kept: list[Finding] = []
    began_s = time.monotonic()
    for number in range(count):
        kept.append(finding(declaration, number))
        left_s = (time.monotonic() - began_s) / len(kept) * (count - len(kept))
        one = kept[-1]
        sys.stderr.write(
            f"  {declaration.name} {number + 1} of {count}: {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f}), "
            f"{one.conclusion.value}; {left_s / 60:.0f} min left\n"
        )
    return kept


def number_from_environment(variable: str, default: int) -> int:
    """Returns the number of labs, which an environment variable may reduce to try a series."""
    return int(os.environ.get(variable, str(default)))


@contextmanager
def _quietly() -> Iterator[Printer]:
    with Path(os.devnull).open("w") as nowhere:
        yield Printer(nowhere, nowhere)
