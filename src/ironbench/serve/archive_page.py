"""The page of the archive, with its views of records, labs and labels."""

from __future__ import annotations

from html import escape

from starlette.responses import Response

from ironbench.errors import IronbenchError
from ironbench.model.purpose import Purpose
from ironbench.report.numbers import moment
from ironbench.serve import archive
from ironbench.serve.compared import TICK
from ironbench.serve.page import head, link, page
from ironbench.serve.shelf import Shelf
from ironbench.words import counted

_NEWEST_LABS = 100
"""So many are shown with their questions; of older ones, the name."""


def archive_page(shelf: Shelf, query: archive.Query, view: str) -> Response:
    tabs = {"": "records", "labs": "labs", "labels": "labels"}
    links = [link("/archive", words, view=name) for name, words in tabs.items()]
    links += [link("/leaderboard", "leaderboard"), link("/cost", "cost"), link("/findings", "findings")]
    upload = (
        '<section><h2>Import records</h2><form class="inline" data-upload method="post" action="/import">'
        '<label>a file of another machine (.ibr)<input type="file" accept=".ibr"></label><button>Import</button>'
        "<output></output></form></section>"
    )
    top = f'{head("Archive")}<main><nav class="pages" aria-label="Kinds">{"".join(links)}</nav>'
    if view == "labs":
        labs = shelf.labs()[::-1]
        newest = [_lab(shelf, name) for name in labs[:_NEWEST_LABS]]
        older = [f"<li>{link(f'/lab/{name}', name)}</li>" for name in labs[_NEWEST_LABS:]]
        rows = "".join(newest + older)
        body = f'<ul class="list">{rows}</ul>' if rows else "<p>No lab has begun yet.</p>"
        return page("Labs", [f"{top}{body}{upload}</main>"], at="/archive")
    if view == "labels":
        rows = "".join(
            f"<li>{link('/label', label, name=label)}"
            f'<p class="lead">{escape(work)}: {trials} trials in {series} series</p></li>'
            for label, work, series, trials in archive.labels(shelf).texts
        )
        return page("Labels", [f'{top}<ul class="list">{rows}</ul></main>'], at="/archive")
    found = archive.search(shelf, query)
    names = {key: _machine(shelf, key) for key in found.choices["machine"]}
    table = archive.rows_table(found.rows) if found.rows else "<p>No record matches.</p>"
    body = (
        f"{archive.form(query, found, names)}{archive.pages(query, found)}"
        f'<form action="/compare">{table}<div class="actions">{TICK}<button class="main">Compare two</button>'
        '<button formaction="/export">Export those ticked</button></div></form>'
    )
    return page("Archive", [f"{top}{body}{upload}</main>"], at="/archive")


def _lab(shelf: Shelf, name: str) -> str:
    """With its question, and when it was measured."""
    try:
        question = shelf.lab(name).frozen().lab.question
    except IronbenchError as error:
        question = f"cannot be read: {error.cause}"
    rows = [row for row in shelf.rows(name).values() if row.purpose == Purpose.LAB]
    began = min((row.started_at for row in rows), default="")
    when = f", {moment(began)}" if began else ""
    words = f"{name}: {counted(len(rows), 'trial')}{when}"
    return f"<li>{link(f'/lab/{name}', question)}<p class=lead>{escape(words)}</p></li>"


def _machine(shelf: Shelf, key: str) -> str:
    cpu = shelf.runs.store.machine(key).get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return f"{model} ({key[:6]})" if model else key[:12]
