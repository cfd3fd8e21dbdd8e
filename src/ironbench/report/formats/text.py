"""Plain text for a terminal: tables and small charts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ironbench.report import text_layout
from ironbench.report.page import CAVEATS, Command, Page, Section
from ironbench.report.text_layout import bullets


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    blocks = (
        [f"{contents.title}: {contents.lead}", *(text_layout.table(one) for _, one in contents.tables)]
        if contents
        else []
    )
    return ("\n\n".join([*blocks, *map(page, pages)]) + "\n").encode()


def page(content: Page, width: int | None = None) -> str:
    """Formats one page. `width`: width of the terminal in characters. A table that is too wide is shown without its
    least important columns."""
    heading = "\n".join(map(text_layout.clean, filter(None, (content.title, content.lead, ", ".join(content.kicker)))))
    blocks = [heading, content.derived, text_layout.answer(content.answer), bullets(CAVEATS, content.caveats)]
    blocks += [block for part in content.shown for block in text_layout.section(part, width=width)]
    blocks += [_commands(content.commands), bullets("Notes", content.notes)]
    return "\n\n".join(block for block in blocks if block)


def _commands(commands: Sequence[Command]) -> str:
    if not commands:
        return ""
    if commands[0].source:
        source = textwrap.indent(text_layout.clean_lines(commands[0].source).strip(), "  ")
        return f"How to reproduce: {text_layout.clean(commands[0].line)}, with this lab file:\n{source}"
    return "\n".join(["How to reproduce", *(f"  {text_layout.clean(one.line)}" for one in commands)])
