"""A lab may search for the best load of each configuration before its first block, based only on records."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import record

from ironbench.cli.lab import plan as planned
from ironbench.errors import FailureError, InputError
from ironbench.lab import declare, freeze
from ironbench.lab.noise import against_itself
from ironbench.lab.schedule import Blocks
from ironbench.lab.search import reopen
from ironbench.lab.size import Planned
from ironbench.model.record import Record, Status
from ironbench.model.search import Limit, Search
from ironbench.model.system import Trial
from ironbench.plan import blocks
from ironbench.records.labs import LabDirectory
from ironbench.records.progress import given_up_of_all
from ironbench.report import wording
from ironbench.report.sections import searched
from ironbench.study.findings import findings
from ironbench.study.labstudy import lab_study
from ironbench.study.optimum import NextLoad, SearchTrial, expected_trials, next_step

KNEES = {"fast": 12, "slow": 3, "idle": 1}
"""Numbers of clients from which throughput stays constant."""


def text(load: str = 'clients = "auto:1-16"', rest: str = "") -> str:
    return f"""question = "Slower?"
[system]
engine = "null"
[workload]
name = "select-only"
[load]
duration = "1s"
warmup = "0s"
{load}
[vary.speed]
fast = {{ set = {{ service = "200us" }} }}
slow = {{ set = {{ service = "400us" }} }}
[measure]
repeats = 2
quiet = "0s"
{rest}
"""


def plan(place: Path, content: str, budget_s: float | None = None) -> Planned:
    file = place / "speed.toml"
    file.write_text(content)
    return declare.planned(declare.read(file), budget_s)


@pytest.fixture
def lab(tmp_path: Path) -> LabDirectory:
    return begun(tmp_path, text())


def begun(place: Path, content: str) -> LabDirectory:
    found = plan(place, content)
    directory = LabDirectory(place / "lab")
    directory.begin(freeze.freeze(found.lab, found.secrets, directory.store))
    return directory


def measured(lab: LabDirectory, trial: Trial, status: Status = Status.OK) -> Record:
    level = trial.cell.levels["speed"]
    clients = trial.cell.load.clients
    throughput = 1000.0 * min(clients, KNEES[level])
    metrics = {"response_time_p99_s": 0.001 * clients}
    setup = lab.lab().setup(trial.cell.name)
    name = f"{level}-{trial.purpose}-{trial.block}-{trial.attempt}"
    found = record(
        setup.system, clients, throughput, block=trial.block, purpose=trial.purpose, id=name, metrics=metrics
    )
    return replace(found, id=name, cell=trial.cell, status=status, attempt=trial.attempt, choice=setup.choice)


def everything(lab: LabDirectory, before: list[Record] | None = None, **fate: Any) -> list[Record]:
    records = list(before or [])
    said: list[str] = []
    schedule = Blocks(lab, records, say=said.append)
    while (due := schedule.next(records)) is not None:
        one = measured(lab, due.trial, fate["status"](due.trial)) if fate else measured(lab, due.trial)
        records.append(replace(one, search_result=due.notes.search_result))
        assert len(records) < 200
    return records


def test_each_cell_is_searched_and_then_measured_in_its_blocks_at_what_was_found(lab: LabDirectory) -> None:
    records = everything(lab)
    searching = [one for one in records if one.purpose == "search"]
    assert records[: len(searching)] == searching
    of_blocks = records[len(searching) :]
    assert [one.purpose for one in of_blocks] == ["lab"] * 4
    loads = {one.cell.levels["speed"]: one.cell.load.clients for one in of_blocks}
    assert 11 <= loads["fast"] <= 13 and loads["slow"] == 3
    best = lab.best()
    assert all(one.search_result == best[one.cell.name].result for one in of_blocks)
    assert {setup.cell.name: setup.cell.load.clients for setup in lab.lab().setups} == {
        name: one.point for name, one in best.items()
    }
    assert sorted(one.id for one in searching) == sorted(name for one in best.values() for name in one.trials)


@pytest.mark.parametrize("kept", [1, 5, 20, 30])
def test_resuming_goes_on_inside_a_search(tmp_path: Path, kept: int) -> None:
    whole = everything(begun(tmp_path, text()))
    for file in (tmp_path / "lab").glob("*.json"):
        file.unlink()
    again = everything(begun(tmp_path, text()), whole[:kept])
    places = [[(one.purpose, one.cell.name, one.cell.load.clients, one.block) for one in rs] for rs in (whole, again)]
    assert places[0] == places[1]


def test_a_pilot_decides_the_warm_up_at_the_load_that_was_found(tmp_path: Path) -> None:
    lab = begun(tmp_path, text().replace('warmup = "0s"', 'warmup = "auto"'))
    records = everything(lab)
    cells = {setup.cell.name: setup.cell.load.clients for setup in lab.lab().setups}
    purposes = list(dict.fromkeys(one.purpose for one in records))
    assert purposes == ["search", "pilot", "lab"]
    assert not any(one.cell.load.warmup_auto for one in records if one.purpose == "search")
    assert {one.cell.name: one.cell.load.clients for one in records if one.purpose == "pilot"} == cells


def test_what_was_chosen_is_kept_and_not_searched_for_again(lab: LabDirectory) -> None:
    records = everything(lab)
    others = [one for one in records if one.purpose == "lab"]
    assert Blocks(lab, others).next(others) is None


def test_a_trial_of_a_search_that_was_cut_short_is_measured_again_at_the_same_load(lab: LabDirectory) -> None:
    first = Blocks(lab, []).next([])
    assert first is not None
    second = Blocks(lab, []).next([measured(lab, first.trial, Status.CUT_SHORT)])
    assert second is not None
    assert (second.trial.cell, second.trial.block, second.trial.attempt) == (first.trial.cell, first.trial.block, 2)


def test_a_load_at_which_trials_fail_twice_is_too_much_and_does_not_end_the_lab(lab: LabDirectory) -> None:
    def fate(trial: Trial) -> Status:
        return Status.FAILED if trial.cell.load.clients > 8 else Status.OK

    records = everything(lab, status=fate)
    failed = [one for one in records if one.status is Status.FAILED]
    assert failed and {one.attempt for one in failed} == {1, 2}
    assert {one.cell.load.clients for one in records if one.purpose == "lab"} == {8, 3}


def test_a_cell_whose_search_finds_nothing_is_skipped_in_its_words_and_the_others_are_measured(tmp_path: Path) -> None:
    third = 'slow = { set = { service = "400us" } }\nidle = { set = { service = "900us" } }\n'
    limited = text('clients = "auto:4-16"\nlimit = ["response_time_p99_s=5ms"]')
    lab = begun(tmp_path, limited.replace('slow = { set = { service = "400us" } }\n', third))

    def fate(trial: Trial) -> Status:
        return Status.FAILED if trial.cell.levels["speed"] == "idle" else Status.OK

    records = everything(lab, status=fate)
    assert {one.cell.levels["speed"] for one in records if one.purpose == "lab"} == {"fast", "slow"}
    found = lab.lab()
    assert found.setup("speed=idle").skipped.startswith("trials failed at the lowest load")
    assert found.comparisons == (("speed=slow", "speed=fast"),)
    study = lab_study(found, [one for one in records if one.purpose == "lab"], lab.store)
    assert study.complete and study.skipped[0][0] == "speed=idle"


def test_failed_trials_of_a_search_are_tried_again_when_somebody_asks(tmp_path: Path) -> None:
    lab = begun(tmp_path, text())
    records: list[Record] = []
    while True:
        try:
            due = Blocks(lab, []).next(records)
        except FailureError as error:
            assert "trials failed at the lowest load" in str(error)
            assert "lab resume --failed" in error.hint and "load.limit" not in error.hint
            break
        assert due is not None
        records.append(measured(lab, due.trial, Status.FAILED))
    forgiven = {one.id for one in given_up_of_all(records)}
    assert forgiven == {one.id for one in records} and len(forgiven) == 2
    reopen(lab, records, forgiven)
    due = Blocks(lab, records, forgiven).next(records)
    assert due is not None and (due.trial.block, due.trial.attempt) == (0, 3)
    while due is not None:
        records.append(measured(lab, due.trial))
        due = Blocks(lab, records, forgiven).next(records)
    assert {one.cell.load.clients for one in records if one.purpose == "lab"} >= {3}
    reopen(lab, records, forgiven)
    assert set(lab.best()) == {"speed=fast", "speed=slow"}, "blocks were measured at what it found"


def test_a_search_needs_trials_with_a_throughput(lab: LabDirectory) -> None:
    found = Blocks(lab, []).next([])
    assert found is not None
    one = measured(lab, found.trial)
    metrics = {name: value for name, value in one.metrics.items() if name != "throughput"}
    with pytest.raises(FailureError, match="no throughput, which the search needs"):
        Blocks(lab, []).next([replace(one, metrics=metrics)])


def test_a_lab_whose_baseline_breaks_the_limit_at_the_lowest_load_ends_in_words(tmp_path: Path) -> None:
    lab = begun(tmp_path, text('clients = "auto:4-16"\nlimit = ["response_time_p99_s=2ms"]'))
    with pytest.raises(
        FailureError, match=r"limit on response_time_p99_s \(2 ms\) was exceeded at every number of clients"
    ) as caught:
        everything(lab)
    assert "load.limit" in caught.value.hint or "--limit" in caught.value.hint
    with pytest.raises(FailureError, match="exceeded at every number of clients"):
        Blocks(lab, []).planned([])


def test_a_limit_ends_the_search(tmp_path: Path) -> None:
    lab = begun(tmp_path, text('clients = "auto:1-16"\nlimit = ["response_time_p99_s=6ms"]'))
    records = everything(lab)
    assert {one.cell.load.clients for one in records if one.purpose == "lab"} == {6, 3}


def test_the_report_names_what_was_chosen_and_what_was_tried(tmp_path: Path) -> None:
    lab = begun(tmp_path, text('clients = "auto:1-16"\nlimit = ["response_time_p99_s=6ms"]'))
    records = everything(lab)
    study = lab_study(lab.lab(), [one for one in records if one.purpose == "lab"], lab.store)
    section = next(searched.sections(study))
    assert "speed=slow: best number of clients: 3, with 3" in section.sentences[1]
    table = section.tables[0][1]
    assert table.head[:2] == ("configuration", "clients") and "limit 6" in table.head[-1]
    slow = {row[1]: row for row in table.texts if row[0] == "speed=slow"}
    assert slow["3"][2] == "chosen" and int(slow["1"][3]) >= 2 and slow["1"][-1].startswith("1")


def test_response_times_at_the_loads_that_searches_chose_are_not_called_those_of_one_load(lab: LabDirectory) -> None:
    records = [one for one in everything(lab) if one.purpose == "lab"]
    found = findings(records, lab.lab(), 1)
    warned = {
        one.metric
        for one in found
        if any("search chose for it (clients: 3 vs." in text for text in wording.texts(one.warnings))
    }
    assert "response_time_p99_s" in warned and "throughput" not in warned


@pytest.mark.parametrize(
    ("content", "subject", "cause"),
    [
        (
            text("clients = 'auto:1-4'\n[vary]\nclients = [1, 2]"),
            "load.clients",
            "the lab also searches for the best load.clients",
        ),
        (text("clients = 'auto:8-4'"), "load.clients", "8-4 is not a range"),
        (text("clients = 'auto:4..8'"), "load.clients", "is not a range"),
        (text("clients = 'many'"), "load.clients", "'many' is not a whole number"),
        (text("clients = 4\nlimit = ['response_time_p99_s=1ms']"), "load.limit", "applies only to a search"),
        (text("clients = 'auto'\nrate = 5"), "load.rate", "cannot be combined with load.clients"),
        (text("clients = 'auto'\nlimit = ['throughput=5']"), "load.limit = throughput", "a limit is a maximum"),
        (text("clients = 'auto'\nlimit = ['wal_bytes_per_transaction=5']"), "load.limit", "wal_bytes"),
        (text(rest="rates = ['70%']"), "measure.rates", "found by a search"),
        (text("rate = 'auto:10-100'"), "measure.metric", "in an open loop, the target rate determines this metric"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_the_field(
    tmp_path: Path, content: str, subject: str, cause: str
) -> None:
    with pytest.raises(InputError) as caught:
        plan(tmp_path, content)
    assert subject in caught.value.subject and cause in str(caught.value) and caught.value.hint


def test_a_rate_is_searched_where_a_response_time_decides(tmp_path: Path) -> None:
    content = text('rate = "auto:100-5000"\nlimit = ["response_time_p99_s=5ms"]', 'metric = "response_time_p99_s"')
    found = plan(tmp_path, content).lab
    assert [(one.cell.load.rate, one.search and one.search.of) for one in found.setups] == [(5000.0, "rate")] * 2


def test_the_noise_of_a_lab_is_that_of_one_load(tmp_path: Path) -> None:
    found = plan(tmp_path, text())
    with pytest.raises(InputError, match="noise is measured at a fixed load"):
        against_itself(found.lab, found.secrets, 6)


def test_the_plan_names_the_trials_of_the_search_and_their_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = plan(tmp_path, text())
    fixed = plan(tmp_path, text("clients = 16", "rates = 'none'"))
    count = blocks.searching(found.lab.setups)
    assert count == 2 * expected_trials(Search("clients", 1, 16)) == blocks.trials_before(found.lab)
    assert found.costs.search_s(0.0) > count
    assert found.costs.search_s(0.0) == pytest.approx(found.lab.estimate_s - fixed.lab.estimate_s)
    plan(tmp_path, text())
    assert planned(str(tmp_path / "speed.toml"), "", json=False) == 0
    shown = capsys.readouterr().out
    assert f"this includes about {count} trials before the first block" in shown
    assert "best number of clients from 1 to 16, 1 s" in shown
    planned(str(tmp_path / "speed.toml"), "", json=True)
    assert json.loads(capsys.readouterr().out)["cells"][0]["search"]["high"] == 16


@pytest.mark.parametrize("knee", [2, 7, 30, 100])
def test_the_number_of_trials_that_a_plan_expects_is_near_what_a_search_takes(knee: int) -> None:
    search = Search("clients", 1, 64, (Limit("response_time_p99_s", 1.0),))
    trials: list[SearchTrial] = []
    while isinstance(step := next_step(search, trials), NextLoad):
        throughput = min(step.point, knee) * math.exp(0.01 * (-1) ** len(trials))
        trials.append(SearchTrial(step.point, throughput, (step.point / knee,)))
    assert 0.4 < expected_trials(search) / len(trials) < 2.5


def test_a_directory_takes_another_lab_as_long_as_no_trial_is_in_it(lab: LabDirectory) -> None:
    frozen, again = lab.frozen(), replace(lab.frozen(), machine="another")
    lab.declare(frozen.lab.method.stages[0], frozen.lab.trials)
    lab.begin(again)
    assert lab.frozen() == again
    assert lab.declared() == ()
    lab.store.keep(measured(lab, frozen.lab.trials[0], Status.FAILED))
    with pytest.raises(InputError, match="already contains a lab") as caught:
        lab.begin(frozen)
    assert "another directory with --results" in caught.value.hint
    (damaged,) = (lab.path / "trials").iterdir()
    (damaged / "record.json").write_text("{")
    assert not lab.records()
    with pytest.raises(InputError, match="already contains a lab"):
        lab.begin(frozen)
    assert lab.frozen() == again
