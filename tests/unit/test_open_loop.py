"""An open loop sustains the requested rate or not: it has no peak, no score and no ratio of throughput."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from factories import DISK, MACHINE, MEMORY, Shelf, codes, record

from ironbench.cli.compare import compare
from ironbench.cli.cost import cost
from ironbench.cli.leaderboard import leaderboard
from ironbench.cli.report import report
from ironbench.errors import InputError
from ironbench.model.note import Note, note, text_note
from ironbench.model.record import RATE_NOT_KEPT, Record, Status
from ironbench.model.system import Cell, Load, System
from ironbench.plan.sweep import plan
from ironbench.records import Store
from ironbench.records.index import short
from ironbench.report import document, trial_text
from ironbench.report.headline import headline
from ironbench.report.sections.curves import rates
from ironbench.report.sections.latency import latency
from ironbench.study.compare import compare as compared
from ironbench.study.curve import curve
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.study.subjects import Subject, subjects


def plain(text: str) -> str:
    """Removes thin spaces and line ends."""
    return " ".join(text.split())


BEHIND = Note(RATE_NOT_KEPT, {"text": "the rate of 5000/s was not kept"})
SYSTEMS = '[system.asked]\nrecords = "asked"\nsockets = 1\ncores = 2\nbuy = ["sql-server-2014-enterprise"]\n'


def system(label: str) -> System:
    return replace(MEMORY if label == "same" else DISK, label=label)


def opened(label: str, rate: float, finished: float, slow: float, kept: bool = True, clients: int = 8) -> list[Record]:
    found = []
    for block in range(3):
        warnings = () if kept else (BEHIND,)
        one = record(
            system(label), clients, finished + block, block=block, load=Load(rate=rate, duration_s=30.0, warmup_s=5.0),
            metrics={"response_time_p99_s": slow, "service_time_p99_s": slow}, series=label, warnings=warnings,
            status=Status.OK if kept else Status.SUSPECT,
        )  # fmt: skip
        found.append(one)
    return found


@pytest.fixture
def results(tmp_path: Path) -> str:
    closed = [record(system("closed"), 8, 3000.0 + block, block=block, series="closed") for block in range(3)]
    trials = [*closed, *opened("asked", 500, 495, 0.02), *opened("same", 500, 501, 0.01)]
    store = Store(tmp_path)
    key = store.keep_shared("machines", MACHINE)
    for one in [*trials, *opened("late", 5000, 2900, 4.0, kept=False)]:
        store.keep(replace(one, machine=key))
    return str(tmp_path)


def test_of_an_open_loop_a_report_says_whether_it_kept_its_rate(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report(["closed", "asked", "late"], "", "", results)
    text = plain(capsys.readouterr().out)
    assert "closed reaches 3,000 transactions per second with 8 clients" in text
    assert "asked sustains 500 transactions per second with 8 clients (3 trials); p99 response time 20.0 ms" in text
    assert (
        "late does not sustain 5,000 transactions per second with 8 clients (3 trials); 58% of the scheduled "
        "transactions were finished."
    ) in text
    assert "Target rates (open loop)" in text
    assert "throughput of" not in text and "asked reaches" not in text
    bars = text[text.index("Response time, median") : text.index("Response time, 99th")]
    assert "asked" not in bars and "late" not in bars


@pytest.mark.parametrize("format", ["md", "html", "png", "svg"])
def test_reports_of_open_loops_alone_are_written_in_every_format(format: str, results: str, tmp_path: Path) -> None:
    target = tmp_path / f"r.{format}"
    report(["asked", "late"], str(target), "", results)
    assert target.stat().st_size > 500
    if format in ("md", "html"):
        text = plain(target.read_text())
        assert "500 transactions per second" in text and "at its peak" not in text and "at the peak" not in text


def test_open_loops_at_one_rate_are_compared_by_their_response_times(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    compare("asked", "same", results, False, False)
    text = plain(capsys.readouterr().out)
    assert "Both sides ran at a target rate of 500/s. Result: A: 500/s sustained; B: 500/s sustained." in text
    assert "50% lower than that of A: 10.0 ms vs. 20.0 ms" in text
    assert "peak" not in text and "Both sides are closed loops" not in text
    compare("asked", "same", results, False, True)
    rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["peaks"]["rows"]}
    assert rows["throughput"]["ratio"] is None and rows["throughput"]["improves"] is None
    assert rows["response_time_p99_s"]["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("closed", "asked"), "A: closed loop; B: open loop at 500/s. With different loads, throughput"),
        (("late", "asked"), "A: open loop at 5,000/s; B: open loop at 500/s. With different loads"),
    ],
)
def test_loops_that_were_given_unlike_work_have_no_ratio(
    named: tuple[str, str], said: str, results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(*named, results, False, False)
    text = plain(capsys.readouterr().out)
    assert said in text
    assert "The load differs: " in text and "Both sides are closed loops" not in text
    compare(*named, results, False, True)
    for row in json.loads(capsys.readouterr().out)["peaks"]["rows"]:
        if row["metric"].startswith(("throughput", "response_time", "service_time")):
            assert row["ratio"] is None


def test_totals_of_unlike_work_have_no_ratio_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    used = {"engine_cpu_s": 4.0, "dirty_left_bytes": 1e6, "client_cpu_per_transaction_s": 1e-5}
    trials = [
        *(record(system("closed"), 8, 3000.0 + block, block=block, series="closed") for block in range(3)),
        *(record(system("other"), 8, 2000.0 + block, block=block, series="other") for block in range(3)),
        *opened("asked", 500, 495, 0.02),
        *opened("same", 500, 495, 0.02),
    ]
    for one in trials:
        Store(tmp_path).keep(replace(one, metrics={**one.metrics, **used}))
    for named, why in (
        (("closed", "asked"), "the loads differ"),
        (
            ("closed", "other"),
            "the two sides did different work, so only values per transaction can be compared, not totals",
        ),
        (("asked", "same"), ""),
    ):
        compare(*named, str(tmp_path), False, True)
        rows = {row["metric"]: row for row in json.loads(capsys.readouterr().out)["peaks"]["rows"]}
        assert rows["client_cpu_per_transaction_s"]["ratio"] == 1
        for total in ("engine_cpu_s", "dirty_left_bytes"):
            assert (rows[total]["ratio"] is None) == bool(why) and rows[total]["no_ratio"].startswith(why)
        compare(*named, str(tmp_path), False, False)
        said = plain(capsys.readouterr().out)
        assert why in said
        assert ("engine_cpu_s" in said.partition("No ratio is computed for")[2].partition(" metric A B ")[0]) == bool(
            why
        )


def test_an_open_loop_has_no_place_in_a_leaderboard_and_that_is_said(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leaderboard("igen-oltp", "", "", "", None, results, False)
    text = plain(capsys.readouterr().out)
    assert "Left out: asked: the trials ran in an open loop at 500/s, which is a target rate and not a maximum." in text
    leaderboard("igen-oltp", "", "", "", None, results, True)
    (ranking,) = json.loads(capsys.readouterr().out)["rankings"]
    assert [place["system"] for place in ranking["places"]] == ["closed"]


def test_an_open_loop_gives_no_score_and_that_is_said(
    results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    systems = tmp_path / "systems.toml"
    systems.write_text(SYSTEMS)
    cost(["asked"], "", str(systems), None, "", results, False)
    assert "No score for asked: the trials ran in an open loop" in capsys.readouterr().out


def test_records_of_open_loops_alone_are_no_leaderboard(tmp_path: Path) -> None:
    for one in opened("asked", 500, 495, 0.02):
        Store(tmp_path).keep(one)
    with pytest.raises(InputError, match=r"nothing to rank .asked: the trials ran in an open loop") as caught:
        leaderboard("igen-oltp", "", "", "", None, str(tmp_path), False)
    assert "without --rate" in caught.value.hint


def test_the_details_of_an_open_loop_are_of_the_fewest_clients_that_kept_the_rate() -> None:
    trials = [*opened("a", 500, 300, 4.0, kept=False, clients=1), *opened("a", 500, 495, 0.1, clients=4)]
    (subject,) = subjects([*trials, *opened("a", 500, 505, 0.1, clients=8)])
    found = curve(subject)
    assert found.peak is None
    assert [(one.clients, one.is_kept) for one in found.rates] == [(1, False), (4, True), (8, True)]
    assert found.rate is not None and found.rate.clients == 4


def test_no_peak_of_an_open_loop_is_confirmed() -> None:
    choice = opened("a", 1, 1, 1)[0].choice
    for rate, confirmations in ((500.0, 0), (None, 3)):
        cells = [Cell(f"clients={count}", Load(clients=count, rate=rate, duration_s=1.0)) for count in (1, 2)]
        assert plan(DISK, choice, cells).confirmations == confirmations


def test_the_card_of_a_rate_that_was_not_kept_shows_no_response_times(results: str, tmp_path: Path) -> None:
    cards = {}
    for label in ("asked", "late"):
        target = tmp_path / f"{label}.html"
        report([label, "closed"], str(target), "", results)
        text = target.read_text()
        cards[label] = text[text.index('<div class="big">') :].partition("</li>")[0]
    assert "99th-percentile response time" in cards["asked"]
    assert "99th-percentile response time" not in cards["late"]
    big = plain(cards["late"]).partition("</div>")[0]
    assert big.startswith(
        '<div class="big">2,900 <small>transactions/s completed; the target rate of 5,000/s was not sustained'
    )


def test_response_times_of_a_rate_that_was_not_kept_stand_in_no_table_or_list() -> None:
    late, kept = opened("late", 5000, 2900, 4.0, kept=False), opened("asked", 500, 495, 4.0)
    for trials, shown in ((late, False), (kept, True)):
        assert (short(trials[0]).response_time_p99_s is not None) is shown
        assert ("4.00\u202fs" in trial_text.several(trials, None)) is shown
        assert (trial_text.NOT_KEPT in trial_text.several(trials, None)) is not shown
        assert bool(latency(studies(trials, Shelf(trials))[0])) is shown
    sides = [Subject("a", tuple(late)), Subject("b", tuple(late))]
    assert compared(*sides).cells[0].row("response_time_p99_s") is None
    assert "4.00" in trial_text.one(late[0], {}, {})


def test_a_system_without_a_line_is_in_no_legend_and_the_chart_says_why() -> None:
    trials = [*opened("late", 5000, 2900, 4.0, kept=False), *opened("asked", 500, 495, 0.02)]
    (chart,) = latency(studies(trials, Shelf(trials))[0])
    assert [key.label for key in chart.legend if key.colour != "muted"] == ["asked"]
    (layer,) = chart.specification["layer"]
    assert layer["encoding"]["color"]["scale"] == {"domain": ["asked"], "range": ["@s1"]}, "its colour everywhere"
    assert "Not shown: late, because the target rate was not sustained" in chart.note


def test_unlike_numbers_of_clients_of_open_loops_are_named() -> None:
    a, b = opened("asked", 500, 495, 0.02, clients=4), opened("same", 500, 495, 0.02, clients=2)
    (study,) = studies([*a, *b], Shelf([*a, *b]))
    assert ("load", "clients", ("4", "2")) in [(row.group, row.name, row.values) for row in study.differences]
    assert note("clients-differ", a="4", b="2") in study.unlike
    found = compared(Subject("a", tuple(a)), Subject("b", tuple(b)))
    assert ("clients", ("4", "2")) in [(row.name, row.values) for row in found.differences]
    closed = [replace(one, cell=replace(one.cell, load=replace(one.cell.load, rate=None))) for one in (*a, *b)]
    assert "clients-differ" not in codes(*studies(closed, Shelf(closed))[0].unlike), "there they are the axis"


def searched(kept: bool) -> tuple[list[Record], Study]:
    """Returns a search over five rates, whose confirmations sustain the chosen rate or not."""
    trials = [one for rate in (100, 200, 400, 450) for one in opened("a", rate, rate, 0.02)]
    trials += opened("a", 800, 600, 4.0, kept=False)
    fresh = opened("a", 450, 440, 0.02, kept=kept)
    said = text_note("best rate: 450 with 445/s, by 15 trials; 400 to 450 cannot be told apart")
    trials += [
        replace(one, id=f"{one.id}-c", purpose="confirmation", search_result=said, started_at="2026-11-21T02:00:00")
        for one in fresh
    ]
    (study,) = studies(trials, Shelf(trials))
    return trials, study


@pytest.mark.parametrize(("kept", "judged"), [(True, "3 of 3 confirmation trials sustained"), (False, "0 of 3 conf")])
def test_a_rate_search_is_headed_by_its_answer_and_by_what_the_confirmations_say_of_it(kept: bool, judged: str) -> None:
    _, study = searched(kept)
    ((name, text),) = headline(study)
    assert name == "a" and text.startswith("has this search result: best rate: 450 with 445/s, by 15 trials; ")
    assert judged in text


def test_a_row_of_confirmations_says_so_wherever_their_trials_are_counted() -> None:
    _, study = searched(False)
    (row,) = [row for row in rates(study).texts if row[1] == "450/s"]
    confirmed = [one.values["what"] for one in study.footnotes if one.code == "confirmed"]
    assert confirmed == ["rate"], "an open loop has no peak"
    assert row[3] == "not sustained in 3 confirmation trials" and row[6] == "3 (confirmations of 6 trials)"


def test_points_of_one_search_are_one_system_and_no_unlike_loads() -> None:
    _, study = searched(True)
    assert len(study.parts) == 5 and len(study.systems) == 1
    assert document.title(study) == "a at 5 rates"
    assert document.contents([study]) is None, "the answer comes first"
    contents = document.contents([study, study])
    assert contents is not None and "2 kinds of work, 2 systems," in contents.lead
    assert "loads-differ" not in codes(*study.unlike)
