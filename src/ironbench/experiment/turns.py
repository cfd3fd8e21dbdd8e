"""The bench of a lab by slices: the systems of a block stand side by side and are driven in turns.

Noise of a shared machine is slow: it changes from minute to minute more than from second to second. Systems that take
turns of a second share it, so that it cancels in their ratio (randomised multiple interleaved trials: Abedi and Brecht,
"Conducting repeatable experiments in highly variable cloud computing environments", ICPE 2017). What differs from start
to start of a server is sampled by blocks, each of which starts every system anew: the unit of findings is the block.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec

from ironbench import engines, units
from ironbench.errors import IronbenchError, UnwrittenError
from ironbench.experiment import slices
from ironbench.experiment.schedule import Due
from ironbench.experiment.side import OverError, Side, order
from ironbench.experiment.slices import START_UP_S
from ironbench.experiment.trial import EngineEach, failed, most_clients
from ironbench.load import restore
from ironbench.machine import quiet
from ironbench.model.plan import Plan
from ironbench.model.record import SIDE_BY_SIDE, Record
from ironbench.model.secrets import Secrets
from ironbench.model.system import Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.record import make
from ironbench.record.labs import LabDirectory
from ironbench.words import counted

SLICES = "slices.json"
"""File of a record with every slice of its system: when, how long, transactions, and what was not measured."""


@dataclass(slots=True)
class Turns:
    """Measures all cells of a block together; their records are kept when the last turn is over. What precedes the
    blocks, and rated cells, is measured one after another by `each`."""

    each: EngineEach
    directory: LabDirectory
    _kept: dict[tuple[str, int], Record] = field(default_factory=dict)
    """Of the block under way, until the schedule asks for them."""

    def over(self, record: Record) -> bool:
        return self.each.over(record)

    def measure(self, due: Due) -> Record:
        trial = due.trial
        if trial.purpose != "lab" or self.each.lab.setup(trial.cell.name).of:
            return self.each.measure(due)
        place = trial.cell.name, trial.block
        if place not in self._kept:
            self._kept = {(one.cell.name, one.block): one for one in self._block(due)}
        return self._kept.pop(place)

    def _block(self, due: Due) -> Sequence[Record]:
        lab, block = self.each.lab, due.trial.block
        # Trials of the baseline's peak count from block 0, too.
        of_block = [one for one in self.directory.records() if one.purpose == "lab" and one.block == block]
        settled = {one.cell.name for one in of_block if one.status.comparable}
        trials = [
            replace(one, attempt=due.trial.attempt)
            for one in lab.trials
            if one.block == block and not lab.setup(one.cell.name).of and one.cell.name not in settled
        ]
        sides: list[Side] = []
        with ExitStack() as stack:
            try:
                self._measured(stack, due, trials, sides)
                return [self._kept_of(trial, side) for trial, side in self._paired(trials, sides)]
            except OverError as error:
                return self._broken(trials, sides, error.side, self._cause(error.side))
            except UnwrittenError:
                raise
            except IronbenchError as error:
                self.each.printer.error(error)
                return self._broken(trials, sides, None, str(error))
            except KeyboardInterrupt:
                for side in sides:
                    side.stop()
                kept = [self._kept_of(trial, side) for trial, side in self._paired(trials, sides) if side.driven]
                if not any(one.cell.name == due.trial.cell.name for one in kept):
                    raise
                return kept
            finally:
                for side in sides:
                    side.stop()

    def _measured(self, stack: ExitStack, due: Due, trials: Sequence[Trial], sides: list[Side]) -> None:
        lab = self.each.lab
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        notes = self.each.known.merge({SIDE_BY_SIDE: began})
        if due.quiet_s is not None:
            notes = notes.merge(*quiet.wait(min(due.quiet_s, due.trial.cell.load.duration_s or due.quiet_s)))
        chance = random.Random(f"{lab.method.seed}/{due.trial.block}/turns")
        for trial in chance.sample(list(trials), len(trials)):
            sides.append(self._side(stack, trial, notes))
            sides[-1].connect()
        sides.sort(key=lambda side: [trial.cell.name for trial in trials].index(side.setup.cell.name))
        fixed, slice_s = lab.method.order == "fixed", lab.method.slice_s or slices.USUAL_S
        for side in order(sides, chance, fixed):
            side.turn(side.setup.cell.load.warmup_s or START_UP_S, 0.0)
        began_s = time.monotonic()
        for side in sides:
            side.began_s = began_s
        rotations = slices.rotations(due.trial.cell.load, slice_s)
        with self.each.printer.bar(f"block {due.trial.block + 1}, {counted(len(sides), 'system')} in turn") as show:
            for rotation in range(rotations):
                for side in order(sides, chance, fixed):
                    side.turn(START_UP_S, slice_s)
                show((rotation + 1) / rotations, f"{rotation + 1} of {counted(rotations, 'slice')} each")
        for side in sides:
            side.settle()

    def _side(self, stack: ExitStack, trial: Trial, notes: TrialNotes) -> Side:
        """Its data are back, and its engine runs, started in this block."""
        each, lab = self.each, self.each.lab
        setup = lab.setup(trial.cell.name)
        apart = slices.apart(lab, setup)
        restored = each.data.restored(apart, trial.block)
        prepared = notes.merge(restored.conditions, restored.warnings)
        secrets = each.secrets.get(setup.origin, Secrets())
        session = stack.enter_context(engines.running(each.data.system(apart), secrets, most_clients(lab)))
        prepared = prepared.merge(restore.untouched(session, apart.system, trial.cell.load, setup.choice, each.printer))
        prepared = each.data.settled(apart, session, prepared)
        return Side(self._plan(trial), setup, session, each.data.loaded(setup), prepared, time.monotonic())

    def _plan(self, trial: Trial) -> Plan:
        lab, setup = self.each.lab, self.each.lab.setup(trial.cell.name)
        return Plan(lab.series, setup.system, setup.choice, (trial,), 0, observe=False, tags=lab.tags)

    def _paired(self, trials: Sequence[Trial], sides: Sequence[Side]) -> Sequence[tuple[Trial, Side]]:
        by_cell = {side.setup.cell.name: side for side in sides}
        return [(trial, by_cell[trial.cell.name]) for trial in trials if trial.cell.name in by_cell]

    def _kept_of(self, trial: Trial, side: Side) -> Record:
        """The record of a system that was driven, whole or cut short."""
        assert side.driven is not None
        driven, prepared = side.driven, side.prepared
        if side.slices:
            files = {**driven.files, SLICES: msgspec.json.encode(side.slices)}
            driven = replace(driven, metrics={**driven.metrics, **side.figures()}, files=files)
            prepared = prepared.merge({"slices": self._in_words(side)})
        measured = make.Measured(driven, prepared, side.loaded)
        record = make.keep(self.each.store, side.plan, trial, measured, side.session)
        if record.status.comparable:
            self.each.data.kept(slices.apart(self.each.lab, side.setup), trial.block)
        else:
            self.each.printer.say(f"  {trial.cell.name}: {record.status.value}: {record.cause}")
        return record

    def _broken(
        self, trials: Sequence[Trial], sides: Sequence[Side], blamed: Side | None, cause: str
    ) -> Sequence[Record]:
        """A block in which one system failed has no record that could be compared: it is measured again as a whole."""
        for side in sides:
            side.stop()
        by_cell = {side.setup.cell.name: side for side in sides}
        records = []
        for trial in trials:
            if blamed is not None and blamed.driven is not None and by_cell.get(trial.cell.name) is blamed:
                records.append(self._kept_of(trial, blamed))
                continue
            why = cause if blamed is None else f"its block is not whole: {blamed.setup.cell.name}: {cause}"
            records.append(failed(self._plan(trial), trial, self.each.store, why, self.each.known))
        return records

    def _cause(self, side: Side) -> str:
        driven = side.driven
        if driven is None or not driven.summary:
            return driven.failure if driven is not None else "was not driven"
        checks = [check.name for check in driven.checks if not check.passed]
        return str(driven.summary["cause"]) or driven.last_words or f"check failed: {', '.join(checks)}"

    def _in_words(self, side: Side) -> str:
        still = f"the others frozen ({side.freezer.how})" if side.freezer is not None else "the others idle"
        many = counted(len(side.slices), "slice")
        before = f"{units.span(START_UP_S)} at the start of each turn not measured"
        return f"{many} of {units.span(side.slices[0].length_s)} in turn, {still}; {before}"
