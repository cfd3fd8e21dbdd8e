"""The comparison page: the causes of the difference between two sides, and every metric of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse

from ironbench.errors import InputError
from ironbench.serve.page import page, report_page
from ironbench.serve.results import Results, is_name
from ironbench.words import counted

if TYPE_CHECKING:
    from ironbench.records.selection import NamedRecords

MOST_TRIALS = 2_000
"""Maximum number of trials on one side. With more trials, a browser would take minutes to show the page."""
_OFFERED = 200
"""Maximum number of names that an input field suggests."""


def compared(results: Results, picks: Sequence[str], different_work: bool) -> HTMLResponse:
    """Shows the comparison of two picks (see `named`). Without picks, shows a form with two input fields. Raises
    InputError if there are not exactly two picks, or if they cannot be compared."""
    from ironbench.report.compare_page import compare_named
    from ironbench.report.compare_page import page as comparison
    from ironbench.report.explain_page import page as page_of

    if not picks:
        return page("compare.html", "Compare", at="/compare", report=None, offered=_offered(results), picks=("", ""))
    if len(picks) != 2:
        cause = f"needs two sides, but {len(picks)} {'is' if len(picks) == 1 else 'are'} selected"
        raise InputError("comparison", cause, "select two records, or enter two names")
    found = compare_named(picked_records(results, picks[0]), picked_records(results, picks[1]), different_work)
    return report_page(
        "compare.html",
        page_of(found),
        "compare",
        at="/compare",
        sides=[_record_link(results, pick) for pick in picks],
        picks=picks,
        different_work="1" * different_work,
        metrics=comparison(found.found, pairs=found.pairs),
        offered=_offered(results),
    )


def picked_records(results: Results, pick: str) -> NamedRecords:
    """Returns the records that a pick selects. A pick is a record, series or label of runs, or `LAB/NAME` for a record,
    configuration or factor value of a lab. Raises InputError if there are no such records, or too many."""
    from ironbench.records.selection import NamedRecords, named_in

    lab, slash, inner = pick.partition("/")
    if is_name(lab) and (slash or not results.has(pick)) and lab in results.labs():
        if inner:
            return named_in(inner, results.lab(lab))
        cells = [setup.cell.name for setup in results.lab(lab).lab().measurable]
        raise InputError(
            pick, f"is a lab of {counted(len(cells), 'configuration')}", f"select one of them, e.g. {lab}/{cells[0]}"
        )
    store = results.runs
    ids = [pick] if results.has(pick) else [row.id for row in results.series(pick) or results.label(pick)]
    if len(ids) > MOST_TRIALS:
        raise InputError(pick, f"has more than {counted(MOST_TRIALS, 'trial')}", "select a series or a record")
    found = store.records(reversed(ids))
    if not found:
        raise InputError(pick, "does not exist in these results, or cannot be read", "search the archive")
    return NamedRecords(pick, found, store)


def _offered(results: Results) -> list[str]:
    """Returns the most recent labels of runs and configurations of labs, as picks."""
    index, latest = results.index(), "order by max(started_at) desc limit ?"
    labels = index.query(f"select label from record where lab = '' group by label {latest}", _OFFERED)
    cells = index.query(f"select lab, cell from record where lab <> '' group by lab, cell {latest}", _OFFERED)
    return ["/".join(names) for names in (*labels, *cells)]


def _record_link(results: Results, pick: str) -> tuple[str, str, dict[str, str]]:
    """Returns a link to the records of one side of the comparison, as path, text and query."""
    lab, slash, inner = pick.partition("/")
    if slash and is_name(lab) and lab in results.labs():
        return f"/lab/{lab}/record/{inner}" if results.has(inner, lab) else f"/lab/{lab}", inner, {}
    if results.has(pick):
        return f"/record/{pick}", pick, {}
    if results.series(pick):
        return f"/series/{pick}", pick, {}
    return "/label", pick, {"name": pick}
