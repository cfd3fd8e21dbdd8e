"""A report on the TPC-C-derived workload leads with NOPM and compares response times with the limits."""

from __future__ import annotations

import pytest
from factories import Shelf, record

from ironbench import workloads
from ironbench.model.record import Record
from ironbench.model.system import Choice, System
from ironbench.report import document, formats
from ironbench.report.cell import shown
from ironbench.report.derived import sentences
from ironbench.report.headline import headline
from ironbench.report.sections import curves, tpcc
from ironbench.study.runstudy import studies
from ironbench.study.study import Study
from ironbench.workloads.tpcc import figures

SHARES = {"new-order": 10 / 23, "payment": 10 / 23, "order-status": 1 / 23, "delivery": 1 / 23, "stock-level": 1 / 23}
CHOICE = Choice("tpcc", workloads.get("tpcc").validated({}))


def trial(slow: str = "", unknown: str = "", **metrics: float) -> Record:
    rates = {f"throughput{{script={name}}}": share * 100.0 for name, share in SHARES.items()}
    known = [name for name in SHARES if name != unknown]
    slowest = {f"response_time_p90_s{{script={name}}}": 21.0 if name == slow else 0.01 for name in known}
    scores = {figures.NOPM: 2580.0, figures.TPM: 6000.0, figures.ROLLED_BACK: 0.01, "retries": 3.0}
    return record(throughput=100.0, metrics=rates | slowest | scores | metrics, choice=CHOICE)


def study(of: Record) -> Study:
    return studies([of], Shelf([of]), sentences([of]))[0]


def tables(of: Record) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    (section,) = tpcc.sections(study(of))
    facts, mix = ({row[0]: row[1:] for row in table.texts} for _, table in section.tables)
    return facts, mix


def test_the_headline_leads_with_new_orders_per_minute() -> None:
    ((_, text),) = headline(study(trial()))
    assert text.startswith("reaches 2,580 New-Orders per minute (NOPM) and 100 transactions per second")


def test_facts_and_mix_are_tables() -> None:
    facts, mix = tables(trial())
    assert facts["New-Orders per minute (NOPM)"] == ("2,580/min",)
    assert "efficiency (of 12.86 NOPM per warehouse)" not in facts
    assert list(mix) == list(SHARES)
    assert mix["payment"] == ("2,609/min", "43%", "43%", "10.0\u202fms", "5.00\u202fs", "pass")
    facts, _ = tables(trial(**{figures.EFFICIENCY: 0.95}))
    assert facts["efficiency (of 12.86 NOPM per warehouse)"] == ("95%",)


def test_a_row_says_what_is_too_slow_or_not_known() -> None:
    mix = tables(trial(slow="stock-level", unknown="delivery"))[1]
    assert mix["stock-level"][-1] == "over the limit" and mix["delivery"][-1] == "not known"
    assert mix["new-order"][-1] == "pass"


def test_deferred_deliveries_have_a_row_for_their_requests() -> None:
    metrics = {"throughput{script=delivery-request}": 100 / 23, "response_time_p90_s{script=delivery-request}": 0.001}
    mix = tables(trial(slow="delivery", **metrics))[1]
    assert mix["delivery"] == ("261/min", "", "", "21.0\u202fs", "80.0\u202fs", "pass")
    assert mix["delivery-request"][1:3] == ("4.3%", "4%") and mix["delivery-request"][-2:] == ("5.00\u202fs", "pass")


def test_other_workloads_have_no_such_section() -> None:
    assert list(tpcc.sections(study(record()))) == []


def test_every_result_says_that_it_is_derived() -> None:
    text = formats.get("text")([study(trial())]).decode()
    assert "Derived from TPC-C: not comparable with published TPC-C results." in text
    assert "TPC-C-derived workload" in text and "Results by script" not in text


def test_the_card_shows_new_orders_per_minute() -> None:
    (card,) = document.cards(study(trial()))
    assert (shown(card.figure), card.unit) == ("2,580", "New-Orders per minute (NOPM)")


def test_each_number_of_clients_has_its_new_orders_per_minute() -> None:
    trials = [
        record(clients=clients, throughput=100.0, metrics={figures.NOPM: 2580.0 * clients}, choice=CHOICE)
        for clients in (1, 2, 4)
    ]
    (one,) = studies(trials, Shelf(trials), sentences(trials))
    chart, *_ = curves.curves(one)
    assert chart.title == "New-Orders per minute (NOPM)"
    assert [row[1].split("/")[0] for row in chart.table.texts] == ["2,580", "5,160", "10,320"]
    bars = curves.bars(one)
    assert bars is not None and bars.title == "clients, NOPM"


@pytest.mark.parametrize(("many", "as_rows"), [(3, False), (4, True)])
def test_many_systems_are_rows_of_the_overview(many: int, as_rows: bool) -> None:
    trials = [
        record(System(label=f"s{number}", engine="postgres"), metrics={figures.NOPM: 1000.0 + number}, choice=CHOICE)
        for number in range(many)
    ]
    (one,) = studies(trials, Shelf(trials), sentences(trials))
    (section,) = tpcc.sections(one)
    overview = section.tables[0][1]
    assert ("s1" in [row[0] for row in overview.texts]) == as_rows
    assert ("s1" in overview.head) != as_rows
