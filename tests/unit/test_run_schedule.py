"""A schedule chooses the next trial, or that there is none, based only on records."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from factories import DISK, record

from ironbench.errors import InputError
from ironbench.lab.schedule import BestLoad, Schedule, Sweep
from ironbench.model.plan import Plan
from ironbench.model.record import Record, Status
from ironbench.model.search import Search
from ironbench.model.system import Cell, Load, Trial
from ironbench.plan import budget, sweep
from ironbench.printer import Printer
from ironbench.records import Store

NOWHERE = Store(Path("/nonexistent"))


def cell(clients: int) -> Cell:
    return Cell(f"clients={clients}", Load(clients=clients, duration_s=1.0))


def measured(trial: Trial, status: Status = Status.OK) -> Record:
    clients = trial.cell.load.clients
    found = record(DISK, clients, 1000.0 * min(clients, 4), block=trial.block, purpose=trial.purpose)
    return replace(found, cell=trial.cell, status=status, attempt=trial.attempt)


def everything(schedule: Schedule, before: tuple[Record, ...] = ()) -> list[Record]:
    records = list(before)
    while (due := schedule.next(records)) is not None:
        records.append(measured(due.trial))
        assert len(records) < 100
    return records


def swept(repeats: int = 2) -> Plan:
    return sweep.plan(DISK, measured(Trial(cell(1), 0)).choice, [cell(1), cell(4)], repeats)


def places(records: list[Record]) -> list[tuple[str, str, int]]:
    return [(one.purpose, one.cell.name, one.block) for one in records]


def test_a_sweep_is_its_trials_in_their_order_then_fresh_ones_of_its_peak() -> None:
    plan = swept()
    found = places(everything(Sweep(plan, NOWHERE)))
    assert found[:4] == [("sweep", trial.cell.name, trial.block) for trial in plan.trials]
    assert found[4:] == [("confirmation", "clients=4", block) for block in range(3)]


@pytest.mark.parametrize("kept", range(8))
def test_a_sweep_goes_on_from_any_of_its_records(kept: int) -> None:
    plan = swept()
    whole = everything(Sweep(plan, NOWHERE))
    assert places(everything(Sweep(plan, NOWHERE), tuple(whole[:kept]))) == places(whole)


def test_a_trial_that_was_cut_short_is_attempted_again_and_one_that_failed_is_not() -> None:
    plan = swept(1)
    first, second = plan.trials
    cut = Sweep(plan, NOWHERE).next([measured(first, Status.CUT_SHORT)])
    assert cut is not None and (cut.trial.cell, cut.trial.attempt) == (first.cell, 2)
    failed = Sweep(plan, NOWHERE).next([measured(first, Status.FAILED)])
    assert failed is not None and failed.trial == second


@pytest.mark.parametrize("kept", [0, 3, 9, 100])
def test_a_search_comes_to_the_same_answer_wherever_it_was_stopped(kept: int) -> None:
    search = Search("clients", 1, 16)
    ends = [cell(1), cell(16)]
    plan = sweep.plan(DISK, measured(Trial(cell(1), 0)).choice, ends, 1, search)
    talk = StringIO()
    whole = everything(BestLoad(plan, search, NOWHERE, Printer(talk, talk)))
    assert talk.getvalue().count("best number of clients: 4") == 1
    assert places(whole)[-3:] == [("confirmation", "clients=4", block) for block in range(3)]
    again = everything(BestLoad(plan, search, NOWHERE, Printer(talk, talk)), tuple(whole[:kept]))
    assert places(again) == places(whole)


def test_a_budget_buys_a_run_blocks_before_length_and_never_exceeds_itself() -> None:
    found = {}
    for budget_s in (120.0, 600.0, 3600.0):
        count, trial_s = found[budget_s] = budget.sized_run([5.0, 5.0], 3, 10.0, budget.LENGTHS_S, budget_s)
        assert 10.0 + 3 * (5 + trial_s) + count * 2 * (5 + trial_s) <= budget_s
    assert found[120.0][0] < found[600.0][0] < found[3600.0][0]
    with pytest.raises(InputError, match="--budget 20 s") as caught:
        budget.sized_run([5.0, 5.0], 3, 10.0, budget.LENGTHS_S, 20.0)
    assert "use a budget of 60 s" in caught.value.hint, "the least that would do"
    assert budget.sized_run([5.0, 5.0], 3, 10.0, budget.LENGTHS_S, 60.0) == (1, 5.0)
    with pytest.raises(InputError):
        budget.sized_run([5.0, 5.0], 3, 10.0, budget.LENGTHS_S, 59.0)


@pytest.mark.parametrize(
    ("around_s", "confirmations", "once_s", "budget_s", "cause", "hint"),
    [
        (
            [5.0],
            0,
            0.0,
            5.0,
            "1 trial of 5 s is needed, in addition to warm-up",
            "use a budget of 10 s, or use --warmup 0s",
        ),
        (
            [5.0],
            0,
            0.0,
            8.0,
            "in addition to warm-up",
            "use a budget of 10 s, or use --warmup 0s, or use --duration 3s",
        ),
        ([0.0], 0, 0.0, 3.0, "1 trial of 5 s is needed", "use a budget of 5 s, or use --duration 3s"),
        ([5.0], 0, 9.0, 5.0, "is needed, in addition to loading and warm-up", "use a budget of 19 s"),
        (
            [5.0, 5.0],
            3,
            0.0,
            20.0,
            "5 trials of 5 s are needed, in addition to warm-up",
            "use a budget of 50 s, or use fewer numbers in --clients",
        ),
    ],
)
def test_a_budget_that_is_too_small_names_only_what_helps_and_only_what_takes_time(
    around_s: list[float], confirmations: int, once_s: float, budget_s: float, cause: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        budget.sized_run(around_s, confirmations, once_s, budget.LENGTHS_S, budget_s)
    assert caught.value.cause.endswith(cause) and caught.value.hint == hint


def test_no_shorter_duration_is_suggested_for_a_workload_that_determines_the_length_of_a_trial() -> None:
    for own_length in (False, True):
        with pytest.raises(InputError) as caught:
            budget.sized_run([0.0], 0, 0.0, (4.0,), 3.0, own_length=own_length)
        assert ("--duration" in caught.value.hint) is not own_length
