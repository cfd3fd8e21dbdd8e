"""Pages from the templates in `templates/`, with their style and scripts."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, Response

from ironbench.report import assets

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from ironbench.report.page import Page

DOORS = {"/": "Overview", "/queue": "Queue", "/archive": "Archive", "/compare": "Compare", "/history": "History"}
"""What the navigation names."""


@cache
def environment() -> Environment:
    from ironbench.report import markup

    made = markup.environment("ironbench.serve", "ironbench.report")
    made.globals |= {"address": address, "static": _address, "doors": DOORS}
    made.globals["forms"] = made.get_template("forms.html").module
    return made


def page(
    template: str,
    title: str,
    at: str = "",
    status: int = 200,
    charts: Mapping[str, dict[str, Any]] | None = None,
    **values: Any,
) -> HTMLResponse:
    """A page from its template, which gets `values`. `charts`: specifications by the id of their places; None: the page
    never has any. `at`: the navigation entry that it belongs to."""
    text = environment().get_template(template).render(title=title, at=at, charts=charts, **values)
    return HTMLResponse(text, status)


def fragment(template: str, **values: Any) -> str:
    """What an open page fills into itself."""
    return environment().get_template(template).render(**values)


def part(template: str, macro: str, *values: Any) -> Markup:
    """A part of a page, from a macro of its template."""
    made: Markup = getattr(environment().get_template(template).module, macro)(*values)
    return made


def report_page(template: str, report: Page, prefix: str, **values: Any) -> HTMLResponse:
    """A page around a report, titled as it."""
    return page(
        template,
        values.pop("title", report.title),
        charts=report.specifications(prefix) | values.pop("charts", {}),
        report=report,
        **values,
    )


def problem(title: str, text: str, status: int) -> HTMLResponse:
    """What cannot be shown or done, and why."""
    return page("problem.html", title, status=status, text=text)


def address(path: str, **query: str) -> str:
    """A path and the fields of its query that have a value."""
    given = {name: value for name, value in query.items() if value}
    return quote(path) + (f"?{urlencode(given)}" if given else "")


def static(name: str) -> Response | None:
    """A style or script; None: there is none of that name."""
    if name not in _KINDS:
        return None
    kind = _KINDS[name]
    return Response(_content(name), media_type=kind, headers={"cache-control": "private, max-age=31536000, immutable"})


_KINDS = {
    "serve.css": "text/css",
    "serve.js": "text/javascript",
    "page.js": "text/javascript",
    "vega.js": "text/javascript",
}


@cache
def _content(name: str) -> str:
    own = files(__package__)
    if name == "vega.js":
        return assets.libraries()
    if name == "page.js":
        return assets.part(name)
    text = own.joinpath(name).read_text(encoding="utf-8")
    return assets.style() + text if name == "serve.css" else text


@cache
def _address(name: str) -> str:
    """With what tells its content from another, so that a browser may keep it."""
    if name == "vega.js":  # the first page does not wait until it is made
        return f"/static/{name}?v={importlib.metadata.version('vl-convert-python')}"
    return f"/static/{name}?v={hashlib.sha256(_content(name).encode()).hexdigest()[:12]}"


def load() -> None:
    """Loads what pages are made with, half a second that the first page need not wait for. Before there is a second
    thread: see `ironbench.serve.app` on msgspec."""
    for name in _MAKERS:
        importlib.import_module(name)


_MAKERS = (
    "ironbench.study.findings",
    "ironbench.report.studies",
    "ironbench.report.answer",
    "ironbench.report.charts.narrowing",
    "ironbench.report.document",
    "ironbench.report.markup",
    "jinja2",
    "scipy.special",
)


def prepare() -> None:
    """Makes what takes seconds the first time on a machine."""
    _content("vega.js")
