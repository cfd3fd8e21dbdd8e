"""Kills a lab repeatedly at random times, continues it each time, and checks the final state."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ironbench.host import processes, register
from ironbench.model.record import Record
from ironbench.records import progress
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.study.findings import findings

SOURCE = Path(__file__).parents[1] / "src"
COMMAND = [sys.executable, "-c", "from ironbench.cli import main; main()", "lab"]
PATIENCE_S = 60.0
MEASURING = 0.8
"""Fraction of kills whose delay is counted from the first trial instead of the start of the process."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of labs that were killed."""

    kills: int
    labs: int
    trials: int
    """Number of planned trials."""
    begun: int
    """Kills that occurred after a plan had been written."""
    faults: tuple[str, ...]
    """Violated requirements; empty if there are none."""


def killed(
    file: Path,
    home: Path,
    kills: int,
    longest_s: float,
    seed: int,
    environment: Mapping[str, str],
    say: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Runs `file` in as many directories below `home` as are needed for `kills` kills, each within `longest_s`."""
    dice, faults = random.Random(seed), list[str]()
    done, labs, trials, begun = 0, 0, 0, 0
    while done < kills:
        directory = LabDirectory(home / f"lab-{labs}")
        labs += 1
        while True:
            before = _record_ids(directory)
            # Some kills occur during the start, most during the measurement.
            kill = (dice.random() < MEASURING, dice.uniform(0, longest_s))
            ended = _once(directory, file, environment, kill if done < kills else None)
            faults += _half_blocks(directory)
            if not before <= _record_ids(directory):
                faults.append(f"{directory.path.name}: a record was lost")
            if ended is not None:
                break
            done += 1
            begun += int(directory.begun())
            say(f"kill {done} of {kills}: {len(_record_ids(directory))} trials kept in {directory.path.name}")
        if ended not in (0, 3):
            faults.append(f"{directory.path.name}: ended with {ended}")
        faults += _wrong(directory)
        trials += len(directory.lab().trials)
    return Outcome(done, labs, trials, begun, (*faults, *_left(environment)))


def _once(
    directory: LabDirectory, file: Path, environment: Mapping[str, str], kill: tuple[bool, float] | None
) -> int | None:
    """Starts the lab or continues it. Returns its exit code, or None if it was killed first.

    `kill`: whether the delay is counted from the first trial, and the delay in seconds.
    """
    words = (
        ["resume", str(directory.path)] if directory.begun() else ["run", str(file), "--results", str(directory.path)]
    )
    said = directory.path.with_suffix(".log")
    with said.open("wb") as log:
        running = subprocess.Popen(
            [*COMMAND, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
        )
    try:
        if kill is None:
            return running.wait(PATIENCE_S * 10)
        measuring, after_s = kill
        while measuring and running.poll() is None and b"\ntrial " not in said.read_bytes():
            time.sleep(0.01)
        return running.wait(after_s)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
        running.wait()
        return None
    finally:
        running.kill()
        running.wait()


def _record_ids(directory: LabDirectory) -> set[str]:
    return {record.id for record in directory.records()}


def _in_order(directory: LabDirectory) -> list[Record]:
    """Returns the records in the order in which they were written. The order is determined by file times, which are
    more precise than the start times in the records."""
    written = {
        record.id: (directory.store.path(record.id) / "record.json").stat().st_mtime_ns
        for record in directory.records()
    }
    return sorted(directory.records(), key=lambda record: written[record.id])


def _wrong(directory: LabDirectory) -> list[str]:
    """Returns the differences between a finished lab and its plan."""
    name, planned = directory.path.name, [(trial.cell.name, trial.block) for trial in directory.lab().trials]
    found = [(record.cell.name, record.block) for record in _in_order(directory) if record.status.comparable]
    faults = [
        f"{name}: {one.id} {one.status.value}: {wording.cause(one)}"
        for one in directory.records()
        if not one.status.comparable
    ]
    if sorted(found) != sorted(planned):
        faults.append(f"{name}: {len(found)} trials that count of {len(planned)} planned, {len(set(found))} places")
    elif found != planned:
        faults.append(f"{name}: not in the planned order")
    return faults


def _half_blocks(directory: LabDirectory) -> list[str]:
    """Returns the blocks that are part of a finding although one of their trials is missing."""
    if not directory.begun():
        return []
    lab, records = directory.lab(), directory.records()
    whole = {
        place for place, tries in progress.by_place(records).items() if any(one.status.comparable for one in tries)
    }
    return [
        f"{directory.path.name}: block {block} of {finding.cell} is half"
        for finding in findings(records, lab, len(directory.declared()) or 1)
        for block, _ in finding.ratios
        if not {(finding.cell, block), (finding.baseline, block)} <= whole
    ]


def _left(environment: Mapping[str, str]) -> list[str]:
    """Returns what still runs or remains after `ironbench cleanup`."""
    registered = register.directory(environment)
    deadline = time.monotonic() + PATIENCE_S
    while list(registered.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.1)  # a guard shuts its server down cleanly after the owner has died
    cleanup = [*COMMAND[:-1], "cleanup"]
    subprocess.run(cleanup, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    faults = [f"left in {registered}: {path.name}" for path in registered.iterdir()]
    data = Path(environment["IRONBENCH_DATA"])
    faults += [
        f"process {pid} works in {path}" for path in data.glob("*/cluster") for pid in processes.working_in(path)
    ]
    return faults
