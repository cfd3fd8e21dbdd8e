"""Results of the workload `sysbench` in the order in which sysbench prints them."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.report import wording
from ironbench.report.overview import overview
from ironbench.report.page import Section
from ironbench.study.study import Study

PLACE = 112
_QUERIES = "queries_per_s"
_COUNTS = ("read_queries", "write_queries", "other_queries", "queries")
_LEAD = (
    "These are the results that sysbench prints. As in sysbench, an event is one execution of the test. Queries "
    "include BEGIN and COMMIT. sysbench counts restarted events as ignored errors. Unlike "
    "sysbench, ironbench counts a statement that changes no row as a write query."
)
_FACTS = {
    "read queries per trial": "read_queries",
    "write queries per trial": "write_queries",
    "other queries per trial": "other_queries",
    "queries per trial": "queries",
    "events (transactions) per second": "throughput",
    "queries per second": _QUERIES,
    "restarted events per trial": "retries",
    "reconnects per trial": "reconnects",
    "minimum response time": "response_time_min_s",
    "average response time": "response_time_mean_s",
    "95th percentile of response times": "response_time_p95_s",
    "maximum response time": "response_time_max_s",
    "events per client, mean": "client_transactions_mean",
    "events per client, SD": "client_transactions_stdev",
    "execution time per client, mean": "client_busy_mean_s",
    "execution time per client, SD": "client_busy_stdev_s",
}


def sections(study: Study) -> Iterator[Section]:
    systems = [one for one in study.main if _QUERIES in one.metrics]
    if systems:
        title = (
            f"Results of sysbench's test, {wording.text(study.place)}" if study.parts else "Results of sysbench's test"
        )
        table = overview(systems, _FACTS, _COUNTS)
        yield Section("sysbench", title, _LEAD, tables=(("", table),), printed_at_end=True)
