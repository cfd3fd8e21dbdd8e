"""The HTML report of labs: question, answer, evidence, plan. What came from a user is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ironbench.analyse.labstudy import Effect, LabStudy
from ironbench.report import elements, lab_figures
from ironbench.report.answer import answer
from ironbench.report.charts.base import Chart
from ironbench.report.charts.effects import LOOKS
from ironbench.report.findings import interval, metric_words, ratio, resolved
from ironbench.report.numbers import confidence

_MOST_CARDS = 4
"""More comparisons than this are told by the chart alone."""


def render(studies: Sequence[LabStudy]) -> bytes:
    """The whole page, UTF-8."""
    charts: dict[str, Chart] = {}
    bodies = [_study(study, f"lab{place}", charts) for place, study in enumerate(studies)]
    return elements.page("; ".join(study.lab.question for study in studies), bodies, charts)


def _study(study: LabStudy, prefix: str, charts: dict[str, Chart]) -> str:
    derived = f'<p class="lead"><strong>{escape(study.derived)}</strong></p>' if study.derived else ""
    body = [
        f'<header class="top"><p class="kicker">{escape(" · ".join(lab_figures.kicker(study)))}</p>',
        f"<h1>{escape(study.lab.question)}</h1>",
        f'<p class="lead">{escape(study.lab.name)} · {escape(study.work)}</p>{derived}</header>',
        f"<main>{elements.NO_SCRIPT}",
        elements.answer(answer(study)),
        _cards(study),
        elements.cautions(lab_figures.cautions(study)),
    ]
    body += [elements.section(section, prefix, charts) for section in lab_figures.sections(study)]
    command = f"ironbench lab run {study.lab.name}.toml"
    body.append(
        f"<section><h2>How to reproduce</h2><p>Save this as <code>{escape(study.lab.name)}.toml</code> and run "
        f"<code>{escape(command)}</code>.</p><pre>{escape(study.lab.source)}</pre></section>"
    )
    body.append(
        f'<section><h2>Notes</h2><ol class="notes">{elements.items(lab_figures.notes(study))}</ol></section></main>'
    )
    return "\n".join(body)


def _cards(study: LabStudy) -> str:
    if not 0 < len(study.effects) <= _MOST_CARDS:
        return ""
    return f'<ul class="cards few">{"".join(_card(effect) for effect in study.effects)}</ul>'


def _card(effect: Effect) -> str:
    finding = effect.finding
    colour, mark = LOOKS[finding.conclusion]
    name = f'<svg viewBox="0 0 16 16" aria-hidden="true">{elements.MARKS[mark]}</svg>{escape(finding.conclusion.value)}'
    facts = [
        ("compared", effect.contrast.cell),
        ("baseline", effect.contrast.baseline),
        *([("at", effect.contrast.where)] if effect.contrast.where else []),
        (f"{confidence(finding.confidence)} interval", interval(finding)),
        ("blocks", str(finding.blocks)),
        ("finds differences from", resolved(finding)),
    ]
    rows = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in facts)
    big = f"{escape(ratio(finding.ratio))} <small>{escape(metric_words(finding.metric))}</small>"
    top = f'<div class="name">{name}</div><div class="big">{big}</div>'
    return f'<li style="--c: var(--{colour})">{top}<dl>{rows}</dl></li>'
