"""Measures a lab with slices: the systems of a block run at the same time, and the load switches from one to the next.

Noise on a shared machine is slow: it changes more from minute to minute than from second to second. If systems
alternate every second, noise affects them equally and cancels in their ratio (randomised multiple interleaved trials:
Abedi and Brecht, "Conducting repeatable experiments in highly variable cloud computing environments", ICPE 2017). Each
block restarts every system, because performance also varies from one server start to the next. Findings are therefore
computed from blocks and not from slices.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

import msgspec

from ironbench import devices, engines, units, workloads
from ironbench.errors import IronbenchError, UnwrittenError
from ironbench.host import idle_machine
from ironbench.lab.benches import FreshEngineBench, failed, most_clients
from ironbench.lab.data import data_location
from ironbench.lab.schedule import NextTrial
from ironbench.lab.slices import slice_plan
from ironbench.lab.slices.rotations import SLOW_START, Rotations, slow_start
from ironbench.lab.slices.shared import SharedChecks
from ironbench.lab.slices.side import DriveEndedError, SliceSide
from ironbench.lab.slices.slice_plan import START_UP_S
from ironbench.lab.slices.system_devices import SystemDevices
from ironbench.lab.slices.turn import OneSystemError, attribute_errors_to
from ironbench.model.lab import Lab
from ironbench.model.note import Note, note
from ironbench.model.plan import Plan, record_id
from ironbench.model.purpose import Purpose
from ironbench.model.record import NOT_WHOLE, SYSTEMS, Record, Status
from ironbench.model.secrets import Secrets
from ironbench.model.system import Trial
from ironbench.model.trial_notes import TrialNotes
from ironbench.records import make, progress
from ironbench.records.judge import ABORTED
from ironbench.records.labs import LabDirectory
from ironbench.report import wording
from ironbench.trial.load import restore
from ironbench.words import counted

SLICES = "slices.json"
"""File in the record of a system. The file lists the system's slices with their start, length, transactions, and
unmeasured times."""


MUCH_WRITTEN = 0.05
"""If writing between turns takes more than this fraction of the time of all slices, the record gets a warning."""


@dataclass(slots=True)
class InterleavedBench:
    """Bench that measures all configurations of a block at the same time. The records are stored after the last turn.
    Trials before the blocks and fixed-rate trials are not interleaved: `each` measures them one after another.
    """

    each: FreshEngineBench
    directory: LabDirectory
    since: str = ""
    """Time at which the current block started."""

    def over(self, record: Record) -> bool:
        return self.each.over(record)

    def measure(self, due: NextTrial) -> Sequence[Record]:
        trial = due.trial
        if trial.purpose != Purpose.LAB or self.each.lab.setup(trial.cell.name).of:
            return self.each.measure(due)
        return self._block(due)

    def _block(self, due: NextTrial) -> Sequence[Record]:
        lab, block = self.each.lab, due.trial.block
        trials = [one for one in lab.trials if one.block == block and not lab.setup(one.cell.name).of]
        # A block is always repeated as a whole. Only records of its configurations are earlier attempts. Trials of the
        # baseline's peak also have block number 0, but are not counted.
        before = progress.attempts(self.directory.records(), block, {one.cell.name for one in trials})
        trials = [replace(one, attempt=1 + before) for one in trials]
        sides: list[SliceSide] = []
        self.each.resources.live.begin(due.trial, _title(due, len(trials)))
        # All records of the block contain this time. If some of them are missing, this shows that the lab was killed.
        self.since = datetime.now(UTC).isoformat(timespec="milliseconds")
        notes = self.each.known
        with ExitStack() as stack:
            try:
                self._measured(stack, due, trials, sides, notes)
                return [self._kept_of(trial, side, len(sides)) for trial, side in self._paired(trials, sides)]
            except DriveEndedError as error:
                return self._broken(trials, sides, notes, self._cause(error.side), error.side.cell, error.side)
            except OneSystemError as error:
                self.each.resources.printer.error(error.error)
                return self._broken(trials, sides, notes, error.error.note, error.cell)
            except UnwrittenError:
                raise
            except IronbenchError as error:
                self.each.resources.printer.error(error)
                return self._broken(trials, sides, notes, error.note)
            except KeyboardInterrupt:
                stop_all(sides)
                kept = [
                    self._kept_of(trial, side, len(sides)) for trial, side in self._paired(trials, sides) if side.driven
                ]
                # If Ctrl-C was pressed after the last turn, no record has the status "aborted", and the measurement
                # loop would continue. The exception must end it.
                if not any(one.status is Status.CUT_SHORT for one in kept):
                    raise
                return kept
            finally:
                stop_all(sides)

    def _measured(
        self, stack: ExitStack, due: NextTrial, trials: Sequence[Trial], sides: list[SliceSide], notes: TrialNotes
    ) -> None:
        lab = self.each.lab
        if due.quiet_s is not None:
            notes = notes.merge(*idle_machine.wait(min(due.quiet_s, due.trial.cell.load.duration_s or due.quiet_s)))
        chance = random.Random(f"{lab.method.seed}/{due.trial.block}/turns")
        for trial in chance.sample(list(trials), len(trials)):
            with attribute_errors_to(trial.cell.name):
                sides.append(self._side(stack, trial, notes, sides))
        _share(sides)
        for side in sides:
            with attribute_errors_to(side.cell):
                side.connect()
        sides.sort(key=lambda side: [trial.cell.name for trial in trials].index(side.cell))
        rotations = Rotations(sides, chance, lab.method.order == "fixed")
        rotations.warm_up()
        load = due.trial.cell.load
        slice_s = self._slice_s(rotations, slice_plan.longest(load.duration_s or 0.0))
        started = self._slow_start(rotations, slice_s)
        count = slice_plan.rotations(load, slice_s)
        began_s = time.monotonic()
        for side in sides:
            side.began_s = began_s
            side.storage.begin(side.session)
            with attribute_errors_to(side.cell):
                side.begin_profile(lab.method.profile)
        with self.each.resources.printer.bar(_title(due, len(sides))) as show:

            def kept(of: int) -> None:
                show(of / count, f"{of} of {counted(count, 'slice')} each")
                self.each.resources.live.turned(of * slice_s)

            rotations.measure(count, slice_s, kept)
        for side in sides:
            side.end_profile()
        for side in sides:
            with attribute_errors_to(side.cell):
                side.finish_writes()
            doubts = (*rotations.warnings(), *started, *written_between(side), *not_written_back(side))
            doubts = (*doubts, *fewer_checkpoints(side))
            side.prepared = side.prepared.merge({"slices": _in_words(side, rotations)}, doubts)
        for finish in (SliceSide.finish, SliceSide.settle):
            for side in sides:
                with attribute_errors_to(side.cell):
                    finish(side)

    def _slice_s(self, rotations: Rotations, longest_s: float) -> float:
        """Returns the slice length: the one that the lab sets, or else the one that the pilot chose. Runs the pilot if
        this is the first block."""
        method = self.each.lab.method
        if not method.slice_piloted:
            return method.slice_s or slice_plan.USUAL_S
        known = (one.metrics.get("slice_length_s") for one in self._piloted())
        return next(filter(None, known), None) or rotations.pilot(longest_s)

    def _slow_start(self, rotations: Rotations, slice_s: float) -> Sequence[Note]:
        """Returns the pilot's warning, from this block or from the first block."""
        if rotations.start_up_s is None:
            before = (warning for one in self._piloted() for warning in one.warnings)
            return list(islice((one for one in before if one.code == SLOW_START), 1))
        found = slow_start(rotations.start_up_s, slice_s)
        for one in found:
            self.each.resources.printer.say(f"  {wording.text(one)}")
        return found

    def _piloted(self) -> Iterator[Record]:
        """Yields records of earlier blocks. These records contain the slice length that the pilot chose, and the
        pilot's warning. Aborted records are left out, because they do not contain the warning.
        """
        whole = (one for one in self.directory.records() if one.purpose == Purpose.LAB and one.status.comparable)
        return (one for one in whole if one.turns_since)

    def _side(self, stack: ExitStack, trial: Trial, notes: TrialNotes, before: Sequence[SliceSide]) -> SliceSide:
        """Restores a system's data and starts its engine. If a system in `before` uses the same database of an existing
        server, the data are not restored again."""
        each, lab = self.each, self.each.lab
        setup = lab.setup(trial.cell.name)
        apart = slice_plan.with_own_directories(lab, setup)
        place = data_location(apart)
        first = next((side for side in before if side.place == place), None)
        secrets = each.secrets.get(setup.origin, Secrets())
        if first is not None:
            session = stack.enter_context(engines.running(each.data.system(apart), secrets, _clients(lab)))
            return SliceSide(self._plan(trial), setup, session, each.data.loaded(setup), first.prepared, place)
        plan = replace(self._plan(trial), system=apart.system)
        storage = SystemDevices(stack.enter_context(devices.mounted(plan, record_id(plan.series, trial))))
        restored = each.data.restored(apart, trial.block)
        prepared = notes.merge(restored.conditions, restored.warnings)
        session = stack.enter_context(engines.running(each.data.system(apart), secrets, _clients(lab)))
        prepared = prepared.merge(storage.devices.conditions())
        prepared = prepared.merge(
            restore.untouched(session, apart.system, trial.cell.load, setup.choice, each.resources.printer)
        )
        prepared = each.data.settled(apart, session, prepared)
        return SliceSide(self._plan(trial), setup, session, each.data.loaded(setup), prepared, place, storage=storage)

    def _plan(self, trial: Trial) -> Plan:
        lab, setup = self.each.lab, self.each.lab.setup(trial.cell.name)
        return Plan(
            lab.series,
            setup.system,
            setup.choice,
            (trial,),
            0,
            observe=False,
            profile=lab.method.profile,
            turns_since=self.since,
            tags=lab.tags,
        )

    def _paired(self, trials: Sequence[Trial], sides: Sequence[SliceSide]) -> Sequence[tuple[Trial, SliceSide]]:
        by_cell = {side.cell: side for side in sides}
        return [(trial, by_cell[trial.cell.name]) for trial in trials if trial.cell.name in by_cell]

    def _kept_of(self, trial: Trial, side: SliceSide, systems: int) -> Record:
        """Stores the record of a system whose load ran, and returns the record. The load may have been aborted.
        `systems`: number of systems in the block."""
        id = record_id(side.plan.series, trial)
        # If Ctrl-C was pressed just after the record was written, `side.record` is not set yet.
        if side.record is None and self.each.resources.store.path(id).is_dir():
            side.record = next(iter(self.each.resources.store.records([id])), None)
        if side.record is not None:
            return side.record
        assert side.driven is not None
        driven, prepared = side.driven, side.prepared
        side.end_profile()
        if side.kept:
            files = {**driven.files, SLICES: msgspec.json.encode(side.slices)}
            figures = {**side.figures(), SYSTEMS: float(systems)}
            driven = replace(driven, metrics={**driven.metrics, **figures}, files=files, profile=side.profile)
        driven = replace(driven, storage_died=side.storage.devices.death())
        side.record = record = make.keep(
            self.each.resources.store,
            side.plan,
            trial,
            driven,
            prepared,
            loaded=side.loaded,
            observation=side.storage.observed(side.turns_s),
            session=side.session,
        )
        # Data on emulated devices cannot be used again, because the devices are removed after the block.
        if record.status.comparable and not side.setup.system.layout.devices:
            self.each.data.kept(slice_plan.with_own_directories(self.each.lab, side.setup), trial.block)
        if not record.status.comparable:
            self.each.resources.printer.say(f"  {trial.cell.name}: {record.status.word}: {wording.cause(record)}")
        return record

    def _broken(
        self,
        trials: Sequence[Trial],
        sides: Sequence[SliceSide],
        notes: TrialNotes,
        cause: Note,
        blamed: str = "",
        over: SliceSide | None = None,
    ) -> Sequence[Record]:
        """Stores records for a block in which one system failed. Every trial of the block counts as failed, because the
        block is repeated as a whole. `blamed`: the configuration that failed, if known. `over`: the system of that
        configuration, if its load has a result.
        """
        stop_all(sides)
        records = []
        for trial in trials:
            if kept := next((one.record for one in sides if one.cell == trial.cell.name), None):
                records.append(kept)  # the record was written before another system failed
                continue
            if over is not None and over.driven is not None and trial.cell.name == blamed:
                records.append(self._kept_of(trial, over, len(sides)))
                continue
            own = trial.cell.name == blamed or not blamed
            why = cause if own else note(NOT_WHOLE, system=blamed, error=wording.text(cause))
            records.append(failed(self._plan(trial), trial, self.each.resources.store, why, notes))
        if blamed and len(trials) > 1:
            others = "other system" if len(trials) == 2 else f"{len(trials) - 1} other systems"
            self.each.resources.printer.say(
                f"  with the method `slices`, a block needs all of its systems: without {blamed}, the {others} of the "
                "block cannot be compared. The block is repeated if attempts remain"
            )
        return records

    def _cause(self, side: SliceSide) -> Note:
        driven = side.driven
        if driven is None or not driven.summary:
            return (driven.failure if driven is not None else None) or note("not-driven")
        if error := str(driven.summary["cause"]) or driven.last_words:
            return note(ABORTED, error=error)
        failed = next((check for check in driven.checks if not check.passed), None)
        if failed is not None:
            return note("check-failed", check=failed.name, expected=failed.expected, actual=failed.actual)
        return note("nothing-finished", unit=driven.counts[0])


def _title(due: NextTrial, systems: int) -> str:
    remaining = f", {due.remaining_text}" if due.remaining_text else ""
    return f"block {due.trial.block + 1}, {counted(systems, 'system')} running at the same time{remaining}"


def _in_words(side: SliceSide, rotations: Rotations) -> str:
    how = "in turn; the other systems are idle on the same server, which is not paused"
    if side.freezer is not None:
        how = f"in turn; the other systems are paused ({side.freezer.how})"
    many = counted(len(side.kept), "slice")
    before = f"the first {units.span(START_UP_S)} of each slice are not measured"
    said = f"{many} of {units.span(side.slices[0].length_s)} {how}; {before}"
    return "; ".join(filter(None, (said, rotations.description())))


def written_between(side: SliceSide) -> tuple[Note, ...]:
    """Returns a note if writing dirty data between turns took much time. The system's throughput does not include this
    time."""
    share = (sum(one.paid_s for one in side.kept) + side.debt_s) / side.measured_s
    if share <= MUCH_WRITTEN:
        return ()
    return (note("written-between-turns", share=share),)


def not_written_back(side: SliceSide) -> tuple[Note, ...]:
    """Returns a note if ironbench has no access to the files of an existing server, and therefore could not write back
    the server's dirty data."""
    if not side.unreached:
        return ()
    return (note("not-written-back", directories=tuple(sorted(side.unreached))),)


def fewer_checkpoints(side: SliceSide) -> tuple[Note, ...]:
    """Returns a note if fewer checkpoints were requested than planned. This is possible because a turn requests at most
    one checkpoint, and none while another is running."""
    every_s = side.checkpoint_s
    planned = 0 if every_s is None else math.ceil(side.measured_s / every_s * (1 - 1e-9))
    if side.checkpoints >= planned:
        return ()
    return (note("fewer-checkpoints", checkpoints=side.checkpoints, planned=planned, every_s=every_s or 0.0),)


def stop_all(sides: Sequence[SliceSide]) -> None:
    """Stops all systems, even if stopping one fails. Raises FailureError if one could not be resumed."""
    with ExitStack() as stack:
        for side in sides:
            stack.callback(side.stop)


def _share(sides: Sequence[SliceSide]) -> None:
    """Makes systems that use the same data share their checks."""
    by_place: dict[str, list[SliceSide]] = {}
    for side in sides:
        by_place.setdefault(side.place, []).append(side)
    for of in by_place.values():
        shared = SharedChecks(len(of)) if len(of) > 1 else None
        for side in of:
            side.shared = shared


def _clients(lab: Lab) -> int:
    """Returns how many connections each system's engine must accept. If all systems are on one existing server, the
    server must accept the connections of all of them."""
    if slice_plan.pauses_systems(lab):
        return most_clients(lab)
    return sum(
        workloads.get(one.choice.workload).connections(one.cell.load.clients, one.choice.options)
        for one in lab.measurable
    )
