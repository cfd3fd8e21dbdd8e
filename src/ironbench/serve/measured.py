"""Pages of what was measured: a record, a series, a label, a lab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.records.index import Listed
from ironbench.serve import gate, notes
from ironbench.serve.archive import shown_rows
from ironbench.serve.compared import MOST_TRIALS
from ironbench.serve.page import page, report_page
from ironbench.serve.shelf import Shelf, is_name
from ironbench.serve.so_far import SoFar
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.archive import Archive

Link = tuple[str, str, dict[str, str]]
"""A path, words, and the query of its address."""
_ARCHIVE: Link = ("/archive", "archive", {})


def record(shelf: Shelf, lab: str, id: str) -> HTMLResponse:
    store = shelf.store(lab)
    found = require(store.records([id] if is_name(id) else []), f"record {id}")
    series = found[0].series
    above: list[Link] = (
        [(f"/lab/{lab}", f"lab {lab}", {})] if lab else [_ARCHIVE, (f"/series/{series}", f"series {series}", {})]
    )
    export: Link = ("/export", "export", {"pick": f"{lab}/{id}" if lab else id})
    where = f"/lab/{lab}" if lab else ""
    return _report(found, store, [*above, export], notes.note(store.directory, id, f"{where}/note/{id}"))


def series(shelf: Shelf, name: str) -> HTMLResponse:
    return _of_runs(shelf, shelf.holdings().series.get(name, ()), f"series {name}", name)


def label(shelf: Shelf, name: str) -> HTMLResponse:
    return _of_runs(shelf, shelf.holdings().labels.get(name, ()), f"label {name}", "")


def lab(shelf: Shelf, name: str, so_far: SoFar, failure: str) -> HTMLResponse:
    """The report of a lab as far as it is measured, and how it came about. `failure`: why it ended, where it failed."""
    from ironbench.report.document import report
    from ironbench.report.studies import study_of

    directory = shelf.lab(name)
    study = study_of(directory)
    rows = sorted(shelf.rows(name).values(), key=lambda row: (row.started_at, row.id))
    return report_page(
        "lab.html",
        report(study),
        "study",
        at="/archive",
        charts=so_far.charts,
        name=name,
        failure=failure if study.missing else "",  # else somebody has gone on with it in a terminal
        gate=gate.summary(study) if directory.frozen().gate else None,
        so_far=so_far.parts,
        cells=[setup.cell.name for setup in directory.lab().possible],
        rows=shown_rows((name, row) for row in rows),
        note=notes.note(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}"),
    )


def _of_runs(shelf: Shelf, rows: Sequence[Listed], what: str, series: str) -> HTMLResponse:
    """`rows`: newest first."""
    if len(rows) > MOST_TRIALS:
        raise InputError(what, f"has {counted(len(rows), 'trial')}", "open one of its series from the archive")
    found = require(shelf.store().records([row.id for row in reversed(rows)]), what)
    name = series or found[0].system.label
    links: list[Link] = [_ARCHIVE, ("/export", "export", {"pick": name}), ("/history", "history", {"of": name})]
    note = notes.note(shelf.store().directory, series, f"/note/{series}") if series else None
    return _report(found, shelf.store(), links, note)


def require(found: list[Record], what: str) -> list[Record]:
    if not found:
        raise InputError(what, "is not among these results, or cannot be read", "search the archive")
    if len(found) > MOST_TRIALS:
        raise InputError(what, f"has more than {counted(MOST_TRIALS, 'trial')}", "name a series, or a record")
    return found


def _report(
    found: Sequence[Record], archive: Archive, links: Sequence[Link], note: tuple[str, str] | None
) -> HTMLResponse:
    from ironbench.report.derived import sentences
    from ironbench.report.document import report
    from ironbench.study.study import studies

    pages = [(f"study{place}", report(one)) for place, one in enumerate(studies(found, archive, sentences(found)))]
    charts: dict[str, dict[str, Any]] = {}
    for prefix, one in pages:
        charts |= one.specifications(prefix)
    title = "; ".join(one.title for _, one in pages)
    return page("records.html", title, at="/archive", charts=charts, links=links, pages=pages, note=note)
