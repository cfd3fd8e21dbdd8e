"""The frame of every page: navigation, style, scripts. All text from users is escaped where it is put in."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, Response

from ironbench.report import elements
from ironbench.report.charts.base import Chart
from ironbench.words import clean, clean_lines

DOORS = {"/": "Overview", "/queue": "Queue", "/archive": "Archive", "/compare": "Compare", "/history": "History"}
"""What the navigation names."""


def page(
    title: str,
    bodies: Iterable[str],
    charts: Mapping[str, Chart | dict[str, Any]] | None = None,
    at: str = "",
    status: int = 200,
) -> HTMLResponse:
    """`bodies`: HTML. `charts`: by the id of their places, as they are or as specifications; None: the page never has
    any. `at`: the door that it belongs to."""
    links = "".join(
        f'<li><a href="{path}"{" aria-current=page" if path == at else ""}>{name}</a></li>'
        for path, name in DOORS.items()
    )
    drawn = charts or {}
    # Modules run in the order of the page: what moves does not wait for the library that draws.
    scripts = ["serve.js", *(["vega.js", "page.js"] if charts is not None else [])]
    tags = "".join(f'<script type="module" src="{_address(name)}"></script>' for name in scripts)
    return HTMLResponse(
        f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(clean(title))} · ironbench</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{_address("serve.css")}">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<nav class="doors" aria-label="Pages"><ul>{links}</ul></nav>
<main id="content">
{"".join(_part(clean_lines(body)) for body in bodies)}
</main>
{elements.data_of(drawn) if charts is not None else ""}
{tags}
</body>
</html>
""",
        status,
    )


def _part(body: str) -> str:
    """A body that may be a page of its own, as reports are: this page has one main part, and that is all of them."""
    return body.replace("<main", '<div class="part"').replace("</main>", "</div>")


def simple(title: str, body: str, at: str = "", status: int = 200, lead: str = "") -> HTMLResponse:
    """A page with a heading and no charts."""
    return page(title, [head(title, lead), f"<main>{body}</main>"], at=at, status=status)


def head(title: str, lead: str = "") -> str:
    text = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return f'<header class="top"><h1>{escape(title)}</h1>{text}</header>'


def problem(title: str, text: str, status: int) -> HTMLResponse:
    """What cannot be shown or done, and why."""
    return simple(title, f'<p class="problem" role="alert">{escape(text)}</p>', status=status)


def link(path: str, text: str, **query: str) -> str:
    """A link whose text came from anywhere."""
    return f'<a href="{escape(address(path, **query))}">{escape(text)}</a>'


def address(path: str, **query: str) -> str:
    given = {name: value for name, value in query.items() if value}
    return quote(path) + (f"?{urlencode(given)}" if given else "")


def fill(address: str, words: str) -> str:
    """What takes longer than a page may: the page's script fetches it."""
    return f'<div data-fill="{escape(address)}" aria-live="polite"><p class="lead">{escape(words)}</p></div>'


def button(label: str, action: str, kind: str = "", confirm: str = "", **fields: str) -> str:
    """A form of one button."""
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in fields.items()
    )
    asked = f' data-confirm="{escape(confirm)}"' if confirm else ""
    return (
        f'<form method="post" action="{escape(quote(action))}"{asked}>{hidden}'
        f'<button class="{kind}">{escape(label)}</button></form>'
    )


def option(value: str, chosen: bool, words: str | None = None) -> str:
    """One choice of several; `words`: what it is called, where that is not its value."""
    selected = " selected" if chosen else ""
    return f'<option value="{escape(value)}"{selected}>{escape(value if words is None else words)}</option>'


def select(name: str, nothing: str, options: str) -> str:
    """A field of choices; `nothing`: what it means to choose none of them."""
    return f"<label>{name}<select name={name}><option value=''>{nothing}</option>{options}</select></label>"


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
        return elements.libraries()
    if name == "page.js":
        return elements.part(name)
    text = own.joinpath(name).read_text(encoding="utf-8")
    return elements.style() + text if name == "serve.css" else text


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
    "ironbench.views.labs",
    "ironbench.report.answer",
    "ironbench.report.charts.narrowing",
    "ironbench.report.document",
    "ironbench.report.formats.html",
    "scipy.special",
)


def prepare() -> None:
    """Makes what takes seconds the first time on a machine."""
    _content("vega.js")
