"""Response times at shares of the baseline's peak, as a table; shared by every format."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.same_load import SameLoad, Side
from ironbench.model.finding import Finding
from ironbench.report.charts.base import Table
from ironbench.report.findings import interval, ratio
from ironbench.report.numbers import quantity

_SHOWN = (("response_time_p50_s", "median"), ("response_time_p99_s", "99th perc."))
"""The other percentiles are in the JSON document."""
_LEAST_BLOCKS = 3
"""Two points and Student's t with one degree of freedom give intervals over many powers of ten: they say nothing."""


def same_load_tables(found: Sequence[SameLoad]) -> list[tuple[str, Table]]:
    """One for each comparison, a row for each rate: the cell's times, the baseline's, and their ratio."""
    names = list(dict.fromkeys(one.contrast.name for one in found))
    return [(name, _table([one for one in found if one.contrast.name == name])) for name in names]


def _table(found: Sequence[SameLoad]) -> Table:
    behind = any(map(_behind, found))
    head = ["at", "rate", *(word for _, name in _SHOWN for word in (name, "baseline's", "ratio", "interval")), "blocks"]
    head += ["to know"] if behind else []
    rows = []
    for one in found:
        by_metric = {finding.metric: finding for finding in one.findings}
        cells = [word for metric, _ in _SHOWN for word in _times(one, metric, by_metric.get(metric))]
        blocks = max(finding.blocks for finding in one.findings)
        rate = quantity(one.rate, "1/s") if one.rate else ""
        known = [_behind(one)] if behind else []
        rows.append((quantity(one.share, "share"), rate, *cells, str(blocks), *known))
    return Table(tuple(head), tuple(rows), numbers=True)


def _times(one: SameLoad, metric: str, finding: Finding | None) -> tuple[str, str, str, str]:
    """Of both sides, and the ratio of the two with its interval."""
    if finding is None:
        return "", "", "", ""
    known = interval(finding) if finding.blocks >= _LEAST_BLOCKS else "too few blocks"
    return _time(one.cell, metric), _time(one.baseline, metric), ratio(finding.ratio), known


def _time(side: Side, metric: str) -> str:
    time = side.times.get(metric)
    return quantity(time.centre_s if time else None, "s")


def _behind(one: SameLoad) -> str:
    """Which side did not do what it was asked to."""
    names = [(one.contrast.cell, one.cell), (one.contrast.baseline, one.baseline)]
    said = [f"{name} fell behind in {side.behind} of {side.trials}" for name, side in names if side.behind]
    return "; ".join(said)
