"""Leads have a confidence interval and a margin, and are shown beside the hardware's difference."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from factories import DISK, MEMORY, Shelf, record, suspect, sweep, unfolded

from ironbench.errors import InputError
from ironbench.model.note import Note, note
from ironbench.model.own_data import OwnData
from ironbench.model.record import RATE_NOT_KEPT, Record
from ironbench.model.system import Choice, Load, System
from ironbench.report import formats, wording
from ironbench.report import lead as report
from ironbench.report.numbers import number, quantity
from ironbench.study.compare import MeanRatio, mean_ratio
from ironbench.study.lead import Leads, WorkLead, leads, outcome
from ironbench.study.summarise import Repeats, repeats

OLD = {"cpu": {"model": "Old @ 2.40GHz", "cores": 8}}
NEW = {"cpu": {"model": "New @ 3.04GHz", "cores": 8, "max_hz": 4_100_000_000}}


def runs(*values: float) -> Repeats:
    return Repeats(values, values, len(values))


def ratio_of(a: Repeats, b: Repeats) -> MeanRatio:
    one = mean_ratio(a, b)
    assert one is not None
    return one


def at_peak(work: WorkLead, metric: str = "throughput") -> MeanRatio:
    row = work.peaks.row(metric) if work.peaks else None
    assert row is not None and row.means is not None
    return row.means


def found(margin: float = 0.05):
    old = sweep(DISK, 3000, 5)
    new = [replace(one, machine="m2") for one in sweep(MEMORY, 4800, 5, seed=2)]
    return leads("old", old, "new", new, Shelf([*old, *new], machines={"m1": OLD, "m2": NEW}), margin)


def test_a_lead_carries_its_interval_and_a_word() -> None:
    ahead = ratio_of(runs(100, 101, 99), runs(128, 127, 129))
    assert ahead.low < 1.28 < ahead.high
    assert wording.text(outcome(ahead, 0.05)) == "28% higher"
    equal = ratio_of(runs(100, 101, 99), runs(101, 100, 100))
    assert outcome(equal, 0.05) == note("lead-equal", margin=0.05)
    assert outcome(ratio_of(runs(100, 150, 70), runs(110, 80, 160)), 0.05) == note("lead-inconclusive")
    assert outcome(ratio_of(runs(100), runs(130)), 0.05) == note("lead-of-one-trial")
    slower = ratio_of(runs(10, 10.1, 9.9), runs(5, 5.1, 4.9))
    assert wording.text(outcome(slower, 0.05, "lower")) == "50% lower, which is better"


def test_values_are_those_that_the_ratio_is_made_of() -> None:
    one = ratio_of(runs(100.0, 200.0, 400.0), runs(300.0, 300.0, 900.0))
    assert one.centres == pytest.approx((200.0, 300 * 3 ** (1 / 3)))
    assert one.ratio == pytest.approx(one.centres[1] / one.centres[0])
    shown = found()
    a, b = at_peak(shown.works[0]).centres
    row = next(row for row in report.peaks(shown).texts if "throughput at the peak" in row[0])
    assert row[1:4] == (quantity(a, "1/s"), quantity(b, "1/s"), number(b / a))
    assert document(shown)["works"][0]["peaks"]["values"]["throughput"] == [a, b]
    assert "Values are geometric means" in unfolded(
        report.page(shown)
    ) and "`ironbench report` show the same ratios" in unfolded(report.page(shown))
    assert "The row for the peak uses only the confirmation trials" in unfolded(report.page(shown))


def test_a_row_of_clients_is_of_all_their_trials_confirmations_included() -> None:
    shown = found()
    work = shown.works[0]
    assert work.peaks is not None and "all trials with that number of clients" in unfolded(report.page(shown))
    confirmed = work.clients
    assert confirmed[0] == confirmed[1]
    for clients, row in work.by_clients:
        swept, fresh = 3, 3 * (clients == confirmed[0])
        assert row.means is not None
        assert row.means.trials == (swept + fresh, swept + fresh), clients


def test_failures_stand_beside_every_rate_of_a_lead() -> None:
    old = sweep(DISK, 3000, 5)
    new = [
        replace(one, metrics={**one.metrics, "failed": one.metrics["transactions"] / 19})
        for one in sweep(MEMORY, 4800, 5, seed=2)
    ]
    text = unfolded(report.page(leads("old", old, "new", new, Shelf([*old, *new]), 0.05)))
    assert "5% of the transactions of new failed" in text
    assert text.count("(5% failed)") == 1 + 7, "at the peak, and at each number of clients"


def test_welch_interval_is_that_of_a_textbook() -> None:
    """Unequal variances: means of logarithms 0 and 1, variances 0.01 and 0.25, three and four values."""
    import math

    a = [math.exp(x) for x in (-0.1, 0.0, 0.1)]
    b = [math.exp(1 + x) for x in (-0.5, 0.5, -0.5, 0.5)]
    one = ratio_of(runs(*a), runs(*b))
    spread = math.sqrt(0.01 / 3 + (1 / 3) / 4)
    freedom = spread**4 / ((0.01 / 3) ** 2 / 2 + (1 / 12) ** 2 / 3)
    assert freedom == pytest.approx(3.22, abs=0.05)
    from ironbench.stats.intervals import t_quantile

    assert math.log(one.high) - 1 == pytest.approx(t_quantile(0.975, freedom) * spread)


def test_peaks_are_those_of_fresh_trials_beside_frequency_and_cores() -> None:
    shown = found()
    work = shown.works[0]
    assert work.confirmed
    assert shown.hertz_ratio == pytest.approx(3.04 / 2.4)
    assert shown.cores == (8, 8)
    assert at_peak(work).ratio == pytest.approx(1.6, rel=0.05)
    assert [clients for clients, _ in work.by_clients] == [1, 2, 4, 8, 12, 16, 20]
    text = unfolded(report.page(shown))
    assert text.index("What differs") < text.index("Peak throughput")
    assert "1.27x the nominal clock frequency" in text
    assert document(shown)["works"][0]["peaks"]["confirmed"] is True


def test_doubts_about_the_trials_of_a_peak_and_derivation_are_said() -> None:
    tpch = Choice("tpch", {"scale_factor": "1"})
    old, new = ([record(DISK, machine=m, choice=tpch, id=f"{m}{n}") for n in range(3)] for m in ("m1", "m2"))
    shown = leads("old", [suspect(old[0]), *old[1:]], "new", new, Shelf(), 0.05)
    assert "not comparable" in shown.derived[0]
    (flagged,) = shown.caveats
    assert (flagged.code, flagged.values["trials"], flagged.values["of"]) == ("peak-flagged", 1, 3)
    assert [one.code for one in flagged.values["causes"]] == ["client-saturated"]
    for text in (unfolded(report.page(shown)), page_of(shown), json.dumps(document(shown), ensure_ascii=False)):
        assert "97% busy" in text and "not comparable" in text


def document(found: Leads) -> Any:
    return json.loads(formats.of_page("json")(report.page(found)))


def page_of(found: Leads) -> str:
    return formats.of_page("html")(report.page(found)).decode()


@pytest.mark.parametrize(("of_runs", "least", "most"), [(1, 0.0, 0.0), (3, 0.0, 0.07), (6, 0.0, 0.07)])
def test_a_system_seldom_leads_over_itself_although_runs_vary_by_3_percent(
    of_runs: int, least: float, most: float
) -> None:
    """200 comparisons of a system with itself; trials vary by 1%, runs by 3%."""
    dice, ahead = random.Random(1), 0
    for _ in range(200):
        sides = []
        for side in "ab":
            levels = [1000 * dice.lognormvariate(0, 0.03) for _ in range(of_runs)]
            trials = [
                record(DISK, 8, level * dice.lognormvariate(0, 0.01), block=block, series=f"{side}{run}")
                for run, level in enumerate(levels)
                for block in range(5)
            ]
            sides.append(repeats(trials, "throughput"))
        code = outcome(ratio_of(*sides), 0.05).code
        ahead += code == "lead"
        assert (code == "lead-of-one-run") == (of_runs == 1)
    assert least <= ahead / 200 <= most


def test_blocks_of_one_lab_are_repeats_and_trials_of_one_run_are_not() -> None:
    old, new = ([record(side, purpose="lab", block=block, series="x") for block in range(3)] for side in (DISK, MEMORY))
    in_blocks = leads("old", old, "new", new, Shelf([*old, *new]), 0.05)
    assert not at_peak(in_blocks.works[0]).single_run
    assert at_peak(found().works[0]).single_run
    assert "no verdict, because there is only one run" in unfolded(report.page(found())) and "% higher" not in unfolded(
        report.page(found())
    )


def scripted(side: System, digest: str, name: str = "my.sql", data: str = "") -> Record:
    own = OwnData(dump="/srv/shop.dump", digests=(data,)) if data else None
    return record(side, machine="m1", choice=Choice("script", scripts=(name,), digests=(digest,), data=own))


def test_scripts_or_data_of_one_name_and_other_contents_are_refused_and_moved_ones_are_not() -> None:
    for other in (scripted(MEMORY, "b"), scripted(MEMORY, "a", data="e")):
        one = scripted(DISK, "a", data="d" if other.choice.data else "")
        with pytest.raises(InputError, match=r"no work in common: .*(my\.sql has different contents|shop\.dump)"):
            leads("a", [one], "b", [other], Shelf(), 0.05)
    moved = scripted(MEMORY, "a", "/elsewhere/my.sql")
    assert leads("a", [scripted(DISK, "a")], "b", [moved], Shelf(), 0.05).works[0].work == "script my.sql"
    both = leads("a", [scripted(DISK, "a")], "b", [moved, scripted(MEMORY, "b")], Shelf(), 0.05)
    assert both.apart == (note("work-of-one-side", side="b", work="script my.sql #2"),)


def test_a_page_and_a_picture_are_drawn() -> None:
    page = page_of(found())
    assert "Peak throughput" in page and "At each number of clients" in page
    assert formats.of_page("png")(report.page(found())).startswith(b"\x89PNG")


def test_a_chart_shows_the_lead_at_each_number_of_clients_with_its_interval() -> None:
    shown = found()
    chart = report.clients_chart(shown)
    assert chart is not None
    rows = chart.specification["datasets"]["points"]
    assert [row["clients"] for row in rows] == [1, 2, 4, 8, 12, 16, 20]
    assert all(row["low"] < row["ratio"] < row["high"] for row in rows)
    assert chart.specification["datasets"]["clock"] == [{"at": shown.hertz_ratio}]
    alone = replace(shown, works=tuple(replace(work, by_clients=work.by_clients[:1]) for work in shown.works))
    assert report.clients_chart(alone) is None


def test_different_work_is_told_apart_and_none_in_common_refused() -> None:
    old, other = record(machine="m1"), record(MEMORY, machine="m1")
    larger = replace(other, choice=replace(other.choice, options={"scale": "8"}))
    with pytest.raises(InputError, match="no work in common"):
        leads("a", [old], "b", [larger], Shelf(), 0.05)
    both = leads("a", [old], "b", [other, larger], Shelf(), 0.05)
    assert both.apart == (note("work-of-one-side", side="b", work="igen-oltp scale=8"),)
    newer = replace(other, software={"ironbench": "9.0"})
    with pytest.raises(InputError, match="different versions of ironbench"):
        leads("a", [old], "b", [newer], Shelf(), 0.05)


@pytest.mark.parametrize(
    ("of_a", "of_b", "ratio", "kind"),
    [
        ({"max_hz": 2e9}, {"max_hz": 3e9}, 1.5, "highest"),
        ({"model": "X @ 2.00GHz", "max_hz": 3.9e9}, {"model": "Y @ 2.20GHz"}, 1.1, "nominal"),
        ({"model": "X", "max_hz": 3.9e9}, {"model": "Y @ 2.20GHz"}, None, ""),
    ],
)
def test_frequencies_of_one_kind_only_are_compared(of_a: dict, of_b: dict, ratio: float | None, kind: str) -> None:
    shelf = Shelf(machines={"m1": {"cpu": of_a}, "m2": {"cpu": of_b}})
    shown = leads("a", [record(machine="m1")], "b", [record(MEMORY, machine="m2")], shelf, 0.05)
    assert shown.hertz_ratio == (pytest.approx(ratio) if ratio else None)
    assert shown.hertz_kind == kind


def test_trials_before_the_first_block_of_a_lab_leave_its_cells_measured_in_turns() -> None:
    old, new = ([record(side, purpose="lab", block=block, series="x") for block in range(3)] for side in (DISK, MEMORY))
    peak = record(DISK, purpose="peak", series="x")
    assert leads("old", [peak, *old], "new", new, Shelf([peak, *old, *new]), 0.05).in_turns
    assert not leads("old", old, "new", [replace(one, series="y") for one in new], Shelf([*old, *new]), 0.05).in_turns


def test_of_one_machine_neither_cores_nor_clock_frequency_are_compared() -> None:
    old, new = sweep(DISK, 3000, 5), sweep(MEMORY, 4800, 5, seed=2)
    for machine in (OLD, {"cpu": {"model": "no frequency in its name", "cores": 8}}):
        shown = leads("old", old, "new", new, Shelf([*old, *new], machines={"m1": machine}), 0.05)
        text = unfolded(report.page(shown))
        assert "frequenc" not in text and "cores" not in text
        assert shown.cores == (8, 8)


def test_trials_of_one_rate_are_not_mixed_with_those_of_a_closed_loop() -> None:
    open_loop = Load(rate=500.0, duration_s=30.0)
    sides = [
        [record(system, 8, closed, id=f"{n}c"), record(system, 8, 500.0, load=open_loop, id=f"{n}o")]
        for n, (system, closed) in enumerate(((DISK, 1000.0), (MEMORY, 2000.0)))
    ]
    found = leads("a", sides[0], "b", sides[1], Shelf(), 0.05)
    closed, driven = found.works
    assert closed.by_clients[0][1].ratio == pytest.approx(2.0)
    assert driven.work.endswith("rate=500")
    assert driven.by_clients == () and driven.peaks is not None
    assert [row.metric for row in driven.peaks.rows] == ["response_time_mean_s"]
    said = report.sentences(found)[-1]
    assert (
        "rate=500: both systems sustained the target rate; response time at the rate: no CI, because there is only one "
        "trial (1"
        in said
        and "peak" not in said
    )
    behind = Note(RATE_NOT_KEPT, {"text": "80 % of it was finished"})
    slow = [sides[1][0], replace(sides[1][1], warnings=(behind,))]
    said = report.sentences(leads("a", sides[0], "b", slow, Shelf(), 0.05))[-1]
    assert said.endswith(
        "rate=500: the target rate was sustained with a and not sustained with b; response times are compared only if "
        "both systems sustain the target rate."
    )


@pytest.mark.parametrize(
    "other",
    [
        {"machine": "m2"},
        {"system": replace(DISK, settings={"shared_buffers": "1GB"})},
        {"load": Load(duration_s=60.0, warmup_s=5.0)},
        {"engine": "e2"},
    ],
)
def test_a_label_of_two_systems_is_refused(other: dict) -> None:
    old = [record(machine="m1", engine="e1", id="1"), record(**{"machine": "m1", "engine": "e1", **other}, id="2")]
    engines = {"e1": {"version": "17.6"}, "e2": {"version": "18.1"}}
    new = [record(MEMORY, machine="m1", engine="e1", id="3")]
    with pytest.raises(InputError, match=r"selects trials of .*two") as caught:
        leads("old", old, "new", new, Shelf(machines={"m1": OLD, "m2": NEW}, engines=engines), 0.05)
    assert caught.value.subject == "old"
    assert " vs. " in caught.value.cause


def test_what_differs_names_engine_settings_and_load_too() -> None:
    old = record(machine="m1", engine="e1", load=Load(duration_s=10.0))
    new = record(MEMORY, machine="m1", engine="e2", load=Load(duration_s=30.0))
    engines = {"e1": {"version": "17.6"}, "e2": {"version": "18.1"}}
    text = unfolded(report.page(leads("old", [old], "new", [new], Shelf(machines={"m1": OLD}, engines=engines), 0.05)))
    above = text[: text.index("Peak throughput")]
    for fact in ("17.6", "18.1", "/shm/l", "duration"):
        assert fact in above


def test_a_ratio_is_of_the_same_trials_as_the_values_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The percentile of a trial with too few transactions is in neither."""
    monkeypatch.setattr("ironbench.study.lead.leading", lambda choice: ("response_time_p99_s",))
    old = [record(DISK, 8, 1000.0, block=block, machine="m1") for block in range(3)]
    few = record(DISK, 8, 1000.0, block=3, machine="m1", metrics={"transactions": 12.0, "response_time_p99_s": 900.0})
    new = [record(MEMORY, 8, 1000.0, block=block, machine="m2") for block in range(3)]
    shelf = Shelf([*old, few, *new], machines={"m1": OLD, "m2": NEW})
    one = at_peak(leads("old", [*old, few], "new", new, shelf, 0.05).works[0], "response_time_p99_s")
    assert one.trials == (3, 3)
    assert one.ratio == pytest.approx(1)
