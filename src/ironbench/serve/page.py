"""Renders the templates in `templates/`, and serves style sheets and scripts."""

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

NAVIGATION = {
    "/": "Overview",
    "/new": "New lab",
    "/queue": "Queue",
    "/archive": "Archive",
    "/compare": "Compare",
    "/history": "History",
}
"""Names of the entries in the navigation menu, by path."""


@cache
def environment() -> Environment:
    from ironbench.report import markup

    made = markup.environment("ironbench.serve", "ironbench.report")
    made.globals |= {"address": address, "static": _address, "navigation": NAVIGATION, "documentation": documentation}
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
    """Renders a page from its template and `values`. `charts`: Vega-Lite specifications by element id, or None if the
    page never has charts. `at`: path of the navigation entry to which the page belongs."""
    text = environment().get_template(template).render(title=title, at=at, charts=charts, **values)
    return HTMLResponse(text, status)


def fragment(template: str, **values: Any) -> str:
    """Renders HTML that is inserted into an open page."""
    return environment().get_template(template).render(**values)


def part(template: str, macro: str, *values: Any) -> Markup:
    """Renders a template macro."""
    made: Markup = getattr(environment().get_template(template).module, macro)(*values)
    return made


def report_page(template: str, report: Page, prefix: str, **values: Any) -> HTMLResponse:
    """Renders a page that contains a report. The title of the page is the report's title, unless `values` contains a
    title."""
    return page(
        template,
        values.pop("title", report.title),
        charts=report.specifications(prefix) | values.pop("charts", {}),
        report=report,
        **values,
    )


def problem(title: str, text: str, status: int) -> HTMLResponse:
    """Renders an error page."""
    return page("problem.html", title, status=status, text=text)


def address(path: str, **query: str) -> str:
    """Returns a URL from a path and the query fields that have a value."""
    given = {name: value for name, value in query.items() if value}
    return quote(path) + (f"?{urlencode(given)}" if given else "")


@cache
def documentation(path: str) -> str:
    """Returns the URL of a page of the documentation. Returns "" if the package does not name a documentation site."""
    for line in importlib.metadata.metadata("ironbench").get_all("Project-URL") or ():
        name, _, url = line.partition(", ")
        if name.lower() == "documentation":
            return f"{url.rstrip('/')}/{path.removesuffix('.md')}.html"
    return ""


def static(name: str) -> Response | None:
    """Returns a style sheet or script. Returns None if the name is unknown."""
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
        return assets.script()
    text = own.joinpath(name).read_text(encoding="utf-8")
    return assets.style() + text if name == "serve.css" else text


@cache
def _address(name: str) -> str:
    """Returns the URL of a static file. The URL contains a version, so that browsers may cache the file permanently."""
    if name == "vega.js":  # the version is used, because generating the file takes seconds
        return f"/static/{name}?v={importlib.metadata.version('vl-convert-python')}"
    return f"/static/{name}?v={hashlib.sha256(_content(name).encode()).hexdigest()[:12]}"


def load() -> None:
    """Imports the modules that pages need, which takes half a second. Must be called before other threads start,
    because of the msgspec error that `ironbench.serve.app` describes."""
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
    """Generates the JavaScript libraries before the first page with charts needs them. When this is done for the first
    time on a machine, it takes seconds."""
    _content("vega.js")
