"""The history page: a metric over time, for the trials that match a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from ironbench import catalogue
from ironbench.errors import InputError, IronbenchError
from ironbench.records.index import Listed
from ironbench.serve.archive import ArchiveQuery, choices
from ironbench.serve.compared import MOST_TRIALS
from ironbench.serve.page import page, report_page
from ironbench.serve.results import NEWEST, Results, error_text
from ironbench.study.archive import Archives
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.history import Histories

_WAYS = ("date", "commit", "version")
_SELECTED = ("workload", "engine")
"""Columns for which the page has a drop-down list."""
Found = Sequence[tuple[str, Listed]]


def history(results: Results, fields: Mapping[str, str]) -> HTMLResponse:
    """Shows the history. `fields`: the query fields of `ArchiveQuery`, and additionally `of` (a label, series or lab),
    `metric` and `by` (the order)."""
    from ironbench.report.history import page as page_of

    query, index = ArchiveQuery.of(fields), results.index()
    name, metric, by = (fields.get(one, "")[:200] for one in ("of", "metric", "by"))
    by = by or "date"
    where, values = query.condition()
    if name:
        where, values = f"{where} and ? in (label, series, lab)", [*values, name]
    matching = index.rows(f"{where} {NEWEST} limit ?", *values, MOST_TRIALS)
    tags = sorted({f"tag:{key}" for _, row in matching for key in row.tags if key not in _WAYS})
    offered = choices(index)
    form: dict[str, Any] = {
        "query": query,
        "hidden": {key: value for key, value in query.fields(1).items() if value and key not in _SELECTED},
        "selects": {field: offered[field] for field in _SELECTED},
        "of": name,
        "metric": metric,
        "metrics": list(catalogue.metrics()),
        "by": by,
        "ways": list(dict.fromkeys((*_WAYS, *tags, by))),
        "any_records": bool(index.count("true")),
    }
    if not matching:
        return page("history.html", "History", at="/history", report=None, problem="", **form)
    try:
        found = _histories(results, matching, metric, by)
    except IronbenchError as error:
        words = error_text(error, results.directory)
        return page("history.html", "History", at="/history", report=None, problem=words, **form)
    rest = index.count(where, *values) - len(matching)
    left_out = counted(rest, "older trial") if rest > 0 else ""
    return report_page(
        "history.html", page_of(found), "history", title="History", at="/history", left_out=left_out, **form
    )


def _histories(results: Results, rows: Found, metric: str, by: str) -> Histories:
    """Reads the records of the rows and computes their history. Raises InputError for an unknown metric or order, or if
    no trial is usable."""
    from ironbench.report.wording import sentences
    from ironbench.study.history import histories, require_order

    require_order(by)
    if metric:
        catalogue.metric(metric)
    ids: dict[str, list[str]] = {}
    for lab, row in rows:
        ids.setdefault(lab, []).append(row.id)
    stores = {lab: results.store(lab) for lab in ids}
    records = [record for lab, found in ids.items() for record in stores[lab].records(found)]
    found = histories(records, Archives(list(stores.values())), metric, by)
    if not found.all:
        why = " ".join(sentences(found.left_out)) or "no trial is usable"
        raise InputError("history", f"has nothing to show: {why}", "tag trials with --tag, or choose another order")
    return found
