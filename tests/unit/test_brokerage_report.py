"""A report on a brokerage shows its score, and its mix and response times compared with the limits."""

from __future__ import annotations

from dataclasses import replace

import labfactory
from factories import Shelf, record

from ironbench import workloads
from ironbench.model.record import Record
from ironbench.model.system import Choice
from ironbench.report import document, formats
from ironbench.report.cell import cell_text, centre
from ironbench.report.derived import sentences
from ironbench.report.headline import headline
from ironbench.report.sections import brokerage
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.workloads.brokerage import figures

CHOICE = Choice("brokerage", workloads.get("brokerage").validated({}))
RATE = 1000.0


def trial(slow: str = "", **rates: float) -> Record:
    shares = {name: share * RATE for name, share in figures.MIX.items()} | rates
    metrics = {f"throughput{{script={name}}}": rate for name, rate in shares.items()}
    metrics |= {f"response_time_p90_s{{script={name}}}": 5.0 if name == slow else 0.01 for name in shares}
    metrics |= {figures.SCORE: shares["trade_result"], "market_lag_p99_s": 0.004, figures.TAKEN_BACK: 30.0}
    return record(throughput=RATE, metrics=metrics, choice=CHOICE)


def study(of: Record) -> Study:
    return studies([of], Shelf([of]), sentences([of]))[0]


def mix(of: Record) -> dict[str, tuple[str, ...]]:
    (section,) = brokerage.sections(study(of))
    return {row[0]: row for row in section.tables[1][1].texts}


def test_a_trial_within_the_mix_and_its_limits_is_kept_in_every_row() -> None:
    rows = mix(trial())
    assert len(rows) == len(figures.MIX) and {row[-1] for row in rows.values()} == {"pass"}
    (section,) = brokerage.sections(study(trial()))
    facts = dict(row[:2] for row in section.tables[0][1].texts)
    assert facts["Trade-Results per second"].startswith("100")


def test_a_row_says_what_is_out_of_mix_and_what_is_too_slow() -> None:
    rows = mix(trial(slow="market_feed", trade_result=60.0))
    assert rows["trade-result"][-1] == "outside the tolerance" and rows["market-feed"][-1] == "over the limit"
    assert rows["trade-order"][-1] == "pass"


def test_other_workloads_have_no_such_section() -> None:
    assert list(brokerage.sections(study(record()))) == []


def test_the_derived_sentence_stands_with_it_and_no_second_table_of_scripts() -> None:
    text = formats.get("text")([study(trial())]).decode()
    assert "not comparable with published TPC-E results" in text
    assert "Brokerage workload" in text and "Results by script" not in text


def test_the_answer_begins_with_the_score_and_all_transactions_stand_behind_it() -> None:
    ((_, sentence),) = headline(study(trial()))
    assert sentence.startswith("reaches 100 Trade-Results per second and 1,000 transactions per second with ")


def test_card_and_contents_show_the_score_and_not_all_transactions() -> None:
    of = study(trial())
    (card,) = document.cards(of)
    assert (cell_text(card.figure), card.unit) == ("100", "Trade-Results per second")
    assert ("all transactions", centre(of.parts[0].curve.peak.throughput, "1/s")) in card.facts
    other = studies([record()], Shelf([record()]), {})[0]
    contents = document.contents([of, other])
    assert contents is not None and "Trade-Results per second" in contents.tables[0][1].texts[0][2]


def test_a_lab_shows_the_score_of_each_core_and_the_mix_of_each_cell() -> None:
    plan = labfactory.lab({"cpus": ["one", "two"]})
    made = labfactory.trials(plan, {"cpus=one": RATE, "cpus=two": 2 * RATE})
    cpus = {"cpus=one": (0,), "cpus=two": (0, 1)}
    done = [
        replace(
            one,
            choice=CHOICE,
            system=replace(one.system, server_cpus=cpus[one.cell.name]),
            metrics={**one.metrics, **trial().metrics, figures.SCORE: 100.0 * len(cpus[one.cell.name])},
        )
        for one in made
    ]
    (section,) = brokerage.sections(labfactory.studied(plan, done))
    facts = {row[0]: [cell.split("/")[0] for cell in row[1:]] for row in section.tables[0][1].texts}
    assert facts["Trade-Results per second"] == ["100", "200"]
    assert facts["Trade-Results per second and core"] == ["100", "100"]
    assert facts["server cores"] == ["1", "2"]
    assert [name for name, _ in section.tables[1:]] == ["cpus=one", "cpus=two"]
    assert all(row[-1] == "pass" for _, table in section.tables[1:] for row in table.texts)


def test_response_times_of_too_few_transactions_are_left_out_of_a_lab_and_not_called_kept() -> None:
    plan = labfactory.lab({"cpus": ["one", "two"]})
    # 24 Trade-Updates in 30 s, and a 90th percentile needs 29.
    share = 40.0 / RATE
    metrics = {name: one * share if name.startswith("throughput") else one for name, one in trial().metrics.items()}
    made = labfactory.trials(plan, {"cpus=one": 40.0, "cpus=two": 40.0})
    done = [replace(one, choice=CHOICE, elapsed_s=30.0, metrics={**one.metrics, **metrics}) for one in made]
    (section,) = brokerage.sections(labfactory.studied(plan, done))
    rows = {row[0]: row for row in section.tables[1][1].texts}
    assert (rows["trade-update"][5], rows["trade-update"][-1]) == ("not known", "pass")
    assert rows["trade-status"][-1] == "pass"
