"""`make findings LAB=engines`: writes the measured part of docs/results/LAB.md and its picture from the lab's records.

`scripts/findings.py NAME [DIR]`: DIR contains the lab, by default the directory of `make labs`. The text around that
part is written by hand: what was published, which results are kept, what they mean.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ironbench.errors import InputError
from ironbench.records.labs import LabDirectory
from ironbench.report.charts.base import Chart
from ironbench.report.document import report
from ironbench.report.formats import md, png
from ironbench.report.page import Page, Section
from ironbench.report.studies import study_of

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "results"
RESULTS = ROOT / "ironbench-results" / "labs" / "full"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
CHARTS = ("findings", "queries", "devices", "time", "cpu")
"""Sections whose first chart is included in the picture, if they exist."""
TABLES = ("findings", "brokerage", "queries", "devices", "time", "cpu", "others")


def main() -> int:
    name = sys.argv[1]
    page, directory = PAGES / f"{name}.md", Path(*sys.argv[2:3] or [RESULTS / name])
    before, begin, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    if not begin:
        raise InputError(str(page), f"has no line {BEGIN}", "write the page first")
    content = report(study_of(LabDirectory(directory)))
    picture = ROOT / "docs" / "img" / f"{name}.png"
    picture.write_bytes(png.charts_png(content.title, [" · ".join(content.kicker), content.derived], charts(content)))
    page.write_text(f"{before}{BEGIN}\n\n{measured(content, picture.name)}\n\n{END}{after}")
    sys.stderr.write(f"written: {page.relative_to(ROOT)}, {picture.relative_to(ROOT)}\n")
    return 0


def charts(content: Page) -> list[Chart]:
    return [section.charts[0] for section in chosen(content, CHARTS) if section.charts]


def chosen(content: Page, ids: Sequence[str]) -> list[Section]:
    there = {section.id: section for section in content.sections}
    return [there[one] for one in ids if one in there]


def measured(content: Page, picture: str) -> str:
    blocks = [
        md.escaped(" · ".join(content.kicker)),
        *([md.escaped(content.derived)] if content.derived else []),
        *md.answer(content.answer),
        f"![{md.escaped(content.title)}](../img/{picture})",
        *(block for section in chosen(content, TABLES) for block in md.section(section)),
        "## Before you use these numbers",
        md.bullets(content.cautions),
    ]
    return "\n\n".join(blocks)


if __name__ == "__main__":
    sys.exit(main())
