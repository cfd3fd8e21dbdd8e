"""The page of `ironbench leaderboard`: a ranking of published results, or of the user's own results in a directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ironbench import workloads
from ironbench.catalogue import prices, published
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError, nearest
from ironbench.model.cost import CostRange
from ironbench.model.note import note
from ironbench.records import Store
from ironbench.report import wording
from ironbench.report.as_json import plain_value
from ironbench.report.cell import ABSENT, CONFIDENCE, Content, Missing, TableCell, count
from ironbench.report.charts.base import Table
from ironbench.report.page import Answer, AnswerPoint, Page, Section
from ironbench.report.wording.answers import cost_answer
from ironbench.report.wording.values import CI
from ironbench.study import leaderboard as analysis
from ironbench.study.leaderboard import RankedResult, Ranking
from ironbench.words import counted, some

NOT_COMPARABLE = (
    "Results of ironbench are ranked separately, because they come from derived workloads, are not audited, and "
    "are not comparable with published TPC results."
)
_MEANS = (
    "The score of a system with several trials is the geometric mean of its runs, as in `ironbench compare` and "
    "`ironbench cost`. `ironbench report` shows the median of the trials."
)
_TIED = f"A rank such as 1 to 3 means a tie: the {CI}s of the tied systems overlap."


def page(rankings: Sequence[Ranking]) -> Page:
    """Returns the page, with a section for each ranking. The user's own results and published results are never in the
    same ranking."""
    points = [AnswerPoint(_first(one), f"{one.title}:") for one in rankings]
    own = [not _published(one) for one in rankings]
    return Page(
        title="Leaderboard",
        lead=counted(len(rankings), "ranking"),
        answer=Answer(points[0], tuple(points[1:])),
        sections=tuple(
            Section(
                f"ranking{place}",
                f"{one.title}, by {ordered_by(one.sort)}",
                tables=(("", table(one)),),
                sentences=_notes(one),
            )
            for place, one in enumerate(rankings)
        ),
        caveats=(NOT_COMPARABLE,) if any(own) and not all(own) else (),
        fields=partial(_fields, rankings),
    )


def _first(ranking: Ranking) -> str:
    """Names the first system of a ranking, or all systems that are tied for first place."""
    if ranking.sort == "system":
        return f"{counted(len(ranking.places), 'result')} in alphabetical order."
    first = [place.system for place in ranking.places if place.rank == 1]
    if len(first) == 1:
        return f"{first[0]} is first by {ordered_by(ranking.sort)}."
    return f"{some(first)} are tied for first by {ordered_by(ranking.sort)}."


def _notes(ranking: Ranking) -> tuple[str, ...]:
    places = ranking.places
    return (
        *([f"Source: {ranking.source}."] if _published(ranking) else []),
        *([ranking.derived] if ranking.derived else []),
        *(f"Left out: {text}." for text in wording.texts(ranking.left_out)),
        *([_MEANS] if any(place.trials > 1 for place in places) else []),
        *([_TIED] if any(place.rank != place.worst_rank for place in places) else []),
        *([cost_answer.one_run()] if any(place.runs == 1 for place in places) else []),
        *([cost_answer.estimates()] if any(place.estimate for place in places) else []),
        *(f"{place.system}: {caveat}" for place in places for caveat in wording.texts(place.caveats)),
    )


def _fields(rankings: Sequence[Ranking]) -> dict[str, Any]:
    places = [[{**plain_value(place), "other": others(place)} for place in one.places] for one in rankings]
    return {
        "schema": 1,
        "rankings": [
            {**plain_value(one), "places": own, "published": _published(one)}
            for one, own in zip(rankings, places, strict=True)
        ],
    }


def _published(ranking: Ranking) -> bool:
    return ranking.source != "records"


def table(ranking: Ranking) -> Table:
    """Returns a row for each result. A narrow terminal leaves out the sockets and the processor first."""
    places = ranking.places
    columns: list[tuple[str, int, Sequence[Content]]] = [
        ("rank", 0, [_rank(place) for place in places]),
        (ranking.score, 0, _figures(places, [place.score for place in places])),
        ("per core", 0, _figures(places, [place.per_core for place in places])),
        ("per socket", 1, _figures(places, [place.per_socket for place in places])),
    ]
    if ranking.currency:
        priced = _figures(places, [place.per_currency for place in places], estimates=True)
        columns.append((f"score per 1,000 {ranking.currency} of licence costs", 0, priced))
    columns += [
        ("system", 0, [place.system for place in places]),
        ("processor", 2, [place.processor for place in places]),
        ("cores", 0, [count(place.cores) if place.cores else ABSENT for place in places]),
        ("sockets", 3, [count(place.sockets) if place.sockets else ABSENT for place in places]),
    ]
    every = [others(place) for place in places]
    for rank, name in enumerate(dict.fromkeys(name for one in every for name in one), 4):
        title = _TITLES.get(name, name.replace("_", " "))
        columns.append((title, rank, _other([one.get(name, ABSENT) for one in every])))
    heads, ranks, cells = zip(*columns, strict=True)
    return Table(heads, tuple(zip(*cells, strict=True)), ranks=ranks)


_TITLES = {"memory_gb": "memory (GB)"}


def _other(values: Sequence[str | float | Missing]) -> list[Content]:
    """Returns the cells of an additional column. All numbers of a column have the same number of decimals."""
    whole = all(value.is_integer() for value in values if isinstance(value, float))
    unit = "count" if whole else "hundredths"
    return [TableCell(value, unit) if isinstance(value, float) else value for value in values]


def ordered_by(sort: str) -> str:
    """Describes the sort order in words."""
    return _ORDERS.get(sort, sort)


_ORDERS = {"core": "score per core", "socket": "score per socket", "currency": "score per unit of licence cost"}


def others(place: RankedResult) -> dict[str, str | float]:
    """Returns the additional columns of a result. For a published result, they come from the published list. For the
    user's own result, they state how it was measured."""
    if place.basis is None:
        return dict(place.other)
    found: dict[str, str | float] = {} if place.clients is None else {"clients": float(place.clients)}
    found |= {"based on": wording.text(place.basis)}
    if place.failed is not None:
        found["failed transactions"] = f"{100 * place.failed:.3g}%" if place.failed else "0"
    if place.pinned_to:
        found["pinned to"] = f"CPU {','.join(map(str, place.pinned_to))}"
    if place.emulated:
        found["devices"] = "emulated"
    return found


def _rank(place: RankedResult) -> TableCell:
    """Formats a rank, such as `3`. The rank of tied results is a range, such as `1 to 3`."""
    return (
        count(place.rank) if place.rank == place.worst_rank else TableCell(None, "count", place.rank, place.worst_rank)
    )


def _figures(
    places: Sequence[RankedResult], values: Sequence[float | None], estimates: bool = False
) -> tuple[TableCell | Missing, ...]:
    """Returns a cell for each value. Values that ironbench measured have a confidence interval. `estimates`: whether to
    mark values that depend on estimated prices."""
    return tuple(
        _figure(value, place.range(value), estimates and place.estimate)
        for place, value in zip(places, values, strict=True)
    )


def _figure(value: float | None, range: CostRange | None, estimate: bool) -> TableCell | Missing:
    if value is None:
        return ABSENT
    if range is None or range.low == range.high:
        return TableCell(value, "hundredths", estimate=estimate)
    if not range.bounded:
        return TableCell(value, "hundredths", estimate=estimate, note="one trial")
    return TableCell(value, "hundredths", range.low, range.high, CONFIDENCE, estimate=estimate)


def rankings(name: str, per: str, sort: str, licence: str, sheets: Sequence[str], results: str) -> list[Ranking]:
    """Returns the rankings that the options of `ironbench leaderboard` request. Raises an InputError that names the
    invalid option."""
    if name and name not in published.names() and workloads.find(name) is None:
        known = [*published.names(), *workloads.names()]
        raise InputError(
            f"leaderboard {name}", "is neither a published list of results nor a workload", nearest(name, known)
        )
    if per and per not in analysis.PER:
        raise InputError(f"--per {per}", "is unknown", nearest(per, list(analysis.PER)))
    if per and sort not in ("", per):
        cause = f"cannot be combined with --per {per}, which also sets the order"
        raise InputError(f"--sort {sort}", cause, "remove one of the two")
    if "currency" in (per, sort) and not licence:
        raise InputError(
            "--per currency" if per == "currency" else "--sort currency",
            "no price",
            "choose a price with `--licence`, for example `--licence sql-server-2014-enterprise`",
        )
    only = workloads.find(name) if name not in published.names() else None
    if only and not only.scores:
        raise InputError(f"leaderboard {name}", "this workload has no score to rank by", "use `ironbench report`")
    order = analysis.checked_sort(sort or per or "score")
    sheet = prices.with_sheets([Path(path) for path in sheets])
    if licence:
        sheet.licence(licence)
    boards = [published.get(one) for one in published.names() if name in ("", one)]
    ranked = [analysis.published(board, order, sheet, licence) for board in boards]
    ranked += _own_rankings(
        list(dict.fromkeys([board.own for board in boards] or [name])), results, order, sheet, licence
    )
    if not ranked:
        store = Store(Path(results))
        rows = [row for row in store.listed() if row.workload == name]
        along_curves = analysis.steady(store.records(analysis.peaks(rows)))[1]
        if why := {**analysis.without_peak(rows), **along_curves}:
            cause = "; ".join(f"{label}: {wording.text(one)}" for label, one in why.items())
            open_loop = any(row.rate is not None for row in rows)
            hint = (
                "run the workload in a closed loop, without --rate"
                if open_loop
                else "fix the cause, and repeat the run"
            )
            hint = "run the workload with a constant number of clients" if along_curves else hint
            raise InputError(f"leaderboard {name}", f"there is nothing to rank ({cause})", hint)
        raise InputError(
            f"leaderboard {name}",
            f"{results} contains no records of this workload",
            "create records with `ironbench run`",
        )
    return ranked


def _own_rankings(names: Sequence[str], results: str, order: str, sheet: Sheet, licence: str) -> list[Ranking]:
    """Ranks the user's own results. The index of records is sufficient to find the peaks, so only trials at the peaks
    are read."""
    store = Store(Path(results))
    rows = [row for row in store.listed() if row.workload in names]
    records = store.records(analysis.peaks(rows))
    own_rankings: list[Ranking] = []
    for workload in names:
        did, along_curves = analysis.steady([record for record in records if record.choice.workload == workload])
        left_out = analysis.without_peak([row for row in rows if row.workload == workload])
        reasons = tuple(
            note("of-subjects", subjects=label, note=why) for label, why in {**left_out, **along_curves}.items()
        )
        ranked = analysis.rankings_of_records(did, store, order, sheet, licence)
        own_rankings += [*ranked[:-1], *(replace(last, left_out=reasons) for last in ranked[-1:])]
    return own_rankings
