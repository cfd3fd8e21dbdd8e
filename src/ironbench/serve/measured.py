"""Pages of what was measured: a record, a series, a label, a lab, and two of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.model.record import Record
from ironbench.record.index import Listed
from ironbench.report.charts.base import Chart
from ironbench.serve import notes
from ironbench.serve.archive import rows_table
from ironbench.serve.page import button, head, link, page
from ironbench.serve.shelf import Shelf, is_name
from ironbench.serve.so_far import SoFar
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.analyse.archive import Archive
    from ironbench.cli.selection import Named

MOST_TRIALS = 2_000
"""A page of more would take a browser minutes."""


def record(shelf: Shelf, lab: str, id: str) -> HTMLResponse:
    store = shelf.store(lab)
    found = _require(store.records([id] if is_name(id) else []), f"record {id}")
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
    rows = [row for row in shelf.rows().values() if row.series == name]
    return _of_runs(shelf, [row.id for row in rows], f"series {name}", name)


def label(shelf: Shelf, name: str) -> HTMLResponse:
    rows = [row for row in shelf.rows().values() if row.label == name]
    return _of_runs(shelf, [row.id for row in rows], f"label {name}", "")


def lab(shelf: Shelf, name: str, so_far: SoFar) -> HTMLResponse:
    """The report of a lab as far as it is measured, and how it came about."""
    from ironbench.cli.verdict import study_of
    from ironbench.report.document import report
    from ironbench.report.formats.html import body

    directory = shelf.lab(name)
    charts: dict[str, Chart | dict[str, Any]] = dict(so_far.charts)
    drawn: dict[str, Chart] = {}
    one = report(study_of(directory))
    bar = (
        f'<p class="lead">{link("/archive", "archive", view="labs")} · {link("/export", "export", pick=f"{name}/")}</p>'
    )
    trials = rows_table([(name, row) for row in sorted(shelf.rows(name).values(), key=_when)], pick=True)
    table = (
        f'<section><h2>Records</h2><form action="/compare"><p class="actions"><button>Compare two</button></p>{trials}'
        "</form></section>"
    )
    note = notes.form(directory.path, notes.OF_LAB, f"/lab/{name}/note/{notes.OF_LAB}")
    actions = (
        f'<div class="actions">{button("Resume", f"/lab/{name}/resume")}<form method="post" '
        f'action="/lab/{escape(name)}/resume" class="inline"><label>blocks more'
        '<input type="number" name="more" min="6" max="1000" value="6"></label>'
        "<button>Add a round</button></form></div>"
    )
    how = f'<section>{so_far.parts["needs"]}</section><section id="strip">{so_far.parts["strip"]}{actions}</section>'
    bodies = [f"<header class='top'>{bar}</header>", body(one, "study", drawn), f"<main>{how}{table}{note}</main>"]
    charts |= drawn
    return page(one.title, bodies, charts, at="/archive")


def _when(row: Listed) -> tuple[str, str]:
    return row.started_at, row.id


def compared(shelf: Shelf, picks: Sequence[str], different_work: bool) -> HTMLResponse:
    """`picks`: as `named` takes them."""
    from ironbench.cli.compare import held_against
    from ironbench.report.comparison import text
    from ironbench.report.walk import section

    if len(picks) != 2:
        raise InputError("comparison", f"{counted(len(picks), 'side')} were named", "tick two records or name two")
    of_a, of_b = (named(shelf, pick) for pick in picks)
    held = held_against(of_a, of_b, different_work)
    explained = section(held.explained(), chart=False) if held.usable else None
    plain = escape(text(held.found, False, held.pairs, explained))
    words = f'<section><h2>A against B</h2><pre class="plain">{plain}</pre></section>'
    top = head(f"{of_a.word} against {of_b.word}")
    return _report([*of_a.records, *of_b.records], held.store, "", "", first=f"{top}<main>{words}</main>")


def named(shelf: Shelf, pick: str) -> Named:
    """A record, series or label of runs; `LAB/NAME` a record, cell or level of a lab. No other path is one."""
    from ironbench.cli.selection import Named, named_in

    lab, slash, inner = pick.partition("/")
    if slash and is_name(lab) and lab in shelf.labs():
        return named_in(inner, shelf.lab(lab))
    store = shelf.store()
    rows = list(shelf.rows().values())
    ids = [row.id for row in rows if row.id == pick] or [row.id for row in rows if pick in (row.series, row.label)]
    return Named(pick, _require(store.records(ids[: MOST_TRIALS + 1]), pick), store)


def _of_runs(shelf: Shelf, ids: Sequence[str], what: str, series: str) -> HTMLResponse:
    if len(ids) > MOST_TRIALS:
        raise InputError(what, f"has {counted(len(ids), 'trial')}", "open one of its series from the archive")
    found = _require(shelf.store().records(ids), what)
    exported = link("/export", "export", pick=series or found[0].system.label)
    bar = f'<p class="lead">{link("/archive", "archive")} · {exported}</p>'
    note = notes.form(shelf.store().directory, series, f"/note/{series}") if series else ""
    return _report(found, shelf.store(), bar, note)


def _require(found: list[Record], what: str) -> list[Record]:
    if not found:
        raise InputError(what, "is not among these results, or cannot be read", "search the archive")
    if len(found) > MOST_TRIALS:
        raise InputError(what, f"has more than {counted(MOST_TRIALS, 'trial')}", "name a series, or a record")
    return found


def _report(found: Sequence[Record], archive: Archive, bar: str, note: str, first: str = "") -> HTMLResponse:
    from ironbench.analyse.study import studies
    from ironbench.report.derived import sentences
    from ironbench.report.document import report
    from ironbench.report.formats.html import body

    charts: dict[str, Chart] = {}
    reports = [report(study) for study in studies(found, archive, sentences(found))]
    bodies = [first, f"<header class='top'>{bar}</header>" if bar else ""]
    bodies += [body(one, f"study{place}", charts) for place, one in enumerate(reports)]
    bodies += [f"<main>{note}</main>" if note else ""]
    return page("; ".join(one.title for one in reports), bodies, charts, at="/archive")
