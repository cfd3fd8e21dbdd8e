"""One self-contained page: everything inside, works without a network, prints, reads on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ironbench.report import elements
from ironbench.report.cell import shown
from ironbench.report.charts.base import Chart
from ironbench.report.document import Card, Command, Report, contents, overview, report
from ironbench.report.page import Page
from ironbench.study.study import Study


def render(studies: Sequence[Study]) -> bytes:
    """The whole page, UTF-8. What came from a user is escaped; nothing is fetched, and the page forbids itself to."""
    charts: dict[str, Chart] = {}
    reports = [report(study) for study in studies]
    bodies = [body(one, f"study{place}", charts) for place, one in enumerate(reports)]
    title = "; ".join(one.title for one in reports) or "ironbench report"
    return elements.page(title, [*_contents(reports), *bodies], charts)


def render_page(page: Page) -> bytes:
    charts: dict[str, Chart] = {}
    return elements.page(page.title, [page_body(page, "page", charts)], charts)


def _contents(reports: Sequence[Report]) -> list[str]:
    studies = [one.study for one in reports]
    table = overview(studies)
    if table is None:
        return []
    links = "".join(
        f'<li><a href="#study{place}">{escape(one.work)}</a>: {escape(one.title)}</li>'
        for place, one in enumerate(reports)
    )
    return [
        f'<header class="top"><h1>Contents</h1><p class="lead">{escape(contents(studies))}</p></header>'
        f'<main><nav><ol class="contents">{links}</ol></nav>{elements.table(table)}</main>'
    ]


def body(content: Report, prefix: str, charts: dict[str, Chart]) -> str:
    """One report; its charts enter `charts` under the ids of their places, which begin with `prefix`."""
    derived = f'<p class="lead"><strong>{escape(content.derived)}</strong></p>' if content.derived else ""
    few = " few" if content.study.lab else ""
    cards = "".join(map(_card, content.cards))
    parts = [
        f'<header class="top" id="{prefix}"><p class="kicker">{escape(" · ".join(content.kicker))}</p>',
        f'<h1>{escape(content.title)}</h1><p class="lead">{escape(content.work)}</p>{derived}</header>',
        f"<main>{elements.NO_SCRIPT}",
        elements.answer(content.answer),
        f'<ul class="cards{few}">{cards}</ul>' if cards else "",
        elements.cautions(content.cautions),
    ]
    parts += [elements.section(section, prefix, charts) for section in content.sections]
    parts.append(f"<section><h2>How to reproduce</h2>{''.join(map(_command, content.commands))}</section>")
    parts.append(f'<section><h2>Notes</h2><ol class="notes">{elements.items(content.notes)}</ol></section></main>')
    return "\n".join(parts)


def page_body(page: Page, prefix: str, charts: dict[str, Chart]) -> str:
    """The same of a page that is no report."""
    derived = f'<p class="lead"><strong>{escape(page.derived)}</strong></p>' if page.derived else ""
    parts = [
        f'<header class="top" id="{prefix}"><h1>{escape(page.title)}</h1><p class="lead">{escape(page.lead)}</p>'
        f"{derived}</header><main>{elements.NO_SCRIPT}",
        elements.answer(page.answer),
        elements.cautions(page.cautions),
        *(elements.section(part, prefix, charts) for part in page.shown),
    ]
    if page.notes:
        parts.append(f'<section><h2>Notes</h2><ol class="notes">{elements.items(page.notes)}</ol></section>')
    return "\n".join([*parts, "</main>"])


def _command(one: Command) -> str:
    if not one.source:
        return f"<h3>{escape(one.name)}</h3><pre>{escape(one.line)}</pre>"
    file = f"<code>{escape(one.file)}.toml</code>"
    return f"<p>Save this as {file} and run <code>{escape(one.line)}</code>.</p><pre>{escape(one.source)}</pre>"


def _card(card: Card) -> str:
    mark = f'<svg viewBox="0 0 16 16" aria-hidden="true">{elements.MARKS[card.mark]}</svg>'
    big = f"{escape(shown(card.figure))} <small>{escape(card.unit)}</small>"
    facts = "".join(f"<dt>{escape(label)}</dt><dd>{escape(shown(value))}</dd>" for label, value in card.facts)
    return (
        f'<li style="--c: var(--{card.colour})"><div class="name">{mark}{escape(card.name)}</div>'
        f'<div class="big">{big}</div><dl>{facts}</dl></li>'
    )
