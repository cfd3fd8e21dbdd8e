"""The page of the TPC-H-derived workload starts with power, and below scale factor 1 with the unrounded figure."""

from dataclasses import replace

import pytest
from factories import DISK, MEMORY, Shelf, record, unfolded
from labfactory import lab, studied, trials

from ironbench.model.note import Note, note
from ironbench.model.record import Budget, Record
from ironbench.model.system import Choice, System
from ironbench.report import cell as cells
from ironbench.report import lead as lead_report
from ironbench.report import presentation
from ironbench.report.charts.effects import effects
from ironbench.report.compare_page import page as comparison
from ironbench.report.sections.cpu_and_waits import of_parts
from ironbench.study.compare import compare
from ironbench.study.lead import leads
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.study.subjects import Subject

UNIT = "queries/h × SF"


def single(system: System, faster: float, sf: str = "0.01", **fields: object) -> Record:
    figures = {
        "power": 360.0,
        "power_unrounded": 2877.3 * faster,
        "stream_throughput": 3960.0,
        "stream_throughput_unrounded": 3963.9 * faster,
        "query_time_geomean_s": 0.01214 / faster,
        "query_time_s{query=q01}": 0.05 / faster,
    }
    return replace(record(system, 1, 67.0, metrics=figures, **fields), choice=Choice("tpch", {"sf": sf}))


def shown(*records: Record) -> tuple[Study, presentation.Presentation]:
    (study,) = studies(records)
    page = presentation.of_study(study)
    assert page is not None
    return study, page


@pytest.mark.parametrize(
    ("sf", "how", "figure"), [("0.01", "unrounded", "2,880"), ("1", "rounded as the TPC-H rules prescribe", "360")]
)
def test_card_table_and_sentence_lead_with_the_same_figure(sf: str, how: str, figure: str) -> None:
    study, page = shown(single(DISK, 1.0, sf))
    assert page.headline(study)[0][1].startswith(f"reaches power {figure}, throughput ")
    assert how in page.headline(study)[0][1]
    first, unit, _ = page.card(study.parts[0])
    assert (cells.cell_text(first), unit) == (figure, f"{UNIT} power, {how}")
    assert page.peaks(study).texts[0] == (f"power, {how}", f"{figure}\u202f{UNIT}")
    assert page.sections(study)[1].tables[0][1].texts[0][0] == "q01"


def test_a_system_that_did_not_answer_all_queries_is_not_said_to_have_no_usable_trial() -> None:
    one = single(DISK, 1.0)
    study, page = shown(replace(one, metrics={"throughput": 67.0, "query_time_s{query=q01}": 0.05}))
    assert page.headline(study)[0][1] == "did not answer all queries, so there is no overall result."
    assert page.card(study.parts[0]) == (cells.EMPTY, "not all queries answered", [])


def test_single_runs_claim_no_interval_and_no_trend() -> None:
    study, page = shown(single(DISK, 1.0), single(MEMORY, 1.3))
    assert all("n=1: no range" in text for _, text in page.headline(study))
    bars = page.sections(study)[1].charts[0]
    assert bars.specification["datasets"]["whiskers"] == []
    assert "interval" not in bars.note
    assert "brackets" not in page.sections(study)[0].lead
    assert study.details.against == ()


def test_repeats_show_their_range() -> None:
    study, page = shown(single(DISK, 1.0), single(DISK, 1.1, block=1, id="again"))
    assert "power 3,020 (2,880 to 3,170)" in page.headline(study)[0][1]
    assert "medians of 2 trials" in page.headline(study)[0][1]
    assert page.sections(study)[0].lead.endswith("Parentheses contain the range of all trials.")


def test_options_that_leave_the_work_as_it_is_make_no_other_work() -> None:
    one = single(DISK, 1.0)
    other = replace(one, id="other", block=1)
    one, other = (
        replace(trial, choice=replace(trial.choice, options={**trial.choice.options, "answers": folder}))
        for trial, folder in ((one, "/somewhere"), (other, ""))
    )
    (study,) = studies([one, other])
    assert study.work == "tpch sf=0.01"


def test_compare_leads_with_power() -> None:
    text = unfolded(comparison(compare(Subject("a", (single(DISK, 1.0),)), Subject("b", (single(MEMORY, 1.3),)))))
    assert "Unrounded power is 30% higher with B than with A: 3,740" in text
    assert text.index("power_unrounded") < text.index(" throughput ")
    by_rules = unfolded(
        comparison(compare(Subject("a", (single(DISK, 1.0, "1"),)), Subject("b", (single(MEMORY, 1.3, "1"),))))
    )
    assert "Power does not differ between A and B: 360" in by_rules


def test_lead_leads_with_power_and_shows_no_throughput_of_transactions() -> None:
    a, b = [single(DISK, 1.0, machine="m1")], [single(MEMORY, 1.3, machine="m2")]
    text = unfolded(lead_report.page(leads("old", a, "new", b, Shelf([*a, *b]), 0.05)))
    assert "tpch sf=0.01: unrounded power: no CI, because there is only one trial (1.30x)" in text
    assert "throughput at the peak" not in text and "At each number of clients" not in text
    assert "Welch" not in text and "has no CI if" in text


def test_a_lab_of_one_block_draws_no_interval() -> None:
    plan = lab({"log": ("disk", "memory")}, blocks=1)
    records = trials(plan, {"log=disk": 1000.0, "log=memory": 1500.0})
    (chart,) = effects(studied(plan, records))
    assert len(chart.specification["datasets"]["effects"]) == 1
    assert chart.specification["datasets"]["intervals"] == []
    assert "too few blocks" in chart.unit


def checked(answers: Note, **fields: object) -> Record:
    return replace(single(DISK, 1.0, **fields), answers=answers)


def test_the_end_of_a_run_says_whether_answers_were_checked() -> None:
    right = note("answers-checked", right=22, of=22)
    later = note("answers-checked", right=22, of=22, earlier="same data")
    study, page = shown(checked(right), checked(later, block=1, id="again"))
    assert page.sections(study)[0].printed_at_end
    assert page.sections(study)[0].sentences == (
        "Query answers checked: 22 of 22 correct (1 trial).",
        "Query answers checked: 22 of 22 correct; checked in an earlier trial on the same data (1 trial).",
    )
    study, page = shown(checked(note("answers-unchecked", reason="unknown scale factor")))
    assert page.sections(study)[0].sentences == (
        "The query answers were not checked: the correct answers for this scale factor are unknown.",
    )


@pytest.mark.parametrize(("engine", "told"), [("duckdb", True), ("postgres", False)])
def test_planning_times_that_an_engine_does_not_report_are_named_once(engine: str, told: bool) -> None:
    one = single(replace(DISK, engine=engine), 1.0)
    if not told:
        one = replace(one, metrics={**one.metrics, "planning_time_s{query=q01}": 0.001})
    study, page = shown(one)
    section = page.sections(study)[1]
    (table,) = (table for _, table in section.tables)
    assert ("of which planning" in table.head, section.sentences) == (
        (False, ("duckdb does not report planning times.",)) if told else (True, ())
    )


def test_streams_that_ran_are_shown_and_the_rate_of_the_whole_trial_is_not_the_throughput_tests() -> None:
    ran = [replace(single(one, 1.0), choice=Choice("tpch", {"sf": "0.01", "test": "both"})) for one in (DISK, MEMORY)]
    ran = [replace(one, budget=Budget(0.5, 0.1, 0.0, 0.0, 0.1, 0.0, 0.3)) for one in ran]
    study, page = shown(*ran)
    chart = of_parts(study)[0]
    assert chart.table.head[0] == "streams" and chart.table.texts[0][0] == "2 streams and a refresh stream"
    assert page.peaks(study).texts[-1][:2] == ("streams in the throughput test", "2 streams and a refresh stream")
    assert study.place == note("measured-at", at="trial")
    names = {entry.name: entry for entry in study.parts[0].balance}
    assert note("balance-throughput") not in names and note("balance-clients") not in names
    assert note("balance-throughput", units="queries") in names
    of = names[note("balance-streams")].note
    assert of is not None and of.values["streams"] == "2 streams and a refresh stream"
    text = unfolded(comparison(compare(Subject("a", (ran[0],)), Subject("b", (ran[1],)))))
    assert "throughput of the whole trial ↑" in text and " throughput ↑" not in text
    assert "A: 2 streams and a refresh stream, 1 trial" in text and "1 client" not in text


def test_a_power_test_has_the_one_client_that_it_has() -> None:
    study, page = shown(single(DISK, 1.0))
    assert note("balance-clients") in {entry.name for entry in study.parts[0].balance}
    assert all(row[0] != "streams in the throughput test" for row in page.peaks(study).texts)
