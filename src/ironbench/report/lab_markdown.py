"""A lab as Markdown for a ticket or a repository. Everything from users is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.analyse.labstudy import LabStudy
from ironbench.report import lab_figures, markdown
from ironbench.report.answer import answer
from ironbench.report.markdown import bullets, escaped, fenced, table


def render(studies: Sequence[LabStudy]) -> bytes:
    return ("\n\n".join(_study(study) for study in studies) + "\n").encode()


def _study(study: LabStudy) -> str:
    blocks = [
        f"# {escaped(study.lab.question)}",
        f"{escaped(study.work)} · {escaped(' · '.join(lab_figures.kicker(study)))}",
        *([escaped(study.derived)] if study.derived else []),
        *markdown.answer(answer(study)),
    ]
    rows = lab_figures.cautions(study)
    blocks += ["## Before you use these numbers", bullets(rows)] if rows else []
    for section in lab_figures.sections(study):
        if section.id == "configuration":
            continue
        blocks.append(f"## {section.title}")
        blocks += [escaped(text) for text in section.paragraphs]
        # The findings' own table says what their chart shows.
        for chart in section.charts if section.id != "findings" else ():
            blocks += [f"### {escaped(chart.title)}", table(chart.table)]
        for name, content in section.tables:
            blocks += [f"### {escaped(name)}", table(content)] if name else [table(content)]
        blocks += [f"### {escaped(name)}\n\n{fenced(text, 'sql')}" for name, text in section.texts]
    blocks += [
        "## How to reproduce",
        f"Save this as {escaped(study.lab.name)}.toml and run `ironbench lab run` on it.",
    ]
    blocks.append(fenced(study.lab.source, "toml"))
    blocks += ["## Notes", bullets(lab_figures.notes(study))]
    return "\n\n".join(blocks)
