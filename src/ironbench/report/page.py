"""The HTML report. What came from a user is escaped; nothing is fetched, and the page forbids itself to try."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from ironbench.analyse.study import Part, Study
from ironbench.report import bundle, figures, theme
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.figures import Section
from ironbench.report.numbers import measured, moment, quantity, span, times

_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
_NO_SCRIPT = (
    "<noscript><p class='lead'>Charts are drawn by a script inside this file, which this viewer does not run. "
    "Open the file in a browser, or open the figures under each chart.</p></noscript>"
)
_WIDE = ("throughput", "latency", "time-throughput")
_FOLDED = 12
"""Tables of facts with more rows are folded away."""
_FOLDED_UNNAMED = 40
"""The same for a section's only table, which is what its reader came for."""
_MARKS = {
    "circle": '<circle cx="8" cy="8" r="7"/>',
    "square": '<rect x="2" y="2" width="12" height="12"/>',
    "triangle-up": '<path d="M8 1 15 14H1z"/>',
    "diamond": '<path d="M8 0 15 8 8 16 1 8z"/>',
    "cross": '<path d="M5 1h6v4h4v6h-4v4H5v-4H1V5h4z"/>',
    "triangle-down": '<path d="M8 15 1 2h14z"/>',
    "stroke": '<rect x="0" y="6" width="16" height="4"/>',
    "triangle-right": '<path d="M15 8 2 15V1z"/>',
    "line": '<path d="M0 8h16"/>',
    "dash": '<path d="M0 8h6m4 0h6"/>',
    "dot": '<path d="M0 8h3m3.5 0h3m3.5 0h3"/>',
    "hollow": '<circle cx="8" cy="8" r="5.5"/>',
    "ring": '<circle cx="8" cy="8" r="6.5" stroke-dasharray="3 3"/>',
}


def render(studies: Sequence[Study]) -> bytes:
    """The whole page, UTF-8."""
    charts: dict[str, Chart] = {}
    bodies = [_study(study, place, charts) for place, study in enumerate(studies)]
    title = _title(studies)
    specifications = {id: {"description": chart.alt, **chart.specification} for id, chart in charts.items()}
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="generator" content="ironbench">
<title>{escape(title)}</title>
<style>
{_colours()}{_part("page.css")}</style>
</head>
<body>
{"".join(bodies)}
<footer>Made by ironbench. This page holds all its data and works without a network.</footer>
<script type="application/json" id="themes">{_embedded({"light": theme.LIGHT, "dark": theme.DARK})}</script>
<script type="application/json" id="charts">{_embedded(specifications)}</script>
<script type="module">
{bundle.script()}
{_part("page.js")}</script>
</body>
</html>
"""
    return page.encode()


def _study(study: Study, place: int, charts: dict[str, Chart]) -> str:
    body = [
        f'<header class="top"><p class="kicker">{escape(_kicker(study))}</p>',
        f"<h1>{escape(figures.title(study))}</h1>",
    ]
    body.append(f'<p class="lead">{escape(study.work)}</p>{_derived(study)}</header><main>{_NO_SCRIPT}')
    body.append(f'<div class="headline">{"".join(_sentence(*sentence) for sentence in figures.headline(study))}</div>')
    body.append(
        f'<ul class="cards">{"".join(_card(part, at, study.parts[0].name) for at, part in enumerate(study.parts))}</ul>'
    )
    body.append(_cautions(figures.cautions(study)))
    body += [_section(section, f"study{place}", charts) for section in figures.sections(study)]
    commands = (f"<h3>{escape(part.name)}</h3><pre>{escape(part.command)}</pre>" for part in study.parts)
    body.append(f"<section><h2>How to reproduce</h2>{''.join(commands)}</section>")
    body.append(f'<section><h2>Notes</h2><ol class="notes">{_items(study.footnotes)}</ol></section></main>')
    return "\n".join(body)


def _derived(study: Study) -> str:
    return f'<p class="lead"><strong>{escape(study.derived)}</strong></p>' if study.derived else ""


def _sentence(name: str, text: str) -> str:
    return f"<p><strong>{escape(name)}</strong> {escape(text)}</p>" if name else f"<p>{escape(text)}</p>"


def _title(studies: Sequence[Study]) -> str:
    return "; ".join(figures.title(study) for study in studies) or "ironbench report"


def _kicker(study: Study) -> str:
    machine = {name.partition(".")[2]: value for name, value in study.shared.items() if name.startswith("machine.")}
    words = [moment(study.started_at), f"{study.trials} trials"]
    words += [machine["cpu.model"]] if "cpu.model" in machine else []
    words += [f"{machine['cpu.cores']} cores"] if "cpu.cores" in machine else []
    memory = machine.get("memory_bytes", "")
    words += [f"{quantity(float(memory), 'memory')} memory"] if memory.isdigit() else []
    virtual = machine.get("virtualisation", "none")
    words += [f"virtual machine ({virtual})"] if virtual != "none" else []
    return " · ".join(words)


def _card(part: Part, place: int, first: str) -> str:
    mark = _MARKS[theme.MARKS[place % len(theme.MARKS)]]
    name = f'<div class="name"><svg viewBox="0 0 16 16" aria-hidden="true">{mark}</svg>{escape(part.name)}</div>'
    colour = f"--c: var(--s{place % theme.SYSTEMS})"
    peak = part.curve.peak
    if peak is None:
        return f'<li style="{colour}">{name}<div class="big"><small>no usable trial</small></div></li>'
    rate = measured(peak.throughput, "1/s").removesuffix("/s")
    rows = [("clients", str(peak.clients)), ("range", span(peak.throughput, "1/s")), ("rests on", peak.basis)]
    for label, metric in (("median response", "response_time_p50_s"), ("99th percentile", "response_time_p99_s")):
        if metric in peak.metrics:
            rows.append((label, measured(peak.metrics[metric], "s")))
    if part.standing and part.standing.ratio:
        rows.append((f"ratio to {first}", times(part.standing.ratio)))
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(value)}</dd>" for label, value in rows)
    big = f'<div class="big">{escape(rate)} <small>transactions/s</small></div>'
    return f'<li style="{colour}">{name}{big}<dl>{facts}</dl></li>'


def _cautions(rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return f'<aside class="cautions"><h3>Before you use these numbers</h3><ul>{_items(rows)}</ul></aside>'


def _section(section: Section, prefix: str, charts: dict[str, Chart]) -> str:
    parts = [f'<section id="{prefix}-{section.id}"><h2>{escape(section.title)}</h2>']
    if section.lead:
        parts.append(f'<p class="lead">{escape(section.lead)}</p>')
    if section.charts:
        parts.append(f'<div class="charts">{"".join(_figure(chart, prefix, charts) for chart in section.charts)}</div>')
    parts += [_table_block(name, table) for name, table in section.tables]
    return "".join(parts) + "</section>"


def _figure(chart: Chart, prefix: str, charts: dict[str, Chart]) -> str:
    id = f"{prefix}-chart-{chart.id}"
    charts[id] = chart
    wide = ' class="wide"' if chart.id in _WIDE else ""
    note = f'<div class="note">{escape(chart.note)}</div>' if chart.note else ""
    return (
        f"<figure{wide}><figcaption>{escape(chart.title)} <span>{escape(chart.unit)}</span></figcaption>{note}"
        f"{_legend(chart.legend)}"
        f'<div class="chart" id="{id}" role="img" aria-label="{escape(chart.alt)}"></div>'
        f"<details><summary>Figures</summary>{_table(chart.table, numbers=True)}</details></figure>"
    )


def _legend(keys: Sequence[Key]) -> str:
    entries = "".join(
        f'<li><svg viewBox="0 0 16 16" style="--c: var(--{key.colour})" class="{key.mark}" aria-hidden="true">'
        f"{_MARKS[key.mark]}</svg>{escape(key.label)}</li>"
        for key in keys
    )
    return f'<ul class="legend">{entries}</ul>' if entries else ""


def _table_block(name: str, table: Table) -> str:
    heading = f"<h3>{escape(name)}</h3>" if name else ""
    if len(table.rows) <= (_FOLDED if name else _FOLDED_UNNAMED):
        return heading + _table(table)
    summary = f"{name}: {len(table.rows)} facts" if name else f"{len(table.rows)} facts"
    return f"<details><summary>{escape(summary)}</summary>{_table(table)}</details>"


def _table(table: Table, numbers: bool = False) -> str:
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.head)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in table.rows
    )
    kind = ' class="numbers"' if numbers else ""
    return f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _items(rows: Iterable[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in rows)


def _embedded(value: object) -> str:
    """JSON inside a script element: no `<` may remain, or a label could end the element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _colours() -> str:
    """The theme as CSS variables, so that page and charts share one set of colours."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in tokens.items()) for tokens in (theme.LIGHT, theme.DARK)
    )
    return f":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n@media print{{:root{{{light}}}}}\n"


def _part(name: str) -> str:
    return files("ironbench.report").joinpath(name).read_text(encoding="utf-8")
