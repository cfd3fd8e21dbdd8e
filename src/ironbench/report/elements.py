"""Parts of an HTML page: frame, sections, charts with their figures, tables. All text is escaped here."""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from ironbench.host import place
from ironbench.report import plain, theme
from ironbench.report.charts.base import Chart, Key, Table
from ironbench.report.section import Answer, Point, Section
from ironbench.words import clean, clean_document, clean_lines

_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
NO_SCRIPT = (
    "<noscript><p class='lead'>Charts are drawn by a script inside this file, which this viewer does not run. "
    "Open the file in a browser, or open the figures under each chart.</p></noscript>"
)
_FOLDED = 12
"""Tables of facts with more rows start folded."""
_FOLDED_UNNAMED = 40
"""The same for a section's only table, which its reader came for."""
_LONGEST_WORD = 16
"""Characters that a cell's line always has room for."""
_LETTER, _PADDING = 0.5, 0.95
"""Mean width of a character and a cell's space to the next, in rem of tables' type."""
_STEPS = (16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64)
"""Widths in rem of a table's place below which its rows are stacked: a step for tables of each width."""
MARKS = {
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
    "dots": '<circle cx="3" cy="8" r="2.2"/><circle cx="8" cy="8" r="2.2"/><circle cx="13" cy="8" r="2.2"/>',
    "tick": '<rect x="6.7" y="0" width="2.6" height="16"/>',
    "ring": '<circle cx="8" cy="8" r="6.5" stroke-dasharray="3 3"/>',
}

_END_OF_LIBRARIES = "\n/* end of bundle */\n"


def page(title: str, bodies: Iterable[str], charts: Mapping[str, Chart]) -> bytes:
    """The whole page, UTF-8. What came from a user must be escaped in `bodies`; `charts` by the id of their place."""
    text = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="generator" content="ironbench">
<title>{escape(clean(title))}</title>
<style>
{style()}</style>
</head>
<body>
{"".join(map(clean_lines, bodies))}
<footer>Made by ironbench. This page holds all its data and works without a network.</footer>
{data_of(charts)}
<script type="module">
{libraries()}
{part("page.js")}</script>
</body>
</html>
"""
    return text.encode()


def data_of(charts: Mapping[str, Chart | dict[str, Any]]) -> str:
    """What `page.js` draws: colours and charts, as elements that no browser runs."""
    themes = {"light": theme.LIGHT, "dark": theme.DARK}
    specifications = {id: specification(one) if isinstance(one, Chart) else one for id, one in charts.items()}
    return (
        f'<script type="application/json" id="themes">{_embedded(themes)}</script>\n'
        f'<script type="application/json" id="charts">{_embedded(specifications)}</script>'
    )


def specification(chart: Chart) -> dict[str, Any]:
    """As a page embeds it, without words on its marks: its place bears those of the chart, its figures stand below."""
    config = {**chart.specification["config"], "aria": False}
    found: dict[str, Any] = clean_document({"description": chart.alt, **chart.specification, "config": config})
    return found


def style() -> str:
    return f"{_colours()}{part('page.css')}{_stacking()}"


def answer(content: Answer) -> str:
    points = "".join(f"<li>{_point(point)}</li>" for point in content.points)
    limit = f'<p class="limit">{escape(content.limit)}</p>' if content.limit else ""
    doubts = "".join(f'<p class="doubt">{escape(text)}</p>' for text in content.doubts)
    listed = f"<ul>{points}</ul>" if points else ""
    return f'<div class="headline"><p class="decision">{_point(content.decision)}</p>{listed}{limit}{doubts}</div>'


def _point(point: Point) -> str:
    name = f"<strong>{escape(point.name)}</strong> " if point.name else ""
    doubt = f' <span class="doubt">{escape(point.doubt)}</span>' if point.doubt else ""
    return f"{name}{escape(point.text)}{doubt}"


def section(content: Section, prefix: str, charts: dict[str, Chart]) -> str:
    """Its charts enter `charts` under the ids of their places, which begin with `prefix`."""
    parts = [f'<section id="{prefix}-{content.id}"><h2>{escape(content.title)}</h2>']
    parts += [f'<p class="lead">{escape(text)}</p>' for text in content.paragraphs]
    if content.charts:
        parts.append(f'<div class="charts">{"".join(figure(chart, prefix, charts) for chart in content.charts)}</div>')
    parts += [table_block(name, table) for name, table in content.tables]
    parts += [_text(name, text) for name, text in content.texts]
    return "".join(parts) + "</section>"


def _text(name: str, text: str) -> str:
    opened = " open" if text.count("\n") <= _FOLDED_UNNAMED else ""
    shown = escape(plain.clean_lines(text).rstrip())
    return f"<details{opened}><summary>{escape(name)}</summary><pre>{shown}</pre></details>"


def figure(chart: Chart, prefix: str, charts: dict[str, Chart]) -> str:
    """It enters `charts` under the id of its place."""
    id = f"{prefix}-chart-{chart.id}"
    charts[id] = chart
    wide = ' class="wide"' if chart.wide else ""
    note = f'<div class="note">{escape(chart.note)}</div>' if chart.note else ""
    return (
        f"<figure{wide}><figcaption>{escape(chart.title)} <span>{escape(chart.unit)}</span></figcaption>{note}"
        f"{_legend(chart.legend)}"
        f'<div class="chart" id="{id}" role="img" aria-label="{escape(chart.alt)}"></div>'
        f"<details><summary>Figures</summary>{table(chart.table, numbers=True)}</details></figure>"
    )


def _legend(keys: Sequence[Key]) -> str:
    entries = "".join(
        f'<li><svg viewBox="0 0 16 16" style="--c: var(--{key.colour})" class="{key.mark}" aria-hidden="true">'
        f"{MARKS[key.mark]}</svg>{escape(key.label)}</li>"
        for key in keys
    )
    return f'<ul class="legend">{entries}</ul>' if entries else ""


def table_block(name: str, content: Table) -> str:
    heading = f"<h3>{escape(name)}</h3>" if name else ""
    if len(content.rows) <= (_FOLDED if name else _FOLDED_UNNAMED):
        return heading + table(content)
    summary = f"{name}: {len(content.rows)} facts" if name else f"{len(content.rows)} facts"
    return f"<details><summary>{escape(summary)}</summary>{table(content)}</details>"


def _cell(text: str, head: str) -> str:
    """One word is never broken; long paths are, wherever that is needed. `head`: shown where rows are stacked."""
    kind = ""
    if all(len(word) <= _LONGEST_WORD for word in text.split(" ")):
        kind = ' class="words"' if " " in text else ' class="word"'
    return f"<td{kind}{_labelled(head)}>{escape(text)}</td>"


def _labelled(head: str) -> str:
    return f' data-head="{escape(head)}"' if head else ""


def table(content: Table, numbers: bool = False) -> str:
    """Rows become stacks of `head value` where the place is too narrow for columns, so that nothing is ever cut."""
    figures = numbers or content.numbers
    head = "".join(f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in content.head)
    rows = "".join(
        f'<tr><th scope="row"{_labelled(content.head[0])}>{escape(row[0])}</th>'
        f"{''.join(_cell(cell, name) for cell, name in zip(row[1:], content.head[1:], strict=True))}</tr>"
        for row in content.texts
    )
    needed = _width(content, figures)
    step = next((step for step in _STEPS if step >= needed), _STEPS[-1])
    kinds = [*(["numbers"] if figures else []), *(["wrap"] if needed > _STEPS[-1] else []), f"below{step}"]
    return (
        f'<div class="scroll"><table class="{" ".join(kinds)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _width(content: Table, figures: bool) -> float:
    """About what its columns need, in rem: of figures the whole cell, of words the longest that is not broken."""
    columns = zip(content.head, *content.texts, strict=True)
    return sum(_needed(place, column, figures) * _LETTER + _PADDING for place, column in enumerate(columns))


def _needed(place: int, column: Sequence[str], figures: bool) -> int:
    cells = column[1:] if place and figures else [word for cell in column[1:] for word in cell.split(" ")]
    return max((len(text) for text in (*column[0].split(" "), *cells)), default=0)


def _stacking() -> str:
    """For tables of each step: below it, a row is a stack."""
    rules = (
        "thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}",
        "tbody{display:block}",
        "tr{display:block;padding:.45rem 0;border-bottom:1px solid var(--line)}",
        "tbody th{display:block;border:0;padding:0 0 .1rem;font-weight:600;overflow-wrap:anywhere}",
        "tbody th[data-head]::before{content:attr(data-head) ' ';color:var(--muted);font-weight:400}",
        "td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem 0;text-align:right;"
        "white-space:normal;overflow-wrap:anywhere}",
        "td:empty{display:none}",
        "td[data-head]::before{flex:none;max-width:50%;content:attr(data-head);color:var(--muted);text-align:left;overflow-wrap:anywhere}",
    )
    blocks = []
    for step in _STEPS:
        inside = "".join(f"table.below{step} {rule}" for rule in rules)
        blocks.append(
            f"@container (max-width:{step}rem){{table.below{step}{{display:block;width:100%;min-width:0}}{inside}}}\n"
        )
    return "".join(blocks)


def cautions(rows: Sequence[str]) -> str:
    if not rows:
        return ""
    return f'<aside class="cautions"><h2>Before you use these numbers</h2><ul>{items(rows)}</ul></aside>'


def items(rows: Iterable[str]) -> str:
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


def part(name: str) -> str:
    """A style or script of every page."""
    return files("ironbench.report").joinpath(name).read_text(encoding="utf-8")


def libraries() -> str:
    """Vega, Vega-Lite and vega-embed of the installed vl-convert as one script. It is kept between reports, since
    bundling takes seconds, and made afresh when it cannot be kept."""
    kept = place.cache() / f"vega-{importlib.metadata.version('vl-convert-python')}.js"
    try:
        text = kept.read_text(encoding="utf-8")
        if text.endswith(_END_OF_LIBRARIES):
            return text
    except OSError:
        pass
    import vl_convert

    # The stub asks for a snippet; without one the bundle sets window.vegaEmbed itself (vl-convert-python, README).
    # A closing tag inside a string of the libraries would end the page's script element.
    bundled: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = bundled.replace("</script", "<\\/script") + _END_OF_LIBRARIES
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside = kept.with_suffix(f".{os.getpid()}.tmp")
        aside.write_text(text, encoding="utf-8")
        aside.rename(kept)
    except OSError:
        pass
    return text
