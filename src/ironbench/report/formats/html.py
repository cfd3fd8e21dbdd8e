"""One self-contained page: everything inside, works without a network, prints, reads on a phone."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report import markup
from ironbench.report.page import Page
from ironbench.report.section import Section


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    """The whole page, UTF-8. What came from a user is escaped; nothing is fetched, and the page forbids itself to."""
    title = "; ".join(page.title for page in pages) or "ironbench report"
    return markup.document(title, [(f"study{place}", page) for place, page in enumerate(pages)], contents)
