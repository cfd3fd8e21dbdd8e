"""A lab that varies the system also measures at percentages of the baseline's peak, unless disabled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import labfactory
import pytest
from factories import Shelf, SortedHistogram, codes
from labfactory import said, studied

from ironbench.cli.lab import plan as planned
from ironbench.errors import InputError
from ironbench.lab import declare as files
from ironbench.model.lab import Claim, Lab, Stage
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.plan import fixed_rates
from ironbench.report.document import report as report_of
from ironbench.report.formats import text as lab_text
from ironbench.report.numbers import quantity
from ironbench.report.sections.same_load import same_load as charts_of
from ironbench.report.sections.same_load import same_load_tables
from ironbench.report.study_json import document
from ironbench.study.claims import ClaimVerdict
from ironbench.study.findings import PERCENTILES, declared, findings
from ironbench.study.labstudy import lab_study

START = 'question = "Faster?"\n[system]\nengine = "null"\n[workload]\nname = "select-only"\n[load]\nclients = 4\n'
SPEED = '[vary.speed]\nslow = { set = { service = "1ms" } }\nfast = {}\n'


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRONBENCH_DATA", str(tmp_path / "data"))


def plan(folder: Path, text: str, budget_s: float | None = None) -> files.Planned:
    file = folder / "speed.toml"
    file.write_text(START + text)
    return files.planned(files.read(file), budget_s)


def rated_trials(lab: Lab) -> int:
    names = {setup.cell.name for setup in lab.rated}
    return sum(trial.cell.name in names for trial in lab.trials)


def test_a_lab_of_systems_has_its_cells_at_three_rates(tmp_path: Path) -> None:
    lab = plan(tmp_path, SPEED).lab
    assert [setup.cell.name for setup in lab.rated] == [
        f"speed={speed} rate={rate}" for rate in ("50%", "70%", "90%") for speed in ("slow", "fast")
    ]
    assert lab.rated_comparisons[1] == ("speed=fast rate=70%", "speed=slow rate=70%")
    assert [setup.cell.load.rate_share for setup in lab.rated] == [0.5, 0.5, 0.7, 0.7, 0.9, 0.9]
    assert rated_trials(lab) == 6 * 6
    assert lab.setup("speed=fast rate=90%").origin == "speed=fast"


@pytest.mark.parametrize(
    "text",
    [
        "[vary]\nclients = [1, 2]\n",
        SPEED + "[vary]\nclients = [4, 2]\n",
        "rate = 100\n" + SPEED + "[measure]\nmetric = 'response_time_p99_s'\n",
        "transactions = 100\n" + SPEED,
        "think_time = '1ms'\n" + SPEED,
        SPEED + "[measure]\nrates = 'none'\n",
    ],
)
def test_a_lab_that_varies_the_load_or_says_no_has_none(tmp_path: Path, text: str) -> None:
    lab = plan(tmp_path, text).lab
    assert not lab.rated and not lab.rated_comparisons
    assert len(lab.trials) == 6 * len(lab.setups)


def test_a_lab_whose_clients_follow_a_curve_has_no_peak_and_no_share_of_it(tmp_path: Path) -> None:
    start, file = START.replace("clients = 4", 'clients = "ramp:1-8/20s"'), tmp_path / "curve.toml"
    file.write_text(start + SPEED)
    assert not files.planned(files.read(file)).lab.rated
    file.write_text(start + SPEED + '[measure]\nrates = ["70%"]\n')
    with pytest.raises(InputError, match="the load follows a curve, so there is no single peak"):
        files.planned(files.read(file))


def test_a_lab_of_open_loops_cannot_be_decided_by_the_throughput_that_it_asks_for(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="throughput: in an open loop, the target rate determines this metric"
    ) as caught:
        plan(tmp_path, "rate = 100\n" + SPEED)
    assert "response_time_p99_s" in caught.value.hint


def test_work_that_is_no_transactions_has_none(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    file = tmp_path / "disks.toml"
    file.write_text('question = "?"\n[workload]\nname = "storage"\n[vary]\nlayout.data = ["./one", "./other"]\n')
    with pytest.raises(InputError, match="add up the I/Os of all tests") as caught:
        files.planned(files.read(file))
    assert "storage_bytes_per_s{profile=kdm-seq1m-q8t1-read}" in caught.value.hint
    with file.open("a") as text:
        text.write('[measure]\nmetric = "storage_iops{profile=kdm-rnd4k-q1t1-read}"\n')
    assert not files.planned(files.read(file)).lab.rated


def test_rates_that_cannot_be_are_refused_with_the_reason(tmp_path: Path) -> None:
    for text, cause in (
        ("[vary]\nclients = [1, 2]\n[measure]\nrates = ['50%']\n", "varies the number of clients"),
        (SPEED + "[measure]\nrates = ['fast']\n", "not a percentage of the peak"),
        (SPEED + "[measure]\nrates = ['50%', '50 %']\n", "listed twice"),
        (SPEED + "[measure]\nrates = 'non'\n", "'non' is unknown"),
    ):
        with pytest.raises(InputError, match=cause) as caught:
            plan(tmp_path, text)
        assert "measure.rates" in caught.value.subject
        assert "500" not in caught.value.hint, "no number may stand there"


def test_the_later_blocks_are_as_they_would_be_without(tmp_path: Path) -> None:
    both = [plan(tmp_path, f"{SPEED}[measure]\nseed = 1\nrepeats = 9\nrates = {r}\n").lab for r in ("'auto'", "'none'")]
    later = [[(t.cell.name, t.block) for t in lab.trials if t.block >= 6] for lab in both]
    assert later[0] == later[1]


def test_the_plan_says_what_they_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(tmp_path, SPEED)
    without = plan(tmp_path, SPEED + "[measure]\nrates = 'none'\n")
    assert found.costs.rated_s(0.0) == pytest.approx(found.lab.estimate_s - without.lab.estimate_s)
    plan(tmp_path, SPEED)
    assert planned(str(tmp_path / "speed.toml"), "", json=False) == 0
    shown = capsys.readouterr().out
    assert (
        "2 configurations also run at 50%, 70% and 90% of the baseline's peak throughput, in the first 6 blocks:"
    ) in shown
    assert "39 trials" in shown and "51 trials" in shown
    planned(str(tmp_path / "speed.toml"), "", json=True)
    assert json.loads(capsys.readouterr().out)["rated"][0] == {
        "name": "speed=slow rate=50%",
        "of": "speed=slow",
        "share": 0.5,
    }


def test_a_budget_gives_them_half_at_most_and_says_when_it_has_no_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roomy = plan(tmp_path, SPEED, budget_s=900)
    assert roomy.lab.estimate_s <= 900
    assert roomy.costs.rated_blocks >= fixed_rates.LEAST_BLOCKS
    assert roomy.costs.rated_s(0.0) <= 450
    assert roomy.lab.method.blocks >= 6

    tight = plan(tmp_path, SPEED, budget_s=150)
    assert not tight.lab.rated and tight.crowded_out
    planned(str(tmp_path / "speed.toml"), "150s", json=False)
    assert "too small to also measure response times at the same load" in capsys.readouterr().out


CLAIM = "fast rate=70% over slow rate=70% (response_time_p99_s): at most 0.9"


@pytest.mark.parametrize(
    ("claim", "rates", "cause"),
    [
        ("fast rate=60% over slow rate=60% (response_time_p99_s): at most 1.0", "'auto'", "is not measured"),
        (CLAIM, "'none'", "is not measured"),
        (CLAIM.replace("slow rate=70%", "slow"), "'auto'", "without a fixed rate"),
        (CLAIM.replace(" (response_time_p99_s)", ""), "'auto'", "the rate determines"),
    ],
)
def test_a_claim_about_a_rate_that_cannot_be_decided_is_refused(
    tmp_path: Path, claim: str, rates: str, cause: str
) -> None:
    with pytest.raises(InputError, match=cause) as caught:
        plan(tmp_path, f"{SPEED}[measure]\nrates = {rates}\n[expect]\nclaims = ['{claim}']\n")
    assert "expect.claims[0]" in caught.value.subject


def test_the_plan_says_when_a_claim_about_a_rate_will_stay_undecided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{SPEED}[measure]\nrepeats = 6\n[expect]\nclaims = ['{CLAIM}']\n"
    plan(tmp_path, text)
    planned(str(tmp_path / "speed.toml"), "", json=False)
    assert "will stay undecided" not in capsys.readouterr().out
    planned(str(tmp_path / "speed.toml"), "150s", json=False)
    assert "will stay undecided, because the budget is too small; a budget of about " in capsys.readouterr().out


def test_a_budget_buys_the_blocks_that_a_claim_about_a_rate_needs_and_says_what_would_where_it_cannot(
    tmp_path: Path,
) -> None:
    text = f"{SPEED}[expect]\nclaims = ['{CLAIM}']\n"
    tight = plan(tmp_path, text, budget_s=150).lab
    needed_s = tight.method.budget_for_rates_s
    assert needed_s is not None and not tight.rated
    enough = plan(tmp_path, text, needed_s)
    assert enough.costs.rated_blocks == 6 and enough.lab.method.budget_for_rates_s is None
    assert enough.lab.estimate_s <= needed_s
    few = plan(tmp_path, text, needed_s - 60)
    assert few.costs.rated_blocks < 6 and few.lab.method.budget_for_rates_s == needed_s
    without_claim = plan(tmp_path, SPEED, needed_s).costs
    assert without_claim.rated_blocks >= fixed_rates.USEFUL_BLOCKS


def test_the_report_says_that_the_budget_left_a_claim_open_and_what_budget_would_not(lab: Lab) -> None:
    cells = ("log=memory rate=70%", "log=disk rate=70%")
    claim = Claim("memory answers faster", "ratio", "response_time_p99_s", cells, None, 0.8)
    budgeted = replace(lab, claims=(claim,), method=replace(lab.method, budget_s=900.0, budget_for_rates_s=1320.0))
    late = {one.cell.name for one in lab.rated}
    few = replace(budgeted, trials=tuple(t for t in lab.trials if t.cell.name not in late or t.block < 3))
    records = records_of(few)
    study = studied(few, records)
    assert study.claims[0].verdict is ClaimVerdict.UNDECIDED
    assert (
        "The budget of 15 min was too short for the configurations at a fixed rate: a verdict about these "
        "configurations needs 6 blocks, but only 3 ran. Use a budget of about 22 min, or run `ironbench lab resume log "
        "--more 6`."
    ) in said(study)
    none = fixed_rates.without(replace(budgeted, trials=tuple(t for t in lab.trials if t.cell.name not in late)))
    records = records_of(none)
    assert "The budget of 15 min was too short for the configurations at a fixed rate" in said(studied(none, records))
    records = records_of(budgeted)
    assert not studied(budgeted, records).too_little_time
    records = records_of(few)
    unclaimed = replace(few, claims=())
    assert not studied(unclaimed, records).too_little_time


def with_rated_cells(lab: Lab) -> Lab:
    lab = fixed_rates.extended(lab, "auto", "measure.rates")
    cells = [setup.cell for setup in lab.rated]
    first = [replace(lab.trials[0], cell=cell, block=block, purpose="lab") for block in range(6) for cell in cells]
    known = tuple(
        replace(one, cell=replace(one.cell, load=replace(one.cell.load, rate=1000.0 * one.cell.load.rate_share)))
        for one in lab.rated
        if one.cell.load.rate_share
    )
    return replace(lab, trials=(*lab.trials, *first), rated=known)


def records_of(lab: Lab) -> Sequence[Record]:
    means = {name: 1000.0 if "disk" in name else 1100.0 for name in (setup.cell.name for setup in lab.all_setups)}
    records = labfactory.trials(lab, means)
    shape = {"p50": 0.004, "p90": 0.01, "p95": 0.012, "p99": 0.02, "p999": 0.03, "max": 0.04}
    slow = {f"response_time_{part}_s": value for part, value in shape.items()}
    fast = {name: value / 2 for name, value in slow.items()}
    return [
        replace(record, metrics={**record.metrics, **(slow if "disk" in record.cell.name else fast)})
        for record in records
    ]


@pytest.fixture
def lab() -> Lab:
    return with_rated_cells(labfactory.lab({"log": ("disk", "memory")}, blocks=8))


def test_they_are_no_part_of_the_family_that_is_corrected_for(lab: Lab) -> None:
    records = records_of(lab)
    assert declared(lab) == (("log=memory", "log=disk", "throughput"),)
    found = findings(records, lab, 1)
    plain = findings(records, fixed_rates.without(lab), 1)
    assert [one for one in found if one.decides] == [one for one in plain if one.decides]
    at_rates = [one for one in found if "rate=" in one.cell]
    assert {(one.cell, one.metric) for one in at_rates} >= {("log=memory rate=70%", "response_time_p99_s")}
    assert {one.metric for one in at_rates} <= set(PERCENTILES)
    assert not any(one.decides or one.p is not None for one in at_rates)


def test_the_report_shows_both_sides_at_each_rate(lab: Lab) -> None:
    records = records_of(lab)
    study = studied(lab, records)
    assert [one.share for one in study.same_loads] == [0.5, 0.7, 0.9]
    assert study.same_loads[1].rate == 700
    ((name, table),) = same_load_tables(study.same_loads)
    assert name == "WAL in memory vs. WAL on disk"
    assert table.texts[0][:5] == ("50%", "500/s", "2.00\u202fms", "4.00\u202fms", "0.500x")
    assert "Response times at the same load" in lab_text.render([report_of(study)]).decode()
    assert [one["share"] for one in document(study)["same_loads"]] == [0.5, 0.7, 0.9]
    assert not any("rate=" in finding.sides[0].name for finding in study.others)
    assert [cell.name for cell in study.cells] == ["log=disk", "log=memory"]


def test_a_claim_gives_the_rate_that_it_names_a_verdict_and_no_other(lab: Lab) -> None:
    cells = ("log=memory rate=70%", "log=disk rate=70%")
    claim = Claim("memory answers faster", "ratio", "response_time_p99_s", cells, None, 0.8)
    lab = replace(lab, claims=(claim,))
    records = records_of(lab)
    study = studied(lab, records)
    assert [(one.claim, one.verdict) for one in study.claims] == [(claim, ClaimVerdict.CONFIRMED)]
    (finding,) = study.claimed
    assert finding.name == "log=memory over log=disk, at rate=70%"
    assert [one.name for one in study.findings] == ["log=memory over log=disk"]
    assert not any(finding.decides for one in study.same_loads for finding in one.findings)
    turned = replace(claim, cells=tuple(reversed(cells)), low=1.5, high=None)
    (about,) = studied(replace(lab, claims=(turned,)), records).claimed
    assert about.name == "log=memory over log=disk, at rate=70%"
    gone = lab_study(fixed_rates.without(lab), [r for r in records if "rate=" not in r.cell.name], Shelf(records))
    assert gone.claims[0].verdict is ClaimVerdict.UNDECIDED
    assert declared(fixed_rates.without(lab)) == (("log=memory", "log=disk", "throughput"),)


def test_a_chart_for_each_percentile_shows_every_block_of_every_cell(lab: Lab) -> None:
    records = records_of(lab)
    charts = charts_of(studied(lab, records))
    assert [chart.id for chart in charts] == [
        f"same-load-response_time_{part}_s" for part in ("p50", "p90", "p99", "p999")
    ]
    data = charts[2].specification["datasets"]
    assert len(data["means"]) == 3 * 2 and len(data["points"]) == 3 * 2 * 6
    assert {row["system"]: row["value"] for row in data["means"]} == pytest.approx(
        {"log=disk": 20.0, "log=memory": 10.0}, rel=0.01
    )
    assert all(row["low"] == row["high"] == pytest.approx(row["value"], rel=0.01) for row in data["means"])
    assert charts[2].table.texts[1][0] == "70% · 700/s"
    few = [replace(one, metrics={**one.metrics, "transactions": 2000.0}) for one in records]
    assert [chart.id[-5:] for chart in charts_of(studied(lab, few))] == ["p50_s", "p90_s", "p99_s"]
    one_block = [record for record in records if record.block == 0 or "rate=" not in record.cell.name]
    alone = charts_of(studied(lab, one_block))[2].specification["datasets"]["means"]
    assert all(row["low"] == row["value"] == row["high"] for row in alone)


def test_a_percentile_at_the_same_load_is_that_of_the_transactions_of_all_blocks(lab: Lab) -> None:
    records = records_of(lab)
    slow = next(one for one in records if one.cell.name == "log=disk rate=70%")
    records = [
        replace(one, metrics={**one.metrics, "response_time_p99_s": 0.4}) if one.id == slow.id else one
        for one in records
    ]
    shelf = Shelf(records)
    merged = SortedHistogram()
    for one in records:
        if one.cell.name == slow.cell.name:
            merged.merge(shelf.histograms(one.id)["response_time"])
    (expected,) = merged.quantiles([0.99])
    study = lab_study(lab, records, shelf)
    time = study.same_loads[1].baseline.times["response_time_p99_s"]
    assert time.summary.centre == expected
    ((_, table),) = same_load_tables(study.same_loads)
    assert table.texts[1][table.head.index("p99") + 1] == quantity(expected, "s")
    row = next(row for row in charts_of(study)[2].specification["datasets"]["means"] if row["place"] > 0.5)
    assert row["value"] == pytest.approx(expected * 1e3)


def test_a_side_that_fell_behind_is_named(lab: Lab) -> None:
    late = Note("rate-not-kept", {"text": "the rate of 900/s was not kept"})
    records = [
        replace(record, warnings=(late,)) if record.cell.name == "log=disk rate=90%" else record
        for record in records_of(lab)
    ]
    cells = ("log=memory rate=90%", "log=disk rate=90%")
    claims = tuple(Claim("?", "ratio", "response_time_p99_s", cells, None, most) for most in (0.001234, 1.0))
    study = studied(replace(lab, claims=claims), records)
    assert [one.verdict for one in study.claims] == [ClaimVerdict.REFUTED, ClaimVerdict.CONFIRMED]
    behind = note("fell-behind", cell=lab.configuration("log=disk rate=90%"), trials=6, of=6)
    assert [one.reasons[1:] for one in study.claims] == [(behind,), (behind,)]
    seen = study.claims[0].reasons[0].values
    assert (seen["low"], seen["high"]) == pytest.approx((0.4992, 0.5008), abs=1e-4)
    ((_, table),) = same_load_tables(study.same_loads)
    rows = table.texts
    assert table.head[-1] == "caveat"
    assert rows[2][-2:] == ("6", "WAL on disk did not sustain the rate in 6 of 6 trials")
    assert rows[0][-1] == ""


def test_only_its_own_round_tells_which_side_fell_behind(lab: Lab) -> None:
    cells = ("log=memory rate=90%", "log=disk rate=90%")
    claim = Claim("?", "ratio", "response_time_p99_s", cells, None, 1.0)
    again = tuple(replace(trial, block=trial.block + 8, stage=2) for trial in lab.trials if trial.block < 6)
    rounds = replace(lab.method, stages=(*lab.method.stages, Stage(2, 6, added=True)))
    twice = replace(lab, claims=(claim,), method=rounds, trials=(*lab.trials, *again))
    late = Note("rate-not-kept", {"text": "the rate of 900/s was not kept"})
    records = [
        replace(record, warnings=(late,)) if record.cell.name == cells[1] and record.stage == 1 else record
        for record in records_of(twice)
    ]
    study = studied(twice, records)
    assert codes(*study.claims[0].reasons) == ["interval-against-range"]
    behind = note("fell-behind", cell=lab.configuration("log=disk rate=90%"), trials=6, of=6)
    assert study.earlier[0].claims[0].reasons[-1] == behind
