"""`make findings LAB=engines`: writes the measured part of docs/results/LAB.md and its picture from the lab's records.

`scripts/findings.py NAME [DIR]`: DIR contains the lab, by default the directory of `make labs`. The text around that
part is written by hand: the answer in words, what was published, what the results mean. The measured part contains the
verdicts, what the differences consist of, and the caveats; tables that do not help to answer the question are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ironbench.errors import InputError
from ironbench.records.labs import LabDirectory
from ironbench.report.cell import TableCell
from ironbench.report.charts.base import Chart, Table
from ironbench.report.document import report
from ironbench.report.formats import md, png
from ironbench.report.page import Page, Section
from ironbench.report.studies import study_of
from ironbench.report.wording.answers.ratios import metric_words

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "results"
RESULTS = ROOT / "ironbench-results" / "labs" / "full"
BEGIN, END = "<!-- measured -->", "<!-- end -->"
CHARTS = ("findings", "time")
"""Sections whose first chart is included in the picture, if they exist."""
TABLES = ("findings", "brokerage", "queries", "time", "devices", "cpu", "others")
"""Sections whose tables are included, in this order."""
METRICS = tuple(
    map(metric_words, ("throughput", *(f"response_time_{part}_s" for part in ("mean", "p50", "p90", "p95", "p99"))))
)
"""Rows of the tables of other metrics."""
LEAST_SHARE = 0.01
"""Wait classes below this share of transaction time are left out."""
MOST_COLUMNS = 12
"""Maximum number of columns; wider tables do not fit on a page and are left out."""


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
        *(block for section in chosen(content, TABLES) for block in md.section(shortened(section))),
        "## Before you use these numbers",
        md.bullets(content.caveats),
    ]
    return "\n\n".join(blocks)


def shortened(section: Section) -> Section:
    """Leaves out parts that do not help to answer the question of a lab."""
    charts = tuple(replace(chart, table=essential(chart.table)) for chart in section.charts)
    tables = tuple((named(name, table), essential(table)) for name, table in section.tables)
    lead = f"{section.lead} Wait classes below 1% of transaction time are left out." if section.id == "time" else ""
    return replace(
        section,
        lead=lead or section.lead,
        charts=tuple(chart for chart in charts if len(chart.table.head) <= MOST_COLUMNS),
        tables=tuple((name, table) for name, table in tables if len(table.head) <= MOST_COLUMNS),
    )


def named(name: str, table: Table) -> str:
    """Names the table of bottlenecks, which follows other tables."""
    return name or ("Bottlenecks" if table.head == ("configuration", "bottleneck") else "")


def essential(table: Table) -> Table:
    """Keeps the main metrics and the main wait classes, and adds the reference of a ratio to its heading."""
    rows, first = table.rows, table.head[0] if table.head else ""
    if first == "metric":
        rows = tuple(row for row in rows if row[0] in METRICS)
    elif first == "configuration and wait class":
        rows = tuple(row for row in rows if isinstance(row[2], TableCell) and (row[2].value or 0.0) >= LEAST_SHARE)
    head = tuple("ratio to the baseline" if name == "ratio" else name for name in table.head)
    return replace(table, head=head if first in ("comparison", "metric") else table.head, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
