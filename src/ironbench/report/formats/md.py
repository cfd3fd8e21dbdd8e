"""Markdown for a ticket or a repository, with the headline, the tables and the caveats."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ironbench.report import text_layout
from ironbench.report.charts.base import Depth, Table
from ironbench.report.page import CAVEATS, Answer, AnswerPoint, Command, Page, Section
from ironbench.words import CODE, THIN, counted

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def render(pages: Sequence[Page], contents: Section | None = None) -> bytes:
    blocks = []
    if contents:
        blocks += [f"# {escaped(contents.title)}", escaped(contents.lead), *(table(one) for _, one in contents.tables)]
    return ("\n\n".join([*blocks, *(_page(page) for page in pages)]) + "\n").encode()


def escaped(text: str) -> str:
    """Escapes text so that Markdown shows it unchanged, even in tables, and does not turn URLs into links. Text between
    backticks becomes a code span."""
    pieces = CODE.split(text_layout.clean(text))
    return "".join(f"`{piece}`" if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("://", ":\u200b//")


def _page(page: Page) -> str:
    head = " · ".join(filter(None, (page.lead, *page.kicker)))
    blocks = [f"# {escaped(page.title)}", escaped(head), escaped(page.derived), *answer(page.answer)]
    blocks += [table(page.peaks)] if page.peaks.rows else []
    blocks += [f"## {CAVEATS}", bullets(page.caveats)] if page.caveats else []
    blocks += [block for part in page.shown for block in section(part)]
    if page.commands:
        blocks += ["## How to reproduce", *(block for one in page.commands for block in _command(one))]
    blocks += ["## Notes", bullets(page.notes)] if page.notes else []
    return "\n\n".join(filter(None, blocks))


def section(part: Section) -> list[str]:
    """Returns a heading, the tables of the section's charts, the section's own tables, and its texts. Returns an empty
    list for an empty section."""
    charts, tables = part.charts_at(Depth.DOCUMENT), part.tables_at(Depth.DOCUMENT)
    texts = part.texts if part.depth is not Depth.PAGE else ()
    if not (charts or tables or texts):
        return []
    blocks = [f"## {escaped(part.title)}", *map(escaped, part.paragraphs)]
    for chart in charts:
        blocks += [f"### {escaped(chart.title)}", table(chart.table)]
    for name, content in tables:
        if content.counted:
            more = counted(len(content.rows), "more fact")
            blocks.append(f"The HTML and JSON reports list {more}.")
        else:
            blocks += [f"### {escaped(name)}", table(content)] if name else [table(content)]
    return blocks + [f"### {escaped(name)}\n\n{fenced(text, 'sql')}" for name, text in texts]


def _command(one: Command) -> list[str]:
    if not one.source:
        return [f"```sh\n{text_layout.clean(one.line)}\n```"]
    return [
        f"Save this lab file as {escaped(one.file)}.toml, and run `ironbench lab run {escaped(one.file)}.toml`.",
        fenced(one.source, "toml"),
    ]


def answer(content: Answer) -> list[str]:
    """Returns the answer as Markdown blocks. The decision is bold, and the points are a list. The bottleneck and the
    general caveats follow."""
    blocks = [f"**{escaped(content.decision.sentence)}**"]
    if content.points:
        blocks.append("\n".join(f"- {_point(point)}" for point in content.points))
    return blocks + [escaped(text) for text in (content.limit, *content.caveats) if text]


def _point(point: AnswerPoint) -> str:
    name = f"**{escaped(point.name)}** " if point.name else ""
    return name + escaped(" ".join(filter(None, (point.text, point.caveat))))


def table(content: Table) -> str:
    head = [escaped(cell) or " " for cell in content.head]
    rule = ["---", *("--:" for _ in head[1:])]
    rows = [[escaped(cell).replace(THIN, "\u00a0") for cell in row] for row in content.texts]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def fenced(text: str, language: str) -> str:
    """Returns the text in a code fence that is longer than any fence in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text_layout.clean_lines(text).strip()}\n{fence}"


def bullets(rows: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(row)}" for row in rows)
