"""A lab on the terminal: the answer first, then what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ironbench.analyse.labstudy import Effect, LabStudy
from ironbench.printer import Printer
from ironbench.report import lab_figures, plain, storage
from ironbench.report.answer import answer, sentence
from ironbench.report.charts.base import Table
from ironbench.report.charts.blocks import points
from ironbench.report.findings import claimed_table, effect_table, metric_tables
from ironbench.report.same_load import same_load_tables

_WIDTH = 100
_UNDECLARED = (
    "No verdict: the lab does not declare this comparison, and one that is chosen after the numbers were seen would "
    "find differences too easily. Ratios are paired by block."
)
_WORDS = ("claims", "time", "balance", "differences", "plan")
"""Sections whose tables hold words, not numbers."""


def render(studies: Sequence[LabStudy]) -> bytes:
    return ("\n\n".join(_study(study) for study in studies) + "\n").encode()


def summary(study: LabStudy, printer: Printer) -> None:
    """What `lab run` ends with: the answer, the findings, what was expected, what to know first."""
    blocks = [plain.clean(study.lab.question), plain.answer(answer(study), _WIDTH), *_findings(study), *_storage(study)]
    blocks += [*_same_load(study), *_claims(study)]
    blocks += [f"Earlier rounds: {name}\n{_shown(table, 'earlier')}" for name, table in lab_figures.earlier(study)]
    blocks.append(_cautions(study))
    printer.data("\n\n".join(block for block in blocks if block))


def paired(effects: Sequence[Effect]) -> str:
    """Two cells of one lab, block by block: the verdict where the lab declared the comparison, then every metric."""
    deciding = [effect for effect in effects if effect.finding.decides]
    words = " ".join(map(sentence, deciding)) if deciding else _UNDECLARED
    tables = [plain.table(effect_table(deciding))] if deciding else []
    rest = [effect for effect in effects if not effect.finding.decides]
    tables += [f"{plain.clean(name)}, paired by block\n{plain.table(one)}" for name, one in metric_tables(rest)]
    return "\n\n".join([textwrap.fill(plain.clean(words), _WIDTH, break_on_hyphens=False), *tables])


def _study(study: LabStudy) -> str:
    head = "\n".join(map(plain.clean, (study.lab.question, study.work, ", ".join(lab_figures.kicker(study)))))
    blocks = [
        head,
        study.derived,
        plain.answer(answer(study), _WIDTH),
        _cautions(study),
        *_claims(study),
        *_findings(study),
        *_same_load(study),
    ]
    blocks += [f"{chart.title}\n{plain.table(chart.table)}" for chart in points(study)]
    for section in lab_figures.sections(study):
        if section.id in ("claims", "findings", "same-load", "trials", "configuration"):
            continue
        blocks += [f"{section.title}: {chart.title}\n{plain.table(chart.table)}" for chart in section.charts]
        for name, table in section.tables:
            title = plain.clean(f"{section.title}: {name}" if name else section.title)
            blocks.append(f"{title}\n{_shown(table, section.id)}")
    source = textwrap.indent(plain.clean_lines(study.lab.source).strip(), "  ")
    blocks.append(f"How to reproduce: ironbench lab run {plain.clean(study.lab.name)}.toml, which is\n{source}")
    blocks.append("Notes\n" + "\n".join(f"  - {note}" for note in lab_figures.notes(study)))
    return "\n\n".join(block for block in blocks if block)


def _shown(table: Table, section: str) -> str:
    words = section in _WORDS or (section == "earlier" and not table.numbers)
    return plain.facts(Table((), (table.head, *table.rows))) if words else plain.table(table)


def _findings(study: LabStudy) -> list[str]:
    found = [f"Findings\n{plain.table(effect_table(study.effects))}"] if study.effects else []
    if study.claimed:
        found.append(f"Findings that only a claim asks for\n{plain.table(claimed_table(study.claimed))}")
    return found


def _storage(study: LabStudy) -> list[str]:
    """The known table alone: latencies are in the report."""
    return [plain.table(table) for _, table in storage.of_lab([(c.name, c.usable) for c in study.cells]).tables[:1]]


def _same_load(study: LabStudy) -> list[str]:
    title = "Response times at the same load, a share of the baseline's peak (no verdict)"
    return [f"{title}: {plain.clean(name)}\n{plain.table(table)}" for name, table in same_load_tables(study.same_loads)]


def _claims(study: LabStudy) -> list[str]:
    table = lab_figures.claims(study)
    return [f"What was expected\n{plain.facts(table)}"] if table.rows else []


def _cautions(study: LabStudy) -> str:
    rows = lab_figures.cautions(study)
    return "\n".join(["Before you use these numbers", *(f"  - {plain.clean(row)}" for row in rows)]) if rows else ""
