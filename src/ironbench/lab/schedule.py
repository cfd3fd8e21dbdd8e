"""Chooses the next trial from the records so far, or ends the experiment: sweep, search, or blocks of a lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from ironbench import units
from ironbench.errors import FailureError
from ironbench.lab import search as searching
from ironbench.lab import warmup
from ironbench.lab.pace import Allowance, Pace
from ironbench.model.lab import SCREEN, Lab, Stage
from ironbench.model.note import note
from ironbench.model.plan import Plan
from ironbench.model.purpose import Purpose
from ironbench.model.record import NOT_WHOLE, Record, Status
from ironbench.model.search import Search
from ironbench.model.system import Cell, Trial
from ironbench.model.trial_notes import NO_NOTES, TrialNotes
from ironbench.plan import blocks as planned
from ironbench.plan import commands, fixed_rates, rates, screen
from ironbench.plan.sweep import cell_at
from ironbench.printer import Printer
from ironbench.records import Store, progress
from ironbench.records.labs import BaselinePeak, LabDirectory
from ironbench.records.progress import TRIES
from ironbench.report import wording
from ironbench.study import claims, curve, findings, interim
from ironbench.study.optimum import NextLoad
from ironbench.study.searched import Confirm, of_run, run_step
from ironbench.words import in_percent


@dataclass(frozen=True, slots=True)
class NextTrial:
    """The next trial."""

    trial: Trial
    notes: TrialNotes = NO_NOTES
    """Notes for the record of the trial."""
    title: str = ""
    """Text shown while the trial runs; empty for the default."""
    quiet_s: float | None = None
    """Maximum time in seconds to wait for an idle machine, or None to start without waiting."""
    remaining_text: str = ""
    """Estimated remaining time of a lab, in words; empty if not estimated."""


class Schedule(Protocol):
    """A rule that chooses trials."""

    def next(self, records: Sequence[Record]) -> NextTrial | None:
        """Returns the next trial. The choice depends only on the records so far. Returns None if the experiment is
        finished."""


class Sweep:
    """Schedule of a sweep: all trials of a plan in their order, then additional trials at the load with the peak."""

    def __init__(self, plan: Plan, store: Store) -> None:
        self._plan, self._store = plan, store

    def next(self, records: Sequence[Record]) -> NextTrial | None:
        trial = _missing(self._plan.trials, records)
        if trial is None:
            best = curve.peak([record for record in records if record.purpose == Purpose.SWEEP])
            trial = _missing(self._plan.confirmation_trials(best), records)
        return None if trial is None else _warmed(trial, [trial.cell], trial.cell, records, self._store)


def remaining(plan: Plan, records: Sequence[Record]) -> Plan:
    """Returns the plan of a sweep without the trials that already have a record."""
    trials, left = tuple(_all_missing(plan.trials, records)), plan.confirmations
    if not trials:
        best = curve.peak([record for record in records if record.purpose == Purpose.SWEEP])
        trials, left = tuple(_all_missing(plan.confirmation_trials(best), records)), 0
    return replace(plan, trials=trials, confirmations=left)


class BestLoad:
    """Schedule of a search. Chooses trials one by one until the best load is found, and then additional trials at this
    load. If these do not confirm the load, lower loads are tried. Raises FailureError if the trials lack a metric that
    has a limit.
    """

    def __init__(self, plan: Plan, search: Search, store: Store, printer: Printer) -> None:
        self._plan, self._search, self._store, self._printer = plan, search, store, printer
        self._confirmed: int | None = None

    def next(self, records: Sequence[Record]) -> NextTrial | None:
        step = run_step(self._search, records, self._store, self._plan.confirmations)
        if isinstance(step, NextLoad):
            cell, why, notes = cell_at(self._plan, step.point), step.why, NO_NOTES
            tried = {record.block for record in of_run(records) if record.cell.name == cell.name}
            trial = _missing([Trial(cell, len(tried))], records)
        elif isinstance(step, Confirm):
            cell, notes = cell_at(self._plan, step.point), TrialNotes(search_result=step.result.note)
            why = note("search-confirm", trials=self._plan.confirmations)
            trial = _missing(self._plan.confirmation_trials(cell), records)
        else:
            self._printer.say(wording.text(step.note))
            return None
        if trial is None:
            return None
        due = _warmed(trial, [trial.cell], trial.cell, records, self._store, notes)
        announced = isinstance(step, Confirm) and self._confirmed == step.point
        if due.trial.purpose == trial.purpose and not announced:
            self._confirmed = step.point if isinstance(step, Confirm) else None
            self._printer.say(f"  {trial.cell.name}: {wording.text(why)}")
        return due


class Blocks:
    """Schedule of a lab. Searches, trials of the baseline's peak, and pilots come first. Then blocks are measured stage
    by stage, until an interim analysis ends the lab."""

    def __init__(
        self,
        directory: LabDirectory,
        before: Sequence[Record],
        forgiven: Collection[str] = (),
        say: Callable[[str], object] = lambda _: None,
        now: Callable[[], float] = time.monotonic,
        spent_s: float = 0.0,
    ) -> None:
        """Creates the schedule.

        `before`: records of earlier processes. `forgiven`: ids of failed records to ignore (of searches, pilots and
        peak trials). `say`: shows the result of a search. `now`: returns monotonic seconds, for the budget. `spent_s`:
        if this lab confirms a screen, seconds of the budget that the screen took.
        """
        lab = directory.lab()
        self._directory, self._lab, self._before, self._forgiven = directory, lab, len(before), forgiven
        self._allowance = Allowance(lab.method.budget_s, now, spent_s)
        self._pace, self._say = Pace(lab, now), say

    def ready(self) -> None:
        """Must be called when loading has ended. The time per trial is measured from this call on."""
        self._allowance.ready()

    @property
    def why(self) -> str:
        """Message that the lab ended because of its budget. Empty if it did not."""
        return self._allowance.reason

    def next(self, records: Sequence[Record]) -> NextTrial | None:
        """Returns the next trial. Raises FailureError if trials fail repeatedly, or if searches leave nothing to
        compare."""
        fresh = records[self._before :]
        _refuse_futile(self._lab, fresh)
        self._allowance.passed = len(fresh)
        if (searched := searching.next_trial(self._directory, records, self._say, self._forgiven)) is not None:
            trial, why = searched
            due = NextTrial(trial, TrialNotes({"search": why}))
        elif (waiting := self.waiting(records)) is None:
            return None
        else:
            due, why = NextTrial(waiting) if waiting.purpose == Purpose.OBSERVED else self._first(waiting, records), ""
        left = max(0.0, 1.0 - len(fresh) / max(1, len(self._lab.trials)))
        quiet_s = min(self._lab.method.quiet_s, self._allowance.left_s(self._lab.estimate_s * left))
        title = self._pace.title(due.trial, records) + (f", {why}" if why else "")
        return replace(due, title=title, quiet_s=quiet_s, remaining_text=self._pace.remaining_text)

    def waiting(self, records: Sequence[Record]) -> Trial | None:
        """Returns the next trial of the blocks or, after the last block, the next trial with observers. Raises
        FailureError like `planned`."""
        return self.planned(records) or self._observed(records)

    def _observed(self, records: Sequence[Record]) -> Trial | None:
        """Returns the next trial with observers. Each configuration that has results gets one such trial. If it fails,
        it is repeated once."""
        for trial in planned.observed_trials(self._directory.lab()):
            own = [one for one in records if one.cell.name == trial.cell.name]
            tries = [one for one in own if one.purpose == Purpose.OBSERVED]
            measured = any(one.purpose == Purpose.LAB and one.status.comparable for one in own)
            if measured and not progress.over([one for one in tries if one.id not in self._forgiven]):
                return replace(trial, attempt=1 + max((one.attempt for one in tries), default=0))
        return None

    def planned(self, records: Sequence[Record]) -> Trial | None:
        """Returns the next trial in the planned order. After the last trial of a stage, starts the next stage if the
        findings are inconclusive and the budget suffices. Within a stage, neither ends the lab. Raises FailureError if
        searches left nothing to compare.
        """
        searching.require_cells(self._directory.lab())
        while True:
            declared = self._directory.declared()
            trials = [trial for one in declared for trial in one.trials]
            if waiting := progress.missing(trials, records):
                return waiting[0]
            lab, number = self._directory.lab(), len(declared)
            stage = next((one for one in lab.method.stages if one.number == number + 1), None)
            # A round that the user added starts even if the findings are conclusive.
            if stage is None or (number and not stage.added and stage_ends_lab(lab, records, number)):
                return None
            of_stage = tuple(trial for trial in lab.trials if trial.stage == stage.number)
            if number and not self._allowance.fits(len(of_stage)):
                return None
            self._directory.declare(stage, of_stage)

    def _first(self, planned: Trial, records: Sequence[Record]) -> NextTrial:
        """Returns the planned trial. If it depends on another trial that is still missing, such as a pilot, returns
        that trial."""
        if (of_peak := _peak_trial(self._directory, records, self._forgiven)) is not None:
            return NextTrial(of_peak)
        lab = self._directory.lab()
        trial = replace(planned, cell=lab.setup(planned.cell.name).cell)
        cells = [setup.cell for setup in lab.measurable]
        piloted = lab.setup(lab.setup(trial.cell.name).origin).cell
        due = _warmed(trial, cells, piloted, records, self._directory.store, forgiven=self._forgiven)
        rated = _rate_notes(due.trial, self._directory)
        best = lab.setup(trial.cell.name).best
        notes = due.notes.merge(rated.conditions, rated.warnings)
        return replace(due, notes=replace(notes, search_result=best.note if best else None))


def _missing(trials: Sequence[Trial], records: Sequence[Record]) -> Trial | None:
    """Returns the first trial of a run that has no record."""
    return next(_all_missing(trials, records), None)


def _all_missing(trials: Sequence[Trial], records: Sequence[Record]) -> Iterator[Trial]:
    """Yields the trials of a run that have no record, or only records of aborted attempts."""
    for trial in trials:
        place = trial.purpose, trial.cell.name, trial.block
        tries = [record for record in records if (record.purpose, record.cell.name, record.block) == place]
        if all(record.status is Status.CUT_SHORT for record in tries):
            yield replace(trial, attempt=1 + max((record.attempt for record in tries), default=0))


def _warmed(
    trial: Trial,
    cells: Sequence[Cell],
    piloted: Cell,
    records: Sequence[Record],
    store: Store,
    notes: TrialNotes = NO_NOTES,
    forgiven: Collection[str] = (),
) -> NextTrial:
    """Returns the trial with its warm-up. If the pilot of one of `cells` is still missing, returns this pilot instead.

    `piloted`: the configuration whose pilot determines the warm-up. `forgiven`: see `warmup.missing`.
    """
    pilot = warmup.missing(cells, records, forgiven)
    found, warmed = warmup.applied(pilot or trial, records, store, piloted)
    return NextTrial(found, notes.merge(warmed.conditions, warmed.warnings))


def stage_ends_lab(lab: Lab, records: Sequence[Record], stage: int) -> bool:
    """Returns whether the findings after a stage end the lab.

    The lab ends if no further interim analysis is planned, or if every comparison has a verdict and every claim is
    decided. If later stages do not measure a configuration, comparisons and claims about it are ignored.
    """
    analysis = interim.analysis_after(lab.method, stage)
    if analysis.number == analysis.analyses:
        return True
    found = findings.findings(records, lab, stage, others=())
    later = {trial.cell.name for trial in lab.trials if trial.stage > stage}
    able = [one for one in found if later.issuperset((one.cell, one.baseline))]
    own = [record for record in records if analysis.first_stage <= record.stage <= analysis.last_stage]
    awaited = any(
        one.verdict is claims.ClaimVerdict.UNDECIDED and later.issuperset(one.claim.cells)
        for one in claims.judged(lab, found, own, analysis.level_alone)
    )
    return interim.should_stop(able, analysis.number, analysis.analyses) and not awaited


def add_round(directory: LabDirectory, blocks: int) -> None:
    """Adds a round of blocks to a finished lab, with the same configurations and the same kind of order. Fixed-rate
    configurations are measured only in the first of these blocks. In a confirmed screen, the round contains only the
    configurations of the confirmation. Stages that were planned but skipped are not measured.
    """
    lab, declared = directory.lab(), directory.declared()
    first = 1 + max(trial.block for one in declared for trial in one.trials)
    stage = Stage(len(declared) + 1, blocks, added=True)
    compared = {name for pair in lab.comparisons for name in pair}
    setups = [one for one in lab.setups if lab.design != SCREEN or one.cell.name in compared]
    cells, rated = ([one.cell for one in of if not one.skipped] for of in (setups, lab.rated))
    method, at_rates = lab.method, fixed_rates.in_blocks(blocks)
    directory.declare(
        stage,
        planned.trials(
            cells, (stage,), method.seed, method.order, rated, at_rates, first, commands.plots(lab.all_setups)
        ),
    )


def repeat_failed(directory: LabDirectory) -> int:
    """Plans the repetition of all blocks that contain a failed trial. A block is repeated as a whole, in a new random
    order. Returns the number of these blocks. Comparisons pair only trials of the same block. If only the failed trial
    were repeated, it would be compared with trials from another time. A change of the machine in the meantime would
    look like a difference between configurations.
    """
    lab = directory.lab()
    method, plots = lab.method, commands.plots(lab.all_setups)

    def in_order(number: int, old: Sequence[Trial]) -> list[Trial]:
        cells, stage = [trial.cell for trial in old], old[0].stage
        if lab.design == SCREEN and stage == 1:
            cells = screen.ordered(cells, number, method.seed)
        else:
            cells = planned.ordered(cells, number, method.seed, method.order, plots)
        return [Trial(cell, number, Purpose.LAB, stage) for cell in cells]

    blocks = sorted({record.block for record in progress.given_up(directory.records())})
    for block in blocks:
        directory.repeat(block, in_order)
    return len(blocks)


def _of_another(record: Record) -> bool:
    """Returns whether a trial counts as failed only because another system of its block failed."""
    return any(one.code == NOT_WHOLE for one in record.causes)


def _refuse_futile(lab: Lab, fresh: Sequence[Record]) -> None:
    """Raises FailureError if no trial of a whole block succeeded, because further trials would also fail."""
    # Searches are not counted, because a load may exceed a system's capacity. Trials with observers are not counted,
    # because they are not part of a block. A trial that failed because of another system says nothing about its own
    # system.
    others = (Purpose.SEARCH, Purpose.OBSERVED)
    fresh = [one for one in fresh if one.purpose not in others and not _of_another(one)]
    enough = progress.TRIES * len(lab.measurable)
    if len(fresh) >= enough and not any(record.status.comparable for record in fresh[-enough:]):
        hint = "fix the cause, then repeat these blocks and continue with `ironbench lab resume --failed`"
        failing = {one.cell.name for one in fresh[-enough:]}
        if lab.method.slice_s is not None and len(failing) == 1 and enough > 2 * progress.TRIES:
            hint += (
                f"; or remove {failing.pop()} from the lab, so that the method `slices`, which needs every system of a "
                "block, can compare the other systems"
            )
        last = wording.cause(fresh[-1])
        raise FailureError(
            f"lab {lab.name}", f"the last {enough} trials failed; the cause of the last failure is: {last}", hint
        )


def _peak_trial(directory: LabDirectory, records: Sequence[Record], forgiven: Collection[str]) -> Trial | None:
    """Returns the next trial that measures the baseline's peak. Returns None if the peak is not needed or already
    known. Stores the peak once all of its trials are complete.

    Raises FailureError if a trial failed as often as it may be attempted.
    """
    lab = directory.lab()
    if not rates.wanted(lab.all_setups) or directory.peak() is not None:
        return None
    cell, usable = rates.closed(lab.setup(lab.baseline).cell), []
    for number in range(rates.PEAK_TRIALS):
        tries = [record for record in records if record.purpose == Purpose.PEAK and record.block == number]
        done = [record for record in tries if record.status.comparable]
        if not done:
            _refuse_failed_peak(lab, [record for record in tries if record.id not in forgiven])
            return Trial(cell, number, Purpose.PEAK, attempt=1 + max((record.attempt for record in tries), default=0))
        usable.append(done[0])
    throughput = median(record.scheduled_throughput for record in usable)
    directory.keep_peak(BaselinePeak(throughput, tuple(record.id for record in usable)))
    return None


def _rate_notes(trial: Trial, directory: LabDirectory) -> TrialNotes:
    """Returns the note about the origin of the rate, for a trial's record."""
    peak, load = directory.peak(), trial.cell.load
    if peak is None or load.rate is None or load.rate_share is None:
        return NO_NOTES
    text = (
        f"{units.rate(load.rate)}, which is {in_percent(load.rate_share)} of {units.number(peak.throughput)}/s, "
        f"the median throughput of {len(peak.trials)} closed-loop trials of {directory.lab().baseline}"
    )
    return TrialNotes({"rate": text})


def _refuse_failed_peak(lab: Lab, tries: Sequence[Record]) -> None:
    failed = progress.failed(tries)
    if len(failed) >= TRIES:
        raise FailureError(
            f"lab {lab.name}",
            f"the peak of {lab.baseline} could not be measured: {wording.cause(failed[-1])}",
            "fix the cause, then measure the peak again with `ironbench lab resume --failed`; "
            "or start a new lab with rates as numbers",
        )
