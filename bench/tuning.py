"""Simulated runs of `ironbench tune`: production code on trials with known truth and known disturbances."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from ironbench.lab import confirm, declare, loop
from ironbench.lab.schedule import Blocks, NextTrial
from ironbench.model.finding import Conclusion
from ironbench.model.lab import SCREEN, Lab
from ironbench.model.record import Record, Status
from ironbench.printer import Printer
from ironbench.records.labs import FrozenPlan, LabDirectory
from ironbench.study.archive import EMPTY
from ironbench.study.labstudy import lab_study
from ironbench.study.study import Study

BASE = 1000.0
DRIFT = 0.1
"""Standard deviation of the change of the machine's log throughput from block to block; changes accumulate."""
SINKING = 0.002
"""Decrease of the log throughput with every trial."""


@dataclass(slots=True)
class Machine:
    """Simulates a machine whose level varies from block to block and decreases from trial to trial."""

    effects: Mapping[str, float]
    """Factor → logarithm of the ratio of the throughput with its last value to the throughput with its first value."""
    lab: Lab
    noise: float
    """Standard deviation of a trial's log throughput."""
    dice: random.Random
    measured: int = 0
    level: float = math.log(BASE)
    block: int = -1

    def measure(self, due: NextTrial) -> list[Record]:
        trial = due.trial
        if trial.block != self.block:
            self.level, self.block = self.level + self.dice.gauss(0, DRIFT), trial.block
        self.measured += 1
        last = {one.name: one.levels[-1] for one in self.lab.factors}
        effect = sum(self.effects.get(name, 0.0) for name, level in trial.cell.levels.items() if level == last[name])
        log = self.level - SINKING * self.measured + effect + self.dice.gauss(0, self.noise)
        setup = self.lab.setups[0]
        record = Record(
            id=f"{self.lab.series}-{self.measured:05d}",
            series=self.lab.series,
            system=setup.system,
            choice=setup.choice,
            cell=trial.cell,
            block=trial.block,
            purpose=trial.purpose,
            started_at=f"2026-11-21T01:{self.measured // 60:02d}:{self.measured % 60:02d}",
            elapsed_s=30.0,
            status=Status.OK,
            metrics={"throughput": math.exp(log)},
            stage=trial.stage,
            attempt=trial.attempt,
        )
        return [record]

    def over(self, record: Record) -> bool:
        return False


def planned(file: Path, seed: int) -> Lab:
    """Returns the screen that a file declares, with its own seed."""
    text = file.read_text()
    path = file.with_name(f"{file.stem}-{seed}{file.suffix}")
    path.write_text(f"{text}\n[measure]\nseed = {seed}\n")
    return replace(declare.lab(path, design=SCREEN)[0], series=f"simulated-{seed}")


def tuned(lab: Lab, directory: LabDirectory, effects: Mapping[str, float], noise: float, seed: int) -> Study:
    """Runs the whole lab, the screen and its confirmation, like `loop.conduct`."""
    silent = Printer(StringIO(), StringIO())
    directory.begin(FrozenPlan(lab, "m1", {}, {}))
    machine = Machine(effects, lab, noise, random.Random(seed))
    records = loop.measured(Blocks(directory, []), machine)
    while confirm.start_confirmation(directory, records, silent):
        records = loop.measured(Blocks(directory, records), machine, records)
    return lab_study(directory.lab(), records, EMPTY, stage=len(directory.declared()))


def claimed(study: Study) -> dict[str, Conclusion]:
    """Returns the factors with a conclusive verdict in the confirmation blocks: factor → verdict."""
    decided = (Conclusion.FASTER, Conclusion.SLOWER)
    ends = {one.cell: one.conclusion for one in study.findings}
    matter = study.screen.matter if study.screen else ()
    return {one.name: end for one in matter if (end := ends.get(f"{one.name}={one.last}")) in decided}
