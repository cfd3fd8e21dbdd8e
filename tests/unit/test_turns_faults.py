"""Slices: a block whose lab is killed, whose records are invalid, or whose systems do not thaw."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import labfactory
import pytest
from factories import evidence

from ironbench.errors import FailureError
from ironbench.host import processes
from ironbench.host.freezer import Freezer
from ironbench.lab import loop, schedule
from ironbench.lab.schedule import NextTrial
from ironbench.lab.slices.rotations import SLOW_START
from ironbench.lab.slices.side import DriveEndedError, SliceSide
from ironbench.lab.slices.turns import InterleavedBench, stop_all
from ironbench.model.driven import Driven
from ironbench.model.lab import Lab
from ironbench.model.note import Note, note, text_note
from ironbench.model.plan import record_id
from ironbench.model.record import NOT_WHOLE, SLICES, SYSTEMS, Record, Status
from ironbench.model.system import System, Trial
from ironbench.model.trial_notes import NO_NOTES
from ironbench.printer import Printer
from ironbench.records import Store, make, progress
from ironbench.records.selection import named_in


def turned(plan: Lab, block: int, attempt: int, since: str, **statuses: Status) -> list[Record]:
    """Returns records of a block in which `log=disk` and `log=memory` were interleaved."""
    records = labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1000.0))
    return [
        replace(
            one,
            id=f"{one.id}-a{attempt}",
            attempt=attempt,
            status=statuses[level],
            method=SLICES,
            turns_since=since,
            metrics={**one.metrics, SYSTEMS: 2.0},
        )
        for one in records
        if one.block == block and (level := one.cell.levels["log"]) in statuses
    ]


def missing(plan: Lab, records: list[Record]) -> list[tuple[str, int]]:
    return [(one.cell.name, one.attempt) for one in progress.missing(plan.trials, records)]


def test_a_block_whose_lab_was_killed_between_two_of_its_records_is_measured_again_as_a_whole() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=1)
    half = turned(plan, 0, 1, "then", disk=Status.OK)
    assert sorted(missing(plan, half)) == [("log=disk", 2), ("log=memory", 1)]
    whole = [*half, *turned(plan, 0, 2, "later", disk=Status.OK, memory=Status.OK)]
    assert missing(plan, whole) == []
    assert (progress.measured(half), progress.measured(whole)) == (0, 2)
    assert [one.attempt for tries in progress.by_place(whole).values() for one in tries] == [2, 2]


def test_a_block_of_which_one_record_is_void_is_measured_again_as_a_whole_and_given_up_at_last() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=1)
    once = turned(plan, 0, 1, "then", disk=Status.OK, memory=Status.VOIDED)
    assert sorted(missing(plan, once)) == [("log=disk", 2), ("log=memory", 2)]
    twice = [*once, *turned(plan, 0, 2, "later", disk=Status.OK, memory=Status.VOIDED)]
    assert missing(plan, twice) == []
    mended = [*once, *turned(plan, 0, 2, "later", disk=Status.OK, memory=Status.SUSPECT)]
    assert missing(plan, mended) == []
    assert {one.attempt for tries in progress.by_place(mended).values() for one in tries if one.status.comparable} == {
        2
    }


def test_a_record_that_lost_its_partner_is_not_counted_where_a_cell_is_named() -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=1)
    half = turned(plan, 0, 1, "then", disk=Status.OK)
    whole = [*half, *turned(plan, 0, 2, "later", disk=Status.OK, memory=Status.OK)]
    directory: Any = SimpleNamespace(begun=lambda: True, lab=lambda: plan, records=lambda: whole, store=None)
    for word in ("log=disk", "disk"):
        assert [one.attempt for one in named_in(word, directory).records] == [2]


class Stopped:
    """A side that records whether it was stopped, and may fail to stop."""

    def __init__(self, fails: bool) -> None:
        self.fails, self.stopped = fails, False

    def stop(self) -> None:
        self.stopped = True
        if self.fails:
            raise FailureError("server process 1", "could not be resumed (control group v2)")


def test_a_thaw_that_fails_keeps_no_other_system_frozen() -> None:
    sides: list[Any] = [Stopped(False), Stopped(True), Stopped(True), Stopped(False)]
    with pytest.raises(FailureError, match="could not be resumed"):
        stop_all(sides)
    assert all(side.stopped for side in sides)


def test_a_server_that_stays_frozen_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "cgroup.freeze").write_text("1")
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        server = processes.identify(sleeper.pid)
        assert server is not None
        with pytest.raises(FailureError, match="could not be resumed") as failure:
            Freezer(server, tmp_path).thaw()
        sleeper.kill()
    assert "ironbench cleanup" in failure.value.hint
    assert (tmp_path / "cgroup.freeze").read_text() == "0"


def side(**progress: Any) -> SliceSide:
    """Returns a system whose drive runs in a thread; `progress`: what the core reports about it."""
    unused: Any = None
    plan: Any = SimpleNamespace(choice=SimpleNamespace(workload="select-only", options={}))
    setup: Any = SimpleNamespace(cell=SimpleNamespace(name="one"), system=System("null", "one"))
    found = SliceSide(plan, setup, unused, unused, unused, "")
    of_core: Any = SimpleNamespace(**progress)
    found._at_turns.progress = of_core
    return found


@pytest.mark.parametrize("measure", [lambda one: one.turn(0.1, 1.0), lambda one: one.started()])
def test_ctrl_c_in_a_turn_waits_neither_for_its_clients_nor_for_its_drive(
    measure: Callable[[SliceSide], object],
) -> None:
    drive_ends = threading.Event()
    # After a second Ctrl-C, the thread that waits for clients stops waiting.
    one = side(begin_turn=lambda *_: None, rested=lambda: None, over=False)
    one._thread = threading.Thread(target=drive_ends.wait, args=(30.0,), daemon=True)
    one._thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            measure(one)
        assert one._thread.is_alive()
    finally:
        drive_ends.set()


def test_a_turn_that_ends_with_the_drive_of_its_system_waits_for_what_became_of_it() -> None:
    one = side(begin_turn=lambda *_: None, rested=lambda: None, over=True)
    one._thread = threading.Thread(target=time.sleep, args=(0.1,), daemon=True)
    one._thread.start()
    with pytest.raises(DriveEndedError):
        one.turn(0.1, 1.0)
    assert not one._thread.is_alive()


@pytest.mark.parametrize("running", [True, False])
def test_a_checkpoint_that_still_runs_after_the_last_turn_is_part_of_what_a_system_owes(running: bool) -> None:
    one = side()
    waited_for: Any = SimpleNamespace(is_alive=lambda: running, join=lambda: time.sleep(0.2 if running else 0.0))
    one._checkpoint = waited_for
    one.finish_writes()
    assert (one.debt_s >= 0.2) == running
    assert (one.debt_s == 0.0) != running


def driven_sides(plan: Lab, trials: list[Trial]) -> list[Any]:
    """Returns the systems of a block whose drives are over and have no records yet."""
    storage = SimpleNamespace(devices=SimpleNamespace(death=lambda: ""), observed=lambda _: None)
    return [
        SimpleNamespace(
            cell=one.cell.name, setup=plan.setup(one.cell.name), driven=Driven("now", alive=True), record=None,
            prepared=NO_NOTES, kept=[], storage=storage, turns_s=[], loaded=None,
            plan=SimpleNamespace(series=plan.series), session=None,
            end_profile=lambda: None, stop=lambda: None,
        )
        for one in trials
    ]  # fmt: skip


def interrupted(
    plan: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, while_measured: bool, keep: Callable[..., Record]
) -> tuple[Any, InterleavedBench]:
    """Returns the loop with a schedule of two blocks and its bench; `keep` makes records. `while_measured`: a Ctrl-C
    ends the turns of each block."""
    live = SimpleNamespace(begin=lambda *_: None)
    resources = SimpleNamespace(live=live, printer=Printer.silent(), store=Store(tmp_path))
    each: Any = SimpleNamespace(lab=plan, resources=resources, known=NO_NOTES)
    each.data = SimpleNamespace(kept=lambda *_: None)
    each.over = lambda record: record.status is Status.CUT_SHORT
    directory: Any = SimpleNamespace(records=lambda: [])

    def measured(
        turns: InterleavedBench, stack: ExitStack, due: NextTrial, trials: list[Trial], sides: list[Any], notes: Any
    ) -> None:
        sides += driven_sides(plan, trials)
        if while_measured:
            raise KeyboardInterrupt

    monkeypatch.setattr(InterleavedBench, "_measured", measured)
    monkeypatch.setattr(make, "keep", keep)
    due = iter([NextTrial(replace(plan.trials[place], purpose="lab")) for place in (0, 2)])
    return SimpleNamespace(next=lambda records: next(due, None)), InterleavedBench(each, directory)


@pytest.mark.parametrize("in_place", [False, True])
def test_ctrl_c_while_records_of_a_block_are_written_writes_none_twice_and_ends_the_lab(
    in_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=2)
    records = {one.cell.name: one for one in labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1.0))}
    written: list[str] = []

    def keep(store: Store, plan: Any, trial: Trial, driven: Driven, notes: Any, **_: Any) -> Record:
        written.append(trial.cell.name)
        record = replace(records[trial.cell.name], id=record_id(plan.series, trial))
        if len(written) == 2:
            if in_place:
                store.keep(record, **evidence())
            raise KeyboardInterrupt
        return record

    order, bench = interrupted(plan, tmp_path, monkeypatch, False, keep)
    with pytest.raises(KeyboardInterrupt):
        loop.measured(order, bench)
    first, second = (one.cell.name for one in plan.trials if one.block == 0)
    assert written == [first, second, *([] if in_place else [second])]


def test_a_record_that_cannot_be_made_costs_its_block_and_no_record_that_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=2)
    records = {one.cell.name: one for one in labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1.0))}
    written: list[str] = []

    def keep(store: Store, plan: Any, trial: Trial, driven: Driven, notes: Any, **_: Any) -> Record:
        written.append(trial.cell.name)
        if len(written) == 2:
            raise FailureError("server", "has died")
        record = replace(records[trial.cell.name], id=record_id(plan.series, trial))
        cause = driven.failure
        return replace(record, status=Status.FAILED, causes=(cause,)) if cause else record

    _, bench = interrupted(plan, tmp_path, monkeypatch, False, keep)
    first, second = bench.measure(NextTrial(replace(plan.trials[0], purpose="lab")))
    assert (first.cell.name, first.status) == (written[0], Status.OK)
    assert (second.cell.name, second.status) == (written[1], Status.FAILED)
    assert "has died" in second.causes[0].values["error"]


def test_a_system_without_a_transaction_is_named_with_that_as_its_cause() -> None:
    of: Any = SimpleNamespace(driven=Driven("now", summary={"cause": "", "transactions": 0}, alive=True))
    bench: Any = InterleavedBench(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    assert bench._cause(of).code == "nothing-finished"


@pytest.mark.parametrize(("status", "ends"), [(Status.CUT_SHORT, False), (Status.OK, True)])
def test_ctrl_c_in_a_block_keeps_its_records_and_no_other_block_begins(
    status: Status, ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]}, blocks=2)
    records = {one.cell.name: one for one in labfactory.trials(plan, dict.fromkeys(("log=disk", "log=memory"), 1.0))}
    written: list[tuple[str, int]] = []

    def keep(store: Store, plan: Any, trial: Trial, driven: Driven, notes: Any, **_: Any) -> Record:
        written.append((trial.cell.name, trial.block))
        return replace(records[trial.cell.name], id=record_id(plan.series, trial), status=status)

    order, bench = interrupted(plan, tmp_path, monkeypatch, True, keep)
    with pytest.raises(KeyboardInterrupt) if ends else nullcontext():
        assert [one.status for one in loop.measured(order, bench)] == [status] * 2
    assert sorted(written) == [("log=disk", 0), ("log=memory", 0)]


@pytest.mark.parametrize("status", [Status.CUT_SHORT, Status.VOIDED, Status.OK])
def test_a_block_after_one_that_has_no_whole_record_asks_the_pilot_once_more_and_has_its_warning(
    status: Status,
) -> None:
    plan = labfactory.lab({"log": ["disk", "memory"]})
    plan = replace(plan, method=replace(plan.method, slice_s=1.0, slice_piloted=True))
    before = replace(
        turned(plan, 0, 1, "then", disk=status)[0],
        purpose="lab",
        metrics={"slice_length_s": 0.5},
        warnings=(Note(SLOW_START, {"text": "of the first block"}),) if status is Status.OK else (),
    )
    each: Any = SimpleNamespace(lab=plan, resources=SimpleNamespace(printer=Printer.silent()))
    directory: Any = SimpleNamespace(records=lambda: [before])
    found: Any = SimpleNamespace(start_up_s=None)

    def pilot(longest_s: float) -> float:
        found.start_up_s = 0.3
        return longest_s

    found.pilot = pilot
    bench = InterleavedBench(each, directory)
    whole = status is Status.OK
    assert bench._slice_s(found, 2.0) == (0.5 if whole else 2.0)
    (warning,) = bench._slow_start(found, 2.0)
    assert (warning.values == {"text": "of the first block"}) == whole


@pytest.mark.parametrize(("slice_s", "levels"), [(None, 3), (1.0, 2), (1.0, 3)])
def test_a_lab_by_slices_that_ends_since_one_system_always_fails_names_it_where_others_could_be_compared(
    slice_s: float | None, levels: int
) -> None:
    plan = labfactory.lab({"log": ["memory", "disk", "ssd"][:levels]}, blocks=6)
    plan = replace(plan, method=replace(plan.method, slice_s=slice_s))
    fresh = [
        replace(
            one,
            status=Status.FAILED,
            causes=(text_note("no room") if own else note(NOT_WHOLE, system="log=memory", error="no room"),),
        )
        for one in labfactory.trials(plan, {setup.cell.name: 1000.0 for setup in plan.setups})
        for own in [one.cell.name == "log=memory"]
    ]
    with pytest.raises(FailureError, match="trials failed; the cause of the last failure is: no room") as caught:
        schedule._refuse_futile(plan, fresh)
    said = "remove log=memory from the lab" in caught.value.hint
    assert said == (slice_s is not None and levels > 2)
