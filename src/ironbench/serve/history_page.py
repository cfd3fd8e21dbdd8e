"""The page of history: a metric of like trials over time, of everything that a search of the archive finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from ironbench import catalogue
from ironbench.errors import InputError, IronbenchError
from ironbench.records.index import Listed
from ironbench.serve.archive import ArchiveQuery
from ironbench.serve.compared import MOST_TRIALS
from ironbench.serve.page import page, report_page
from ironbench.serve.shelf import Shelf, error_text
from ironbench.study.archive import Archives
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.history import Histories

_WAYS = ("date", "commit", "version")
_SELECTED = ("workload", "engine")
"""Fields of a search that the page itself offers."""
Found = Sequence[tuple[str, Listed]]


def history(shelf: Shelf, fields: Mapping[str, str]) -> HTMLResponse:
    """`fields`: those of a search, and `of` (a label, a series, a lab), `metric`, `by`."""
    from ironbench.report.history import page as page_of

    query, holdings = ArchiveQuery.of(fields), shelf.holdings()
    name, metric, by = (fields.get(one, "")[:200] for one in ("of", "metric", "by"))
    by = by or "date"
    matching = _named(query.matching(holdings), name) if name else query.matching(holdings)
    tags = sorted({f"tag:{key}" for _, row in matching[:MOST_TRIALS] for key in row.tags if key not in _WAYS})
    form: dict[str, Any] = {
        "query": query,
        "hidden": {key: value for key, value in query.fields(1).items() if value and key not in _SELECTED},
        "selects": {field: holdings.choices[field] for field in _SELECTED},
        "of": name,
        "metric": metric,
        "metrics": list(catalogue.metrics()),
        "by": by,
        "ways": list(dict.fromkeys((*_WAYS, *tags, by))),
        "any_records": bool(holdings.rows),
    }
    if not matching:
        return page("history.html", "History", at="/history", report=None, problem="", **form)
    try:
        found = _histories(shelf, matching[:MOST_TRIALS], metric, by)
    except IronbenchError as error:
        words = error_text(error, shelf.results)
        return page("history.html", "History", at="/history", report=None, problem=words, **form)
    rest = len(matching) - MOST_TRIALS
    left_out = counted(rest, "older trial") if rest > 0 else ""
    return report_page(
        "history.html", page_of(found), "history", title="History", at="/history", left_out=left_out, **form
    )


def _named(rows: Found, name: str) -> Found:
    return [(lab, row) for lab, row in rows if name in (row.label, row.series, lab)]


def _histories(shelf: Shelf, rows: Found, metric: str, by: str) -> Histories:
    """InputError: there is no such metric or order, or nothing of it."""
    from ironbench.report.wording import sentences
    from ironbench.study.history import histories, require_order

    require_order(by)
    if metric:
        catalogue.metric(metric)
    ids: dict[str, list[str]] = {}
    for lab, row in rows:
        ids.setdefault(lab, []).append(row.id)
    stores = {lab: shelf.store(lab) for lab in ids}
    records = [record for lab, found in ids.items() for record in stores[lab].records(found)]
    found = histories(records, Archives(list(stores.values())), metric, by)
    if not found.all:
        why = " ".join(sentences(found.left_out)) or "no trial is usable"
        raise InputError("history", f"has nothing to show: {why}", "tag trials with --tag, or choose another order")
    return found
