"""Other metrics than the one that the lab decides by."""

from __future__ import annotations

from collections.abc import Iterator

from ironbench.analyse.study import Study
from ironbench.report.findings import metric_tables
from ironbench.report.section import Section

PLACE = 2200


_LEAD = (
    "The same trials by other metrics. These carry no verdict: the lab declared one metric to decide by, and whoever "
    "looks at many finds something by chance."
)


def sections(study: Study) -> Iterator[Section]:
    yield Section("others", "Other metrics", _LEAD, tables=tuple(metric_tables(study.others)))
