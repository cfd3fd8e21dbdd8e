"""Pages of what was measured: a record, a series, a label, a lab."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.records.index import Listed
from ironbench.report.charts.base import Chart
from ironbench.serve import compared, gate, notes
from ironbench.serve.archive import rows_table
from ironbench.serve.compared import MOST_TRIALS
from ironbench.serve.page import address, button, link, page
from ironbench.serve.shelf import Shelf, is_name
from ironbench.serve.so_far import SoFar
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.archive import Archive


def record(shelf: Shelf, lab: str, id: str) -> HTMLResponse:
    store = shelf.store(lab)
    found = require(store.records([id] if is_name(id) else []), f"record {id}")
    above = link(f"/lab/{lab}", f"lab {lab}") if lab else link("/archive", "archive")
    series = found[0].series
    where = f"/lab/{lab}" if lab else ""
    bar = (
        f'<p class="lead">{above} · '
        + ("" if lab else link(f"/series/{series}", f"series {series}") + " · ")
        + link("/export", "export", pick=f"{lab}/{id}" if lab else id)
        + "</p>"
    )
    return _report(found, store, bar, notes.form(store.directory, id, f"{where}/note/{id}"))


def series(shelf: Shelf, name: str) -> HTMLResponse:
    return _of_runs(shelf, shelf.holdings().series.get(name, ()), f"series {name}", name)


def label(shelf: Shelf, name: str) -> HTMLResponse:
    return _of_runs(shelf, shelf.holdings().labels.get(name, ()), f"label {name}", "")


def lab(shelf: Shelf, name: str, so_far: SoFar, failure: str) -> HTMLResponse:
    """The report of a lab as far as it is measured, and how it came about. `failure`: why it ended, where it failed."""
    from ironbench.report.document import report
    from ironbench.report.formats.html import body
    from ironbench.views.labs import study_of

    directory = shelf.lab(name)
    charts: dict[str, Chart | dict[str, Any]] = dict(so_far.charts)
    drawn: dict[str, Chart] = {}
    study, gated = study_of(directory), directory.frozen().gate
    one = report(study)
    links = [link("/archive", "archive", view="labs"), link("/export", "export", pick=f"{name}/")]
    links += [link("/history", "history", of=name), *(gate.door(name, study) if gated else ())]
    bar = f'<p class="lead">{" · ".join(links)}</p>'
    if failure and study.missing:  # else somebody has gone on with it in a terminal
        bar += f'<p class="problem" role="alert">It failed: {escape(failure)}</p>'
    rows = sorted(shelf.rows(name).values(), key=lambda row: (row.started_at, row.id))
    trials = rows_table([(name, row) for row in rows], pick=True)
    table = (
        f'<section><h2>Records</h2><form action="/compare"><p class="actions"><button>Compare two</button></p>{trials}'
        "</form></section>"
    )
    note = notes.form(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}")
    actions = (
        f'<div class="actions">{button("Resume", f"/lab/{name}/resume")}<form method="post" '
        f'action="{escape(address(f"/lab/{name}/resume"))}" class="inline"><label>blocks more'
        '<input type="number" name="more" min="6" max="1000" value="6"></label>'
        "<button>Add a round</button></form></div>"
    )
    needs = f"<section>{so_far.parts['needs']}{compared.cells_form(name, directory.lab())}</section>"
    passed = gate.short(name, study) if gated else ""
    how = f'{needs}{passed}<section id="strip">{so_far.parts["strip"]}{actions}</section>'
    bodies = [f"<header class='top'>{bar}</header>", body(one, "study", drawn), f"<main>{how}{table}{note}</main>"]
    charts |= drawn
    return page(one.title, bodies, charts, at="/archive")


def _of_runs(shelf: Shelf, rows: Sequence[Listed], what: str, series: str) -> HTMLResponse:
    """`rows`: newest first."""
    if len(rows) > MOST_TRIALS:
        raise InputError(what, f"has {counted(len(rows), 'trial')}", "open one of its series from the archive")
    found = require(shelf.store().records([row.id for row in reversed(rows)]), what)
    name = series or found[0].system.label
    exported, history = link("/export", "export", pick=name), link("/history", "history", of=name)
    bar = f'<p class="lead">{link("/archive", "archive")} · {exported} · {history}</p>'
    note = notes.form(shelf.store().directory, series, f"/note/{series}") if series else ""
    return _report(found, shelf.store(), bar, note)


def require(found: list[Record], what: str) -> list[Record]:
    if not found:
        raise InputError(what, "is not among these results, or cannot be read", "search the archive")
    if len(found) > MOST_TRIALS:
        raise InputError(what, f"has more than {counted(MOST_TRIALS, 'trial')}", "name a series, or a record")
    return found


def _report(found: Sequence[Record], archive: Archive, bar: str, note: str) -> HTMLResponse:
    from ironbench.report.derived import sentences
    from ironbench.report.document import report
    from ironbench.report.formats.html import body
    from ironbench.study.study import studies

    charts: dict[str, Chart] = {}
    reports = [report(study) for study in studies(found, archive, sentences(found))]
    bodies = [f"<header class='top'>{bar}</header>"]
    bodies += [body(one, f"study{place}", charts) for place, one in enumerate(reports)]
    bodies += [f"<main>{note}</main>" if note else ""]
    return page("; ".join(one.title for one in reports), bodies, charts, at="/archive")
