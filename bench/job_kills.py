"""Kills jobs of every kind at random times (target: nothing left behind, no record lost or duplicated).

Each kill affects either the process alone or its process group. The kills of a job are spread over its life: the first
occurs while it starts or writes its first records, the last when most of its records are written. After `ironbench
cleanup`, the benchmark searches for processes, mounts, loop devices, shared memory and temporary files of the job, and
continues it. Takes about 10 minutes with three kills for each kind. `IRONBENCH_BENCH_KILLS=1` sets the number,
`IRONBENCH_BENCH_KINDS=run,populate` selects kinds.
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

from bench.figures import at_least, equal, report
from bench.job_kinds import (
    COMMAND,
    KINDS,
    PATIENCE_S,
    Kind,
    ended,
    environment,
    queued,
    serving,
    started,
    until,
    words_of,
)
from bench.series import DATA, number_from_environment
from ironbench.model.purpose import AUXILIARY
from ironbench.records import Store
from ironbench.records.labs import LabDirectory
from ironbench.serve.queue import Queue

AFTER_RECORD_S = 1.5
"""Maximum time from the record that a kill waits for to the kill; a trial takes about one second."""
LEAVING_S = 30.0
"""Seconds to wait for the processes of a killed job to end, because guards shut servers down cleanly after their owner
has died."""


@dataclass(slots=True)
class Killed:
    """A job that is killed repeatedly, and the problems found after each kill."""

    kind: Kind
    home: Path
    dice: random.Random
    faults: list[str] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)
    """Records that existed after a kill: id → content."""
    environment: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    shared: set[Path] = field(default_factory=set)
    """Shared memory that the job's processes had mapped."""

    def __post_init__(self) -> None:
        self.environment = environment(self.home, self.mark)
        for name, text in self.kind.files.items():
            (self.home / name).write_text(text)
        (self.home / "storage").mkdir(exist_ok=True)
        (self.home / "mounted").mkdir(exist_ok=True)

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def log(self) -> Path:
        return self.home / "log"

    def kill(self, life: float) -> str:
        """Starts or continues the job and kills it after it has written the fraction `life` of its records. Returns a
        description."""
        records = int(life * (self.kind.trials or 0))
        after_s = self.dice.uniform(0.0, AFTER_RECORD_S) if records else self.dice.uniform(0.2, self.kind.longest_s)
        group = self.dice.random() < 0.5
        if self.kind.serves:
            with serving(self.results, self.environment, self.log) as (server, address):
                if not Queue(self.results).entries():
                    queued(address, self.kind.serves.removesuffix(".toml"), (self.home / self.kind.serves).read_text())
                self._strike(server, records, after_s, group)
        else:
            with started(self._words(), self.environment, self.log) as running:
                self._strike(running, records, after_s, group)
        self._left()
        self._records()
        when = f"{records} records" if records else "the start"
        return f"{'group' if group else 'process'} {after_s:.1f} s after {when}"

    def finish(self) -> None:
        """Continues the job to its end and checks the records."""
        if self.kind.serves:
            with serving(self.results, self.environment, self.log):
                if not ended(Queue(self.results)):
                    self.faults.append("the queue does not end")
        elif self.kind.trials is not None or "mount" not in self.kind.begin:
            with started(self._words(), self.environment, self.log) as running:
                if not until(lambda: running.poll() is not None):
                    self.faults.append("the job does not end")
                elif running.returncode not in (0, 3, 4):
                    self.faults.append(f"ended with {running.returncode}: {self.log.read_text()[-600:]}")
        self._left()
        self._records()
        usable = [one for one in self._store().all() if one.status.comparable]
        places = Counter((one.cell.name, one.block, one.purpose) for one in usable)
        planned = self._planned()
        measured = sum(count for (_, _, purpose), count in places.items() if purpose not in AUXILIARY)
        if planned is not None and measured != planned:
            self.faults.append(f"{measured} usable trials of {planned}: {sorted(places)}")
        self.faults += [f"{place} was measured {count} times" for place, count in places.items() if count > 1]

    def _planned(self) -> int | None:
        """Returns the number of trials that the job measures; None if it writes no records."""
        directory = LabDirectory(self._store().path("x").parents[1])
        return len(directory.lab().trials) if self.kind.lab and directory.begun() else self.kind.trials

    def _words(self) -> list[str]:
        if self.kind.lab and LabDirectory(self.results).begun():
            return words_of(self.kind.resume, self.home, self.results)
        words = words_of(self.kind.begin, self.home, self.results)
        return [*words, "--resume"] if "run" in self.kind.begin[:1] and self._resumable() else words

    def _resumable(self) -> bool:
        return any((self.results / "trials").glob("[!.]*")) if self.results.is_dir() else False

    def _store(self) -> Store:
        if self.kind.serves:
            found = list((self.results / "labs").glob("*/trials"))
            return Store(found[0].parent) if found else Store(self.results)
        return Store(self.results)

    def _strike(self, running: Popen[Any], records: int, after_s: float, group: bool) -> None:
        until(lambda: running.poll() is not None or self._written() >= records)
        with suppress(subprocess.TimeoutExpired):
            running.wait(after_s)
        mapped = {path for pid in self._processes() for path in _mapped(pid)}
        self.shared |= {path for path in mapped if not path.is_relative_to(self.home)}
        with suppress(ProcessLookupError):
            if group:
                os.killpg(running.pid, signal.SIGKILL)
        running.kill()
        running.wait()

    def _written(self) -> int:
        """Returns the number of records of the job so far."""
        return sum(1 for _ in self.results.glob("**/trials/[!.]*/record.json"))

    def _processes(self) -> list[int]:
        """Returns the processes that inherited the mark, or whose command line contains the home directory."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                told = (entry / "environ").read_bytes(), (entry / "cmdline").read_bytes()
                if self.mark.encode() in told[0] or str(self.home).encode() in told[1]:
                    found.append(int(entry.name))
        return [pid for pid in found if pid != os.getpid()]

    def _left(self) -> None:
        """Records what remains after `cleanup` but should not."""
        if self.kind.serves:
            self._end_queued()
        until(lambda: not self._processes(), LEAVING_S)
        done = subprocess.run(
            [*COMMAND, "cleanup", "--results", str(self.results)],
            env=self.environment, cwd=self.home, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        if done.returncode:
            self.faults.append(f"cleanup ended with {done.returncode}: {done.stderr[-300:]}")
        until(lambda: not self._processes(), 5.0)
        self.faults += [f"process left: {_command(pid)}" for pid in self._processes()]
        self.faults += [f"mounted: {line}" for line in _lines("/proc/self/mountinfo") if str(self.home) in line]
        loops = [file.read_text().strip() for file in Path("/sys/block").glob("loop*/loop/backing_file")]
        self.faults += [f"loop device of {file}" for file in loops if str(self.home) in file]
        self.faults += [f"shared memory left: {path}" for path in self.shared if path.exists()]
        self.faults += [f"left: {path}" for path in (self.home / "tmp").iterdir()]
        self.faults += [f"left: {path}" for path in (self.home / "runtime").glob("ironbench/*")]
        unfinished = [*self.results.rglob(".writing-*"), *self.results.rglob("*.tmp"), *self.results.rglob(".*.live")]
        self.faults += [f"left: {path}" for path in unfinished]

    def _end_queued(self) -> None:
        """Ends the labs that the server started, which intentionally outlive the server: kills them in half of the
        cases, and otherwise waits for their end."""
        if self.dice.random() < 0.5:
            for pid in self._processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            until(lambda: not self._processes())

    def _records(self) -> None:
        store = self._store()
        now = {one.id: (store.path(one.id) / "record.json").read_bytes() for one in store.all()}
        for id, content in self.kept.items():
            if now.get(id) != content:
                self.faults.append(f"record {id} was {'changed' if id in now else 'lost'}")
        self.kept = now


def _mapped(pid: int) -> set[Path]:
    """Returns the files in /dev/shm that a process has mapped."""
    with suppress(OSError):
        names = {line.split(maxsplit=5)[5] for line in _lines(f"/proc/{pid}/maps") if "/dev/shm/" in line}
        return {Path(name) for name in names if not name.endswith("(deleted)")}
    return set()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _command(pid: int) -> str:
    words = b""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    return f"{pid} {words[:200].decode(errors='replace')}"


def main() -> None:
    kills = number_from_environment("IRONBENCH_BENCH_KILLS", 3)
    wanted = [word for word in os.environ.get("IRONBENCH_BENCH_KINDS", "").split(",") if word]
    kinds = [kind for kind in KINDS if not wanted or kind.name in wanted]
    seen = recorded = 0
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="ironbench-kills-", dir=DATA, ignore_cleanup_errors=True) as folder:
            job = Killed(kind, Path(folder), random.Random(kind.name))
            began_s = time.monotonic()
            for number in range(kills):
                how = job.kill(job.dice.uniform(number, number + 1) / kills)
                seen += 1
                recorded += bool(job.kept)
                sys.stderr.write(f"  {kind.name}: {how}: {len(job.kept)} records, {len(job.faults)} faults\n")
            job.finish()
            for fault in job.faults:
                report(f"  {kind.name}", fault)
            took_s = time.monotonic() - began_s
            report(f"{kind.name}: faults after {kills} kills ({took_s:.0f} s)", len(job.faults), equal(0))
    report("kinds of jobs; kills", f"{len(kinds)}; {seen}")
    report("kills after which the job had records", recorded, "" if wanted else at_least(seen // 2))
