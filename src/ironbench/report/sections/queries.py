"""Results of each query. Charts show times, ratios, a heat map, and the speed-up with more parallelism. A table lists
queries that changed against the overall trend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ironbench.report.charts.grouped import value_queries
from ironbench.report.charts.queries import by_query
from ironbench.report.finding_tables import against_trend_tables
from ironbench.report.page import Section
from ironbench.report.wording.terms import label
from ironbench.study.queries import Queries
from ironbench.study.study import Study

PLACE = 700


def sections(study: Study) -> Iterator[Section]:
    # The charts are left out for a lab with a single query, because the rest of the report is already about this query.
    alone = study.lab is not None and (study.details.queries is None or len(study.details.queries.names) < 2)
    charts = () if alone else (*by_query(_labelled(study)), *value_queries(study.levels))
    yield Section("queries", "Query by query", charts=charts, tables=against_trend_tables(study.details.against))


def _labelled(study: Study) -> Queries | None:
    """Returns the query times with the names that reports use for configurations, such as `WAL on ssd` instead of
    `log=ssd`."""
    if study.details.queries is None:
        return None
    subjects = (replace(one, name=label(study.configuration(one.name))) for one in study.details.queries.subjects)
    return replace(study.details.queries, subjects=tuple(subjects))
