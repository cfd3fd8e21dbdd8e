"""A self-contained HTML page, which needs no network, can be printed, and fits on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ironbench.errors import FailureError
from ironbench.report import assets, markup
from ironbench.report.page import Page, Section


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """Returns the whole file in UTF-8. The page loads no other files, and its content security policy forbids it. Texts
    from users are escaped. Raises FailureError if a template fails."""
    from jinja2 import TemplateError
    from markupsafe import Markup

    named = [(f"study{place}", page) for place, page in enumerate(pages)]
    charts: dict[str, Any] = {}
    for prefix, page in named:
        charts |= page.specifications(prefix)
    # Styles and scripts need no escaping. They are files of this package and of Vega, and contain no text from users.
    parts = {"style": assets.style(), "libraries": assets.libraries(), "script": assets.script()}
    trusted: dict[str, Markup] = {name: Markup(text) for name, text in parts.items()}
    title = "; ".join(page.title for page in pages) or "ironbench report"
    try:
        template = markup.environment("ironbench.report").get_template("report.html")
        return template.render(title=title, pages=named, contents=contents, charts=charts, **trusted).encode()
    except TemplateError as error:
        hint = "choose another format, e.g. text or md"
        raise FailureError("HTML page", f"the HTML template failed ({error})", hint) from error
