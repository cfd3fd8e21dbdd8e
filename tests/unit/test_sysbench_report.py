"""A report on the workload sysbench shows the results that sysbench prints."""

from __future__ import annotations

from factories import Shelf, record

from ironbench import workloads
from ironbench.model.system import Choice
from ironbench.report import formats
from ironbench.report.sections import sysbench
from ironbench.study.runstudy import studies

CHOICE = Choice("sysbench", workloads.get("sysbench").validated({}))


METRICS = {
    **{"read_queries": 42_007.0, "write_queries": 12_000.0, "other_queries": 6_000.0, "queries": 60_000.0},
    **{"queries_per_s": 2000.0, "retries": 3.0, "response_time_min_s": 0.001},
    **{"client_transactions_mean": 375.0, "client_transactions_stdev": 4.5},
}


def test_the_results_that_sysbench_prints_are_a_table() -> None:
    trials = [record(throughput=100.0, metrics=METRICS, choice=CHOICE)]
    (one,) = studies(trials, Shelf(trials))
    (section,) = sysbench.sections(one)
    rows = {row[0]: row[1] for row in section.tables[0][1].texts}
    assert rows["events (transactions) per second"] == "100/s" and rows["queries per second"] == "2,000/s"
    assert list(rows)[:4] == [f"{kind}queries per trial" for kind in ("read ", "write ", "other ", "")]
    assert rows["read queries per trial"] == "42,007" and rows["minimum response time"] == "1.00\u202fms"
    assert rows["events per client, mean"] == "375" and rows["events per client, SD"] == "4.50"
    assert rows["restarted events per trial"] == "3.00" and "reconnects per trial" not in rows
    assert (
        rows["average response time"] == "80.0\u202fms" and rows["95th percentile of response times"] == "176\u202fms"
    )
    text = formats.get("text")([one]).decode()
    assert "queries per second" in text and "95th percentile of response times" in text


def test_other_workloads_have_no_such_section() -> None:
    trials = [record()]
    (one,) = studies(trials, Shelf(trials))
    assert list(sysbench.sections(one)) == []
