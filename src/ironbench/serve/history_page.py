"""The page of history: a metric of like trials over time, of everything that a search of the archive finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from ironbench import catalogue
from ironbench.errors import InputError, IronbenchError
from ironbench.records.index import Listed
from ironbench.serve.archive import Query
from ironbench.serve.compared import MOST_TRIALS
from ironbench.serve.page import link, option, page, select, simple
from ironbench.serve.shelf import Holdings, Shelf, error_text
from ironbench.study.archive import Archives
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.report.charts.base import Chart
    from ironbench.study.history import Histories

_WAYS = ("date", "commit", "version")
Found = Sequence[tuple[str, Listed]]


def history(shelf: Shelf, fields: Mapping[str, str]) -> HTMLResponse:
    """`fields`: those of a search, and `of` (a label, a series, a lab), `metric`, `by`."""
    from ironbench.report.formats.html import page_body
    from ironbench.report.history import page as page_of

    query, holdings = Query.of(fields), shelf.holdings()
    name, metric, by = (fields.get(one, "")[:200] for one in ("of", "metric", "by"))
    matching = _named(query.matching(holdings), name) if name else query.matching(holdings)
    form = _form(query, name, metric, by or "date", holdings, matching)
    above = f'<p class="lead">{link("/archive", "archive", **query.fields(1))}</p>'
    if not matching:
        words = "No record matches." if holdings.rows else "No records yet: <code>ironbench run</code> makes some."
        return simple("History", f"{above}<p>{words}</p>{form}", at="/history")
    try:
        found = _histories(shelf, matching[:MOST_TRIALS], metric, by or "date")
    except IronbenchError as error:
        words = escape(error_text(error, shelf.results))
        return simple("History", f'{above}<p class="problem" role="alert">{words}</p>{form}', at="/history")
    charts: dict[str, Chart] = {}
    rest = len(matching) - MOST_TRIALS
    left = (
        f'<p class="lead">{escape(counted(rest, "older trial"))} left out: narrow the search.</p>' if rest > 0 else ""
    )
    bodies = [f'<header class="top">{above}{form}{left}</header>', page_body(page_of(found), "history", charts)]
    return page("History", bodies, charts, at="/history")


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


def _form(query: Query, name: str, metric: str, by: str, holdings: Holdings, rows: Found) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{key}" value="{escape(value)}">'
        for key, value in query.fields(1).items()
        if value and key not in ("workload", "engine")
    )
    tags = sorted({f"tag:{key}" for _, row in rows[:MOST_TRIALS] for key in row.tags if key not in _WAYS})
    ways = "".join(option(way, way == by) for way in dict.fromkeys((*_WAYS, *tags, by)))
    metrics = "".join(f'<option value="{escape(one)}"></option>' for one in catalogue.metrics())
    selects = "".join(
        select(
            field, "any", "".join(option(one, query.wanted.get(field, "") == one) for one in holdings.choices[field])
        )
        for field in ("workload", "engine")
    )
    return (
        f'<form class="inline" action="/history">{hidden}<label>label, series or lab<input name="of" '
        f'value="{escape(name)}" maxlength="200"></label>{selects}<label>metric<input name="metric" '
        f'value="{escape(metric)}" list="metrics" placeholder="the leading one"></label>'
        f'<datalist id="metrics">{metrics}</datalist><label>a point is one<select name="by">{ways}</select></label>'
        '<button class="main">Show</button></form>'
    )
