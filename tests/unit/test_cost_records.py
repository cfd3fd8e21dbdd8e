"""What records add to a systems file: scores without a target, and warnings if they come from another machine."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import pytest
from factories import DISK, MACHINE, MEMORY, record, sweep, unfolded

from ironbench import catalogue, workloads
from ironbench.errors import InputError
from ironbench.model.cost import CostRange
from ironbench.model.curve import Curve
from ironbench.model.note import note
from ironbench.model.record import Record, Status
from ironbench.model.system import Choice, Load, System
from ironbench.records import Store
from ironbench.report import cost as report
from ironbench.report import formats, wording
from ironbench.report.cost import compared as asked
from ironbench.study.cost import Costs

BOTH = """
[system.one]
records = "log on disk"
sockets = 1
cores = 2
buy = ["sql-server-2014-enterprise"]
[system."log in memory"]
sockets = 1
cores = 2
buy = ["sql-server-2014-enterprise"]
"""


def billed(directory: Path, records: list[Record], text: str = BOTH, words: tuple[str, ...] = ()) -> Costs:
    store = Store(directory)
    key = store.keep_shared("machines", MACHINE)
    for one in records:
        store.keep(replace(one, machine=key))
    systems = directory / "systems.toml"
    directory.mkdir(exist_ok=True)
    systems.write_text(text)
    return asked(words, "", str(systems), (), "", str(directory))


@pytest.mark.parametrize(
    ("text", "hint"), [("eur", "three-letter code: EUR"), ("dollars", "three-letter code, e.g. EUR")]
)
def test_what_is_no_currency_is_refused_before_a_rate_to_it_is_asked_for(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"--currency {text}: '{text}' is not a currency") as caught:
        asked((), "p99 < 10ms at 5 tps", "", (), text, str(tmp_path))
    assert hint in caught.value.hint
    with pytest.raises(InputError, match=f"currency: '{text}' is not a currency"):
        billed(tmp_path, [], f'currency = "{text}"\n{BOTH}')


def test_without_a_target_the_records_that_a_systems_file_names_give_its_scores(tmp_path: Path) -> None:
    trials = [record(DISK, 8, 1000.0, block=block) for block in range(3)]
    trials += [record(MEMORY, 4, 1500.0, block=block) for block in range(3)]
    found = billed(tmp_path, [*trials, record(MEMORY, 2, 900.0)])
    assert [(row.score, row.per_core) for row in found.rows] == [
        (CostRange(1000, 1000, 1000), CostRange(500, 500, 500)),
        (CostRange(1500, 1500, 1500), CostRange(750, 750, 750)),
    ]
    text = unfolded(report.page(found))
    assert "one: throughput with 8 clients (3 trials)." in text
    assert "log in memory gives more work per USD than one: 50% more." in text
    assert "log in memory costs as much as one. Work compared with one: 50% more." in text
    assert "Work: igen-oltp scale=4 weight=light" in text
    assert json.loads(formats.of_page("json")(report.page(found)))["systems"][0]["basis"] == wording.text(
        found.rows[0].basis
    )


def test_the_score_of_confirmed_records_is_that_of_fresh_trials(tmp_path: Path) -> None:
    records = sweep(DISK, 3600, 6)
    fresh = sorted(one.metrics["throughput"] for one in records if one.purpose == "confirmation")
    found = billed(tmp_path, records)
    score = found.rows[0].score
    assert score is not None and score.centre == pytest.approx(geometric_mean(fresh))
    assert score.low < fresh[0] < fresh[-1] < score.high, "the t interval of three trials is wider than they are"


def spread(side: System, centre: float, share: float, count: int = 3, **fields: object) -> list[Record]:
    at = [centre * (1 + share * (block - (count - 1) / 2)) for block in range(count)]
    return [record(side, 8, value, block=block, **fields) for block, value in enumerate(at)]


def test_work_that_cannot_be_told_apart_is_not_stated_as_a_share(tmp_path: Path) -> None:
    unclear = billed(tmp_path / "unclear", [*spread(DISK, 1000, 0.5), *spread(MEMORY, 600, 0.5)])
    head, said = report.advice(unclear)
    assert head.startswith("No difference shown: one and log in memory are tied for the most work per USD.")
    assert said.endswith("inconclusive.")
    clear = billed(tmp_path / "clear", [*spread(DISK, 1000, 0.01), *spread(MEMORY, 600, 0.01)])
    head, said = report.advice(clear)
    assert head.startswith("one gives more work per USD than log in memory: 67% more (95% CI ")
    assert "without the variation between runs" in head and "inconclusive" not in said
    assert "the score of another run may be outside this CI" in unfolded(report.page(clear))
    single = billed(tmp_path / "single", [record(DISK, 8, 1000.0), *spread(MEMORY, 600, 0.01)])
    head, said = report.advice(single)
    assert head == "No verdict on work per USD. Not ranked: one (inconclusive: only one trial)."
    assert json.loads(formats.of_page("json")(report.page(single)))["systems"][0]["score"] is None


def test_scores_and_prices_per_score_carry_the_interval_of_runs(tmp_path: Path) -> None:
    one = [trial for n, level in enumerate((1000, 1100, 900)) for trial in spread(DISK, level, 0.001, series=f"r{n}")]
    row = billed(tmp_path, one).rows[0]
    assert row.runs == 3 and row.score is not None and row.per_thousand is not None
    assert row.score.high / row.score.low > 1.4, "runs differ by 10%, their trials by 0.1%"
    assert row.per_thousand.high / row.per_thousand.low == pytest.approx(row.score.high / row.score.low)


def test_the_mean_over_a_curve_of_clients_is_no_score_and_that_is_said(tmp_path: Path) -> None:
    ramp = Curve("clients", "ramp:1-8/30s", ((0.0, 1.0), (30.0, 8.0)))
    curved = record(DISK, 8, 900.0, load=Load(curve=ramp, duration_s=30.0), id="ramp")
    found = billed(tmp_path, [curved, record(MEMORY, 8, 500.0, id="steady")])
    assert [row.score for row in found.rows] == [None, CostRange(0.0, math.inf, 500.0)]
    assert found.notes[0] == note("system-without-score", system="log on disk", why=note("driven-along-curve"))


def test_scores_of_a_systems_file_are_not_mixed_with_those_of_records(tmp_path: Path) -> None:
    text = BOTH.replace("sockets = 1", 'score = 3777.0\nsource = "a list"\nsockets = 1', 1)
    found = billed(tmp_path, [record(DISK), record(MEMORY)], text)
    assert [row.score for row in found.rows] == [CostRange(3777, 3777), None]
    assert "The records of log on disk and log in memory are not used" in unfolded(report.page(found))


def test_published_scores_do_not_bear_the_sentence_of_derived_records_that_are_not_used(tmp_path: Path) -> None:
    choice = Choice("brokerage", workloads.get("brokerage").validated({}))
    metrics = {"trade_results_per_s": 100.0}
    own = [record(one, choice=choice, metrics=metrics) for one in (DISK, MEMORY)]
    assert any("TPC-E" in text for text in billed(tmp_path / "own", own).derived)
    text = BOTH.replace("sockets = 1", 'score = 3777.0\nsource = "a list"\nsockets = 1', 1)
    assert billed(tmp_path / "published", own, text).derived == ()


def test_bills_stand_without_scores_where_records_did_different_work_and_that_is_said(tmp_path: Path) -> None:
    found = billed(tmp_path, [record(DISK), record(MEMORY, choice=Choice("select-only", {}))])
    assert [row.score for row in found.rows] == [None, None]
    assert all(row.bill and row.bill.total for row in found.rows)
    assert "come from different workloads (igen-oltp scale=4 weight=light; select-only)" in unfolded(report.page(found))


def test_a_label_of_several_systems_gives_no_score_and_that_is_said_beside_the_bill(tmp_path: Path) -> None:
    other = record(replace(DISK, memory_bytes=1 << 30), series="other")
    trials = [record(DISK), other, record(MEMORY)]
    found = billed(tmp_path / "all", trials)
    assert [row.score is None for row in found.rows] == [True, False]
    assert "No score for one: records of 2 systems have this label" in unfolded(report.page(found))
    named = billed(tmp_path / "named", trials, words=(trials[0].id, trials[2].id))
    assert [row.score is None for row in named.rows] == [False, False]


@pytest.mark.parametrize(
    ("declared", "held", "said"),
    [
        ("sockets = 1\ncores = 2", None, []),
        ("sockets = 1\ncores = 36", None, [("cores", 36, 2)]),
        ("sockets = 2\ncores = 2", None, [("sockets", 2, 1)]),
        ("sockets = 1\ncores = 2", (0,), [("cores", 2, 1)]),
        ("sockets = 1\ncores = 2\nmemory_gb = 512", None, [("memory_gb", 512, 26)]),
        ("sockets = 1\ncores = 2\nmemory_gb = 24", None, []),
    ],
)
@pytest.mark.parametrize("target", ["", "p99 < 10ms at 5000 tps"])
def test_a_systems_file_that_says_otherwise_than_the_machine_of_its_records_is_told_so(
    tmp_path: Path, declared: str, held: tuple[int, ...] | None, said: list[tuple[str, int, int]], target: str
) -> None:
    text = f'[system."log on disk"]\n{declared}\nbuy = ["postgresql"]'
    billed(tmp_path, [record(replace(DISK, server_cpus=held))], text)
    found = asked((), target, str(tmp_path / "systems.toml"), (), "", str(tmp_path))
    caveats = found.rows[0].caveats
    assert [(one.values["of"], one.values["declared"], one.values["measured"]) for one in caveats] == said
    assert all(one.values["pinned"] for one in caveats if held and one.values["of"] == "cores")
    assert all(f"- log on disk: {caveat}" in unfolded(report.page(found)) for caveat in wording.texts(caveats))


def test_of_a_running_server_the_recorded_machine_is_not_held_against_the_systems_file(tmp_path: Path) -> None:
    text = '[system."log on disk"]\nsockets = 4\ncores = 64\nbuy = ["postgresql"]'
    found = billed(tmp_path, [record(replace(DISK, dsn="host=db"))], text)
    assert found.rows[0].caveats == ()


@pytest.mark.parametrize(
    ("declared_gb", "limit", "said"),
    [
        (26, 4 << 30, [(26, 4.3, True)]),
        (4, 4 << 30, []),
        (512, 64 << 30, [(512, 26, False)]),
    ],
)
def test_memory_is_that_which_the_records_were_held_to_and_never_more_than_the_machine_s(
    tmp_path: Path, declared_gb: int, limit: int, said: list[tuple[float, float, bool]]
) -> None:
    text = f'[system."log on disk"]\nsockets = 1\ncores = 2\nmemory_gb = {declared_gb}\nbuy = ["postgresql"]'
    found = billed(tmp_path, [record(replace(DISK, memory_total_bytes=limit))], text)
    caveats = [one.values for one in found.rows[0].caveats]
    assert [(one["declared"], one["measured"], one["pinned"]) for one in caveats] == said


def test_scores_from_records_are_in_the_unit_of_their_metric_whatever_the_systems_file_says(tmp_path: Path) -> None:
    found = billed(tmp_path, [record(DISK), record(MEMORY)], f'unit = "SPECint_rate2006"\n{BOTH}')
    assert found.rows[0].score is not None
    assert found.unit == catalogue.metric("throughput").words
    assert "SPECint" not in unfolded(report.page(found))


TAKEN = note("cpu-taken", programs=0.9, steal=0.04, share=0.94)


def flagged(trials: list[Record]) -> list[Record]:
    return [replace(one, status=Status.SUSPECT, warnings=(TAKEN,)) for one in trials]


def test_a_score_of_flagged_trials_is_marked_and_has_their_notes(tmp_path: Path) -> None:
    trials = [*flagged(spread(DISK, 1000, 0.01)), *spread(MEMORY, 1500, 0.01)]
    found = billed(tmp_path, trials)
    assert [(row.trials, row.flagged, row.caveats) for row in found.rows] == [(3, 3, (TAKEN,)), (3, 0, ())]
    first, second = json.loads(formats.of_page("json")(report.page(found)))["systems"]
    assert (first["trials"], first["flagged"], first["caveats"]) == (3, 3, [wording.text(TAKEN)])
    assert (second["flagged"], second["caveats"]) == (0, [])
    head, said = report.advice(found)
    assert "one (3 of 3 trials flagged)" in head and "flagged" not in said, "marked where it is named first"
    assert "one (3 of 3 trials flagged)" in unfolded(report.page(found))
