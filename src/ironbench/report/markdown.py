"""Markdown for a ticket or a repository. Everything from users is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ironbench.analyse.study import Study
from ironbench.report import figures, plain
from ironbench.report.charts.base import Table
from ironbench.report.numbers import moment
from ironbench.report.section import Answer, Point
from ironbench.words import THIN, counted

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def render(studies: Sequence[Study]) -> bytes:
    overview = figures.overview(studies)
    first = [f"# Contents\n\n{escaped(figures.contents(studies))}\n\n{table(overview)}"] if overview else []
    return ("\n\n".join([*first, *(_study(study) for study in studies)]) + "\n").encode()


def escaped(text: str) -> str:
    """Shown as written, in text and in table cells; addresses do not become links."""
    return _SPECIAL.sub(r"\\\1", plain.clean(text)).replace("://", ":\u200b//")


def _study(study: Study) -> str:
    trials = counted(study.trials, "trial")
    blocks = [
        f"# {escaped(figures.title(study))}",
        f"{escaped(study.work)} · {moment(study.started_at)} · {trials}",
        *([escaped(study.derived)] if study.derived else []),
        *answer(figures.answer(study)),
        *([table(peaks)] if (peaks := figures.peaks(study)).rows else []),
    ]
    cautions = figures.cautions(study)
    if cautions:
        blocks += ["## Before you use these numbers", bullets(cautions)]
    for section in figures.sections(study):
        if section.id in ("time", "devices", "configuration"):
            continue
        blocks.append(f"## {section.title}")
        blocks += [escaped(text) for text in section.paragraphs]
        for chart in section.charts:
            blocks += [f"### {escaped(chart.title)}", table(chart.table)]
        for name, content in section.tables:
            if name == figures.REST:
                blocks.append(
                    f"That is not all: the HTML and JSON reports name {counted(len(content.rows), 'fact')} more."
                )
                continue
            blocks += [f"### {escaped(name)}", table(content)] if name else [table(content)]
        blocks += [f"### {escaped(name)}\n\n{fenced(text, 'sql')}" for name, text in section.texts]
    blocks.append("## How to reproduce")
    blocks += [f"```sh\n{plain.clean(part.command)}\n```" for part in study.parts]
    blocks += ["## Notes", bullets(study.footnotes)]
    return "\n\n".join(blocks)


def answer(found: Answer) -> list[str]:
    """Blocks: the decision in bold, a list of points, the limit, the doubts about all."""
    blocks = [f"**{escaped(found.decision.sentence)}**"]
    if found.points:
        blocks.append("\n".join(f"- {_point(point)}" for point in found.points))
    return blocks + [escaped(text) for text in (found.limit, *found.doubts) if text]


def _point(point: Point) -> str:
    name = f"**{escaped(point.name)}** " if point.name else ""
    return name + escaped(" ".join(filter(None, (point.text, point.doubt))))


def table(content: Table) -> str:
    head = [escaped(cell) or " " for cell in content.head]
    rule = ["---", *("--:" for _ in head[1:])]
    rows = [[escaped(cell).replace(THIN, "\u00a0") for cell in row] for row in content.rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def fenced(text: str, language: str) -> str:
    """The text as written, in a fence longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{plain.clean_lines(text).strip()}\n{fence}"


def bullets(rows: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(row)}" for row in rows)
