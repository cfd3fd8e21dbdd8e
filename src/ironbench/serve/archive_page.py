"""The page of the archive, with its views of records, labs and labels."""

from __future__ import annotations

from starlette.responses import Response

from ironbench.errors import IronbenchError
from ironbench.model.purpose import Purpose
from ironbench.report.numbers import moment
from ironbench.serve import archive
from ironbench.serve.page import page
from ironbench.serve.shelf import Shelf
from ironbench.words import counted, grouped

_NEWEST_LABS = 100
"""So many are shown with their questions; of older ones, the name."""


def archive_page(shelf: Shelf, query: archive.ArchiveQuery, view: str) -> Response:
    if view == "labs":
        names = shelf.labs()[::-1]
        labs = [
            (name, *_lab(shelf, name)) if place < _NEWEST_LABS else (name, name, "") for place, name in enumerate(names)
        ]
        return page("archive.html", "Labs", at="/archive", view=view, labs=labs)
    if view == "labels":
        return page("archive.html", "Labels", at="/archive", view=view, labels=archive.labels(shelf).texts)
    found = archive.search(shelf, query)
    last = archive.last_page(found.count)
    machines = {key: _machine(shelf, key) for key in found.choices["machine"]}
    return page(
        "archive.html",
        "Archive",
        at="/archive",
        view="",
        query=query,
        choices={field: [(one, machines.get(one, one)) for one in known] for field, known in found.choices.items()},
        rows=archive.shown_rows(found.rows),
        where=f"{counted(found.count, 'record')}, page {grouped(found.page)} of {grouped(last)}",
        steps=[(words, query.fields(number)) for words, number in archive.steps(found.page, last)],
    )


def _lab(shelf: Shelf, name: str) -> tuple[str, str]:
    """Its question, and when it was measured."""
    try:
        question = shelf.lab(name).frozen().lab.question
    except IronbenchError as error:
        question = f"cannot be read: {error.cause}"
    rows = [row for row in shelf.rows(name).values() if row.purpose == Purpose.LAB]
    began = min((row.started_at for row in rows), default="")
    when = f", {moment(began)}" if began else ""
    return question, f"{name}: {counted(len(rows), 'trial')}{when}"


def _machine(shelf: Shelf, key: str) -> str:
    cpu = shelf.runs.store.machine(key).get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return f"{model} ({key[:6]})" if model else key[:12]
