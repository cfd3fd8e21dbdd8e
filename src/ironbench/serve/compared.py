"""The page of two held against each other: where their difference comes from, and every metric side by side."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.serve.page import page, report_page
from ironbench.serve.shelf import Shelf, is_name
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.records.selection import NamedRecords

MOST_TRIALS = 2_000
"""Of one side. A page of more would take a browser minutes."""
_OFFERED = 200
"""Names that a field offers."""


def compared(shelf: Shelf, picks: Sequence[str], different_work: bool) -> HTMLResponse:
    """`picks`: as `named` takes them; none: a form to name two. InputError."""
    from ironbench.report.comparison import compare_named
    from ironbench.report.comparison import page as comparison
    from ironbench.report.explain import page as page_of

    if not picks:
        return page("compare.html", "Compare", at="/compare", report=None, offered=_offered(shelf), picks=("", ""))
    if len(picks) != 2:
        raise InputError("comparison", f"{counted(len(picks), 'side')} were named", "tick two records or name two")
    found = compare_named(named(shelf, picks[0]), named(shelf, picks[1]), different_work)
    return report_page(
        "compare.html",
        page_of(found),
        "compare",
        at="/compare",
        sides=[_open(shelf, pick) for pick in picks],
        picks=picks,
        different_work="1" * different_work,
        metrics=comparison(found.found, pairs=found.pairs),
        offered=_offered(shelf),
    )


def named(shelf: Shelf, pick: str) -> NamedRecords:
    """A record, series or label of runs; `LAB/NAME` a record, cell or level of a lab. InputError: any other path."""
    from ironbench.records.selection import NamedRecords, named_in

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
    return NamedRecords(pick, found, store)


def _offered(shelf: Shelf) -> list[str]:
    """Names that a field offers: labels, and cells of labs."""
    holdings = shelf.holdings()
    cells = dict.fromkeys(f"{lab}/{row.cell}" for lab, row in itertools.islice(holdings.rows, 20 * _OFFERED) if lab)
    return [*itertools.islice(holdings.labels, _OFFERED), *itertools.islice(cells, _OFFERED)]


def _open(shelf: Shelf, pick: str) -> tuple[str, str, dict[str, str]]:
    """The path, the words and the query of a link to what a side stands for."""
    lab, slash, inner = pick.partition("/")
    if slash and is_name(lab) and lab in shelf.labs():
        return f"/lab/{lab}/record/{inner}" if inner in shelf.rows(lab) else f"/lab/{lab}", inner, {}
    if pick in shelf.rows():
        return f"/record/{pick}", pick, {}
    if pick in shelf.holdings().series:
        return f"/series/{pick}", pick, {}
    return "/label", pick, {"name": pick}
