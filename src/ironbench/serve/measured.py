"""Report pages of a record, a series, a label or a lab."""

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
from ironbench.serve.progress_page import LabProgress
from ironbench.serve.results import Results, is_name
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.study.archive import Archive

Link = tuple[str, str, dict[str, str]]
"""Path, text and query of a link."""
_ARCHIVE: Link = ("/archive", "archive", {})


def record(results: Results, lab: str, id: str) -> HTMLResponse:
    store = results.store(lab)
    found = require(store.records([id] if is_name(id) else []), f"record {id}")
    series = found[0].series
    above: list[Link] = (
        [(f"/lab/{lab}", f"lab {lab}", {})] if lab else [_ARCHIVE, (f"/series/{series}", f"series {series}", {})]
    )
    export: Link = ("/export", "export", {"pick": f"{lab}/{id}" if lab else id})
    where = f"/lab/{lab}" if lab else ""
    return _report(found, store, [*above, export], notes.note(store.directory, id, f"{where}/note/{id}"))


def series(results: Results, name: str) -> HTMLResponse:
    return _of_runs(results, results.series(name), f"series {name}", name)


def label(results: Results, name: str) -> HTMLResponse:
    return _of_runs(results, results.label(name), f"label {name}", "")


def lab(results: Results, name: str, progress: LabProgress, failure: str) -> HTMLResponse:
    """Shows the report of a lab, with the history of its trials. `failure`: why the lab's last start from the queue
    failed."""
    from ironbench.report.document import report
    from ironbench.report.studies import study_of

    directory = results.lab(name)
    study = study_of(directory)
    rows = results.index().rows("lab = ? order by started_at, id", name)
    return report_page(
        "lab.html",
        report(study),
        "study",
        at="/archive",
        charts=progress.charts,
        name=name,
        failure=failure if study.missing else "",  # no failure if the lab was completed later
        gate=gate.summary(study) if directory.frozen().gate else None,
        progress=progress.parts,
        cells=[setup.cell.name for setup in directory.lab().measurable],
        rows=shown_rows(rows),
        note=notes.note(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}"),
    )


def _of_runs(results: Results, rows: Sequence[Listed], what: str, series: str) -> HTMLResponse:
    """Shows the report of runs. `rows`: rows of the index, newest first. `series`: the series that the rows belong to,
    or "" for a label."""
    if len(rows) > MOST_TRIALS:
        raise InputError(what, f"has {counted(len(rows), 'trial')}", "open one of its series from the archive")
    found = require(results.store().records([row.id for row in reversed(rows)]), what)
    name = series or found[0].system.label
    links: list[Link] = [_ARCHIVE, ("/export", "export", {"pick": name}), ("/history", "history", {"of": name})]
    note = notes.note(results.store().directory, series, f"/note/{series}") if series else None
    return _report(found, results.store(), links, note)


def require(found: list[Record], what: str) -> list[Record]:
    if not found:
        raise InputError(what, "does not exist in these results, or cannot be read", "search the archive")
    if len(found) > MOST_TRIALS:
        raise InputError(what, f"has more than {counted(MOST_TRIALS, 'trial')}", "select a series or a record")
    return found


def _report(
    found: Sequence[Record], archive: Archive, links: Sequence[Link], note: tuple[str, str] | None
) -> HTMLResponse:
    from ironbench.report.derived import sentences
    from ironbench.report.document import report
    from ironbench.study.runstudy import studies

    pages = [(f"study{place}", report(one)) for place, one in enumerate(studies(found, archive, sentences(found)))]
    charts: dict[str, dict[str, Any]] = {}
    for prefix, one in pages:
        charts |= one.specifications(prefix)
    title = "; ".join(one.title for _, one in pages)
    return page("records.html", title, at="/archive", charts=charts, links=links, pages=pages, note=note)
