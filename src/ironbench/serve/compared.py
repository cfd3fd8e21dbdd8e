"""The page of two held against each other: where their difference comes from, and every metric side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.serve.page import link, option, page, simple
from ironbench.serve.shelf import Holdings, Shelf, is_name
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.model.lab import Lab
    from ironbench.report.charts.base import Chart
    from ironbench.views.selection import Named

MOST_TRIALS = 2_000
"""Of one side. A page of more would take a browser minutes."""
_OFFERED = 200
"""Names that a field offers."""


def compared(shelf: Shelf, picks: Sequence[str], different_work: bool) -> HTMLResponse:
    """`picks`: as `named` takes them; none: a form to name two. InputError."""
    from ironbench.report.comparison import text
    from ironbench.report.formats.html import page_body
    from ironbench.views.compare import held_against
    from ironbench.views.explain import page_of

    if not picks:
        return simple("Compare", form(shelf.holdings(), ("", "")), at="/compare")
    if len(picks) != 2:
        raise InputError("comparison", f"{counted(len(picks), 'side')} were named", "tick two records or name two")
    held = held_against(named(shelf, picks[0]), named(shelf, picks[1]), different_work)
    charts: dict[str, Chart] = {}
    explained = page_of(held)
    plain = escape(text(held.found, False, held.pairs))
    sides = " · ".join(_open(shelf, pick) for pick in picks)
    turned = link("/compare", "the other way round", a=picks[1], b=picks[0], different_work="1" * different_work)
    bodies = [
        f'<header class="top"><p class="lead">{link("/archive", "archive")} · {sides} · {turned}</p></header>',
        page_body(explained, "compare", charts),
        f'<main><section><h2>A against B</h2><pre class="plain" tabindex="0">{plain}</pre></section>'
        f"<section><h2>Compare others</h2>{form(shelf.holdings(), picks)}</section></main>",
    ]
    return page(explained.title, bodies, charts, at="/compare")


def named(shelf: Shelf, pick: str) -> Named:
    """A record, series or label of runs; `LAB/NAME` a record, cell or level of a lab. InputError: any other path."""
    from ironbench.views.selection import Named, named_in

    lab, slash, inner = pick.partition("/")
    if is_name(lab) and (slash or pick not in shelf.rows()) and lab in shelf.labs():
        if inner:
            return named_in(inner, shelf.lab(lab))
        cells = [setup.cell.name for setup in shelf.lab(lab).lab().possible]
        raise InputError(pick, f"stands for {counted(len(cells), 'cell')}", f"name one, e.g. {lab}/{cells[0]}")
    store, holdings = shelf.store(), shelf.holdings()
    if pick in shelf.rows():
        ids = [pick]
    else:
        ids = [row.id for row in holdings.series.get(pick, ()) or holdings.labels.get(pick, ())]
    if len(ids) > MOST_TRIALS:
        raise InputError(pick, f"has more than {counted(MOST_TRIALS, 'trial')}", "name a series, or a record")
    found = store.records(reversed(ids))
    if not found:
        raise InputError(pick, "is not among these results, or cannot be read", "search the archive")
    return Named(pick, found, store)


def form(holdings: Holdings, picks: Sequence[str]) -> str:
    """Two names to be held against each other."""
    cells = dict.fromkeys(f"{lab}/{row.cell}" for lab, row in itertools.islice(holdings.rows, 20 * _OFFERED) if lab)
    offered = [*itertools.islice(holdings.labels, _OFFERED), *itertools.islice(cells, _OFFERED)]
    names = "".join(f'<option value="{escape(name)}"></option>' for name in offered)
    sides = "".join(
        f'<label>{side.upper()}: label, series, or LAB/CELL<input name="{side}" value="{escape(pick)}" '
        f'list="names" required></label>'
        for side, pick in zip("ab", picks, strict=True)
    )
    return (
        f'<form action="/compare"><datalist id="names">{names}</datalist><div class="actions">{sides}{TICK}'
        '<button class="main">Compare two</button></div></form>'
    )


TICK = '<label class="tick"><input type="checkbox" name="different_work" value="1">although the work differs</label>'


def cells_form(name: str, lab: Lab) -> str:
    """Two cells of a lab; empty where it has one."""
    cells = [setup.cell.name for setup in lab.possible]
    if len(cells) < 2:
        return ""
    selects = "".join(
        f"<label>{side.upper()}<select name={side}>"
        + "".join(option(f"{name}/{cell}", place == chosen, cell) for place, cell in enumerate(cells))
        + "</select></label>"
        for chosen, side in enumerate("ab")
    )
    return (
        f'<h3>Where a difference comes from</h3><form action="/compare"><div class="actions">{selects}'
        "<button>Explain</button></div></form>"
    )


def _open(shelf: Shelf, pick: str) -> str:
    """A link to what a side stands for."""
    lab, slash, inner = pick.partition("/")
    if slash and is_name(lab) and lab in shelf.labs():
        there = f"/lab/{lab}/record/{inner}" if inner in shelf.rows(lab) else f"/lab/{lab}"
        return link(there, inner)
    if pick in shelf.rows():
        return link(f"/record/{pick}", pick)
    if pick in shelf.holdings().series:
        return link(f"/series/{pick}", pick)
    return link("/label", pick, name=pick)
