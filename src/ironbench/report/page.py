"""The HTML report. What came from a user is escaped; nothing is fetched, and the page forbids itself to try."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ironbench.analyse.curve import Peak
from ironbench.analyse.rate import Rate
from ironbench.analyse.study import Part, Study
from ironbench.analyse.subjects import counted_in
from ironbench.report import elements, figures, own, theme
from ironbench.report.charts.base import Chart
from ironbench.report.numbers import measured, moment, number, quantity, span, times
from ironbench.words import counted


def render(studies: Sequence[Study]) -> bytes:
    """The whole page, UTF-8."""
    charts: dict[str, Chart] = {}
    bodies = [_study(study, place, charts) for place, study in enumerate(studies)]
    return elements.page(_title(studies), [*_contents(studies), *bodies], charts)


def _contents(studies: Sequence[Study]) -> list[str]:
    overview = figures.overview(studies)
    if overview is None:
        return []
    links = "".join(
        f'<li><a href="#study{place}">{escape(study.work)}</a>: {escape(figures.title(study))}</li>'
        for place, study in enumerate(studies)
    )
    return [
        f'<header class="top"><h1>Contents</h1><p class="lead">{escape(figures.contents(studies))}</p></header>'
        f'<main><nav><ol class="contents">{links}</ol></nav>{elements.table(overview)}</main>'
    ]


def _study(study: Study, place: int, charts: dict[str, Chart]) -> str:
    body = [
        f'<header class="top" id="study{place}"><p class="kicker">{escape(_kicker(study))}</p>',
        f"<h1>{escape(figures.title(study))}</h1>",
    ]
    body.append(f'<p class="lead">{escape(study.work)}</p>{_derived(study)}</header><main>{elements.NO_SCRIPT}')
    body.append(elements.answer(figures.answer(study)))
    body.append(f'<ul class="cards">{"".join(_card(part, at) for at, part in enumerate(study.parts))}</ul>')
    body.append(elements.cautions(figures.cautions(study)))
    body += [elements.section(section, f"study{place}", charts) for section in figures.sections(study)]
    commands = (f"<h3>{escape(part.name)}</h3><pre>{escape(part.command)}</pre>" for part in study.parts)
    body.append(f"<section><h2>How to reproduce</h2>{''.join(commands)}</section>")
    body.append(f'<section><h2>Notes</h2><ol class="notes">{elements.items(study.footnotes)}</ol></section></main>')
    return "\n".join(body)


def _derived(study: Study) -> str:
    return f'<p class="lead"><strong>{escape(study.derived)}</strong></p>' if study.derived else ""


def _title(studies: Sequence[Study]) -> str:
    return "; ".join(figures.title(study) for study in studies) or "ironbench report"


def _kicker(study: Study) -> str:
    machine = {name.partition(".")[2]: value for name, value in study.shared.items() if name.startswith("machine.")}
    words = [moment(study.started_at), counted(study.trials, "trial")]
    words += [machine["cpu.model"]] if "cpu.model" in machine else []
    words += [_cores(machine["cpu.cores"])] if "cpu.cores" in machine else []
    memory = machine.get("memory_bytes", "")
    words += [f"{quantity(float(memory), 'memory')} memory"] if memory.isdigit() else []
    virtual = machine.get("virtualisation", "none")
    words += [f"virtual machine ({virtual})"] if virtual != "none" else []
    return " · ".join(words)


def _cores(text: str) -> str:
    return counted(int(text), "core") if text.isdigit() else f"{text} cores"


def _card(part: Part, place: int) -> str:
    mark = elements.MARKS[theme.MARKS[place % len(theme.MARKS)]]
    name = f'<div class="name"><svg viewBox="0 0 16 16" aria-hidden="true">{mark}</svg>{escape(part.name)}</div>'
    colour = f"--c: var(--s{place % theme.SYSTEMS})"
    if part.curve.main is None:
        return f'<li style="{colour}">{name}<div class="big"><small>no usable trial</small></div></li>'
    if (shown := own.presentation_of(part)) is not None:
        figure, unit, facts = shown.card(part)
        return f'<li style="{colour}">{name}{_big(figure, unit)}{_facts(facts)}</li>'
    figure, unit, rows = _asked(part.curve.main) if isinstance(part.curve.main, Rate) else _reached(part.curve.main)
    for label, metric in (("median response", "response_time_p50_s"), ("99th percentile", "response_time_p99_s")):
        if metric in part.curve.main.metrics:
            rows.append((label, measured(part.curve.main.metrics[metric], "s")))
    if part.standing and part.standing.ratio:
        rows.append((f"ratio to {part.standing.reference}", times(part.standing.ratio)))
    units = f"{counted_in(part.subject.records)[1]}/s"
    return f'<li style="{colour}">{name}{_big(figure, f"{units} {unit}".strip())}{_facts(rows)}</li>'


def _reached(peak: Peak) -> tuple[str, str, list[tuple[str, str]]]:
    rows = [("clients", str(peak.clients)), ("range", span(peak.throughput, "1/s")), ("rests on", peak.basis)]
    return measured(peak.throughput, "1/s").removesuffix("/s"), "", rows


def _asked(one: Rate) -> tuple[str, str, list[tuple[str, str]]]:
    """Of an open loop the figure is what was asked for; that it was kept is the result."""
    finished = measured(one.metrics.get("throughput"), "1/s")
    rows = [("clients", str(one.clients)), ("finished", finished), ("rests on", one.basis)]
    return number(one.rate), one.words, rows


def _big(figure: str, unit: str) -> str:
    return f'<div class="big">{escape(figure)} <small>{escape(unit)}</small></div>'


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(label)}</dt><dd>{escape(value)}</dd>' for label, value in rows)}</dl>"
