"""A report on the TPC-C-derived workload leads with NOPM and compares response times with the limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from factories import Shelf, record

from ironbench import workloads
from ironbench.model.record import Record
from ironbench.model.system import Choice, System
from ironbench.report import document, formats
from ironbench.report.cell import cell_text
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
    times = {
        f"{metric}{{script={name}}}": 21.0 if name == slow else 0.01
        for metric in figures.RESPONSE_TIMES
        for name in SHARES
        if name != unknown
    }
    scores = {figures.NOPM: 2580.0, figures.TPM: 6000.0, figures.ROLLED_BACK: 0.01, "retries": 3.0}
    return record(throughput=100.0, metrics=rates | times | scores | metrics, choice=CHOICE, elapsed_s=600.0)


def study(*of: Record) -> Study:
    return studies(of, Shelf(of), sentences(of))[0]


def tables(*of: Record) -> list[dict[str, tuple[str, ...]]]:
    """Returns the overview, the mix and the response times. Each maps the first cell of a row to the other cells."""
    (section,) = tpcc.sections(study(*of))
    return [{row[0]: row[1:] for row in table.texts} for _, table in section.tables]


def test_the_headline_leads_with_new_orders_per_minute() -> None:
    ((_, text),) = headline(study(trial()))
    assert text.startswith("reaches 2,580 New-Orders per minute (NOPM) and 100 transactions per second")


def test_facts_and_mix_are_tables() -> None:
    facts, mix, _ = tables(trial())
    assert facts["New-Orders per minute (NOPM)"] == ("2,580/min",)
    assert "efficiency (of 12.86 NOPM per warehouse)" not in facts
    assert list(mix) == list(SHARES)
    assert mix["payment"] == ("2,609/min", "43%", "43%")
    facts, *_ = tables(trial(**{figures.EFFICIENCY: 0.95}))
    assert facts["efficiency (of 12.86 NOPM per warehouse)"] == ("95%",)


def test_each_transaction_has_its_mean_and_percentiles_and_the_limit_beside_the_90th() -> None:
    own = {
        f"{metric}{{script=payment}}": value
        for metric, value in zip(figures.RESPONSE_TIMES, (0.002, 0.001, 0.003, 0.004, 0.005), strict=True)
    }
    *_, times = tables(trial(**own))
    assert list(times) == list(SHARES)
    assert [text.replace("\u202f", " ") for text in times["payment"]] == [
        *("2.00 ms", "1.00 ms", "3.00 ms", "5.00 s", "pass", "4.00 ms", "5.00 ms")
    ]


def test_repeated_trials_have_their_variation_beside_every_value() -> None:
    name, rate = "response_time_mean_s{script=payment}", "throughput{script=payment}"
    trials = [trial(**{name: 0.001 * n, rate: 10.0 * n, figures.NOPM: 1000.0 * n}) for n in (1, 2, 4)]
    facts, mix, times = tables(*(replace(one, id=str(n)) for n, one in enumerate(trials)))
    assert facts["New-Orders per minute (NOPM)"] == ("2,000/min (1,000 to 4,000/min)",)
    assert mix["payment"][0] == "1,200/min (600 to 2,400/min)"
    assert times["payment"][0].replace("\u202f", " ") == "2.00 ms (1.00 to 4.00 ms)"


def test_a_percentile_of_too_few_transactions_is_unknown() -> None:
    few = replace(trial(), elapsed_s=30.0)
    *_, times = tables(few)
    assert times["delivery"][-1] == "not known" and times["delivery"][-3] == "pass"


def test_a_row_says_what_is_too_slow_or_not_known() -> None:
    *_, times = tables(trial(slow="stock-level", unknown="delivery"))
    assert times["stock-level"][4] == "over the limit" and times["delivery"][4] == "not known"
    assert times["new-order"][4] == "pass"


def test_deferred_deliveries_have_a_row_for_their_requests() -> None:
    metrics = {"throughput{script=delivery-request}": 100 / 23, "response_time_p90_s{script=delivery-request}": 0.001}
    _, mix, times = tables(trial(slow="delivery", **metrics))
    assert mix["delivery"] == ("261/min", "", "") and mix["delivery-request"][1:] == ("4.3%", "4%")
    assert [text.replace("\u202f", " ") for text in times["delivery"][2:5]] == ["21.0 s", "80.0 s", "pass"]
    assert times["delivery-request"][3:5] == ("5.00\u202fs", "pass")


def test_other_workloads_have_no_such_section() -> None:
    assert list(tpcc.sections(study(record()))) == []


def test_every_result_says_that_it_is_derived() -> None:
    text = formats.get("text")([study(trial())]).decode()
    assert "Derived from TPC-C: not comparable with published TPC-C results." in text
    assert "TPC-C-derived workload" in text and "Results by script" not in text


def test_the_card_shows_new_orders_per_minute() -> None:
    (card,) = document.cards(study(trial()))
    assert (cell_text(card.figure), card.unit) == ("2,580", "New-Orders per minute (NOPM)")


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
