"""Rankings of published results and of the results in a directory, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from ironbench import workloads
from ironbench.catalogue import prices, published
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError, nearest
from ironbench.model.cost import CostRange
from ironbench.model.note import note
from ironbench.records import Store
from ironbench.report import wording
from ironbench.report.as_json import plain_value
from ironbench.report.cell import ABSENT, CONFIDENCE, Missing, TableCell, count
from ironbench.report.cost import ESTIMATE_NOTE, ONE_RUN
from ironbench.report.plain import Column, fitted
from ironbench.study import leaderboard as analysis
from ironbench.study.leaderboard import RankedResult, Ranking

_NONE = "–"
NOT_COMPARABLE = (
    "Results of ironbench are derived from these benchmarks, not audited, and not comparable with published TPC "
    "results: they are ranked separately."
)
_TIED = "Ranks such as 1 to 3 are tied: their 95% intervals overlap."


def text(rankings: Sequence[Ranking], width: int | None) -> str:
    """A table for each; a line separates the user's results from published ones, and says why."""
    parts = [_ranking(one, width) for one in rankings]
    if any(_published(one) for one in rankings) and not all(_published(one) for one in rankings):
        parts.insert(next(place for place, one in enumerate(rankings) if not _published(one)), NOT_COMPARABLE)
    return "\n\n".join(parts)


def document(rankings: Sequence[Ranking]) -> str:
    """The same as one JSON document."""
    fields = [
        {
            **plain_value(one),
            "places": [{**plain_value(place), "other": others(place)} for place in one.places],
            "published": _published(one),
        }
        for one in rankings
    ]
    return msgspec.json.format(msgspec.json.encode({"schema": 1, "rankings": fields}), indent=2).decode()


def _published(ranking: Ranking) -> bool:
    return ranking.source != "records"


def columns(ranking: Ranking) -> list[Column]:
    """Of its table, in order."""
    places = ranking.places
    found = [
        Column("", tuple(map(_rank, places)), right=True),
        Column(ranking.score, _figures(places, [place.score for place in places]), right=True),
        Column("per core", _figures(places, [place.per_core for place in places]), right=True),
        Column("per socket", _figures(places, [place.per_socket for place in places]), right=True, rank=1),
    ]
    if ranking.currency:
        priced = _figures(places, [place.per_currency for place in places], estimates=True)
        found.append(Column(f"per 1000 {ranking.currency} of licences", priced, right=True))
    found += [
        Column("system", tuple(place.system for place in places)),
        Column("processor", tuple(place.processor for place in places), rank=2),
        Column("cores", tuple(count(place.cores) if place.cores else ABSENT for place in places), right=True),
        Column(
            "sockets", tuple(count(place.sockets) if place.sockets else ABSENT for place in places), right=True, rank=3
        ),
        *_others(places),
    ]
    return found


def _ranking(ranking: Ranking, width: int | None) -> str:
    places = ranking.places
    lines = [ranking.title + f", by {ordered_by(ranking.sort)}", fitted(columns(ranking), width)[0]]
    lines += [f"Source: {ranking.source}."] if _published(ranking) else []
    lines += [ranking.derived] if ranking.derived else []
    lines += [f"Left out: {text}." for text in wording.texts(ranking.left_out)]
    lines += [_TIED] if any(place.rank != place.worst_rank for place in places) else []
    lines += [ONE_RUN] if any(place.runs == 1 for place in places) else []
    lines += [ESTIMATE_NOTE] if any(place.estimate for place in places) else []
    lines += [f"{place.system}: {caution}" for place in places for caution in wording.texts(place.cautions)]
    return "\n".join(lines)


def ordered_by(sort: str) -> str:
    """In words."""
    return _ORDERS.get(sort, sort)


_ORDERS = {"core": "score per core", "socket": "score per socket", "currency": "score per unit of licence money"}


def _others(places: Sequence[RankedResult]) -> list[Column]:
    every = [others(place) for place in places]
    names = list(dict.fromkeys(name for one in every for name in one))
    return [
        Column(name.replace("_", " "), tuple(one.get(name, _NONE) for one in every), rank=4 + rank)
        for rank, name in enumerate(names)
    ]


def others(place: RankedResult) -> dict[str, str]:
    """Further columns: of a published result those of its list, of our own how it was measured."""
    if place.basis is None:
        return dict(place.other)
    found = {"clients": str(place.clients), "rests on": wording.text(place.basis)}
    if place.failed is not None:
        found["failed transactions"] = f"{100 * place.failed:.3g} %" if place.failed else "0"
    if place.pinned_to:
        found["pinned to"] = f"CPU {','.join(map(str, place.pinned_to))}"
    if place.emulated:
        found["devices"] = "emulated"
    return found


def _rank(place: RankedResult) -> str:
    return str(place.rank) if place.rank == place.worst_rank else f"{place.rank} to {place.worst_rank}"


def _figures(
    places: Sequence[RankedResult], values: Sequence[float | None], estimates: bool = False
) -> tuple[TableCell | Missing, ...]:
    """Each with its interval, where it was measured here. `estimates`: whether those of estimated prices are marked."""
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
    """InputError names the option at fault."""
    if name and name not in published.names() and workloads.find(name) is None:
        known = [*published.names(), *workloads.names()]
        raise InputError(f"leaderboard {name}", "is no published list and no workload", nearest(name, known))
    if per and per not in analysis.PER:
        raise InputError(f"--per {per}", "is unknown", nearest(per, list(analysis.PER)))
    if per and sort not in ("", per):
        cause = f"given together with --per {per}, which says the order, too"
        raise InputError(f"--sort {sort}", cause, "keep one of them")
    if "currency" in (per, sort) and not licence:
        raise InputError(
            "--per currency" if per == "currency" else "--sort currency",
            "nothing says what a system costs",
            "name a price with --licence, e.g. --licence sql-server-2014-enterprise",
        )
    only = workloads.find(name) if name not in published.names() else None
    if only and not only.scores:
        raise InputError(f"leaderboard {name}", "no one number tells which is best", "use `ironbench report` instead")
    order = analysis.checked_sort(sort or per or "score")
    sheet = prices.with_sheets([Path(path) for path in sheets])
    if licence:
        sheet.licence(licence)
    boards = [published.get(one) for one in published.names() if name in ("", one)]
    ranked = [analysis.published(board, order, sheet, licence) for board in boards]
    ranked += _own(list(dict.fromkeys([board.own for board in boards] or [name])), results, order, sheet, licence)
    if not ranked:
        store = Store(Path(results))
        rows = [row for row in store.listed() if row.workload == name]
        along_curves = analysis.steady(store.records(analysis.peaks(rows)))[1]
        if why := {**analysis.without_peak(rows), **along_curves}:
            cause = "; ".join(f"{label}: {wording.text(one)}" for label, one in why.items())
            open_loop = any(row.rate is not None for row in rows)
            hint = "run it in a closed loop, without --rate" if open_loop else "remove the cause, and run it again"
            hint = "run it with one number of clients" if along_curves else hint
            raise InputError(f"leaderboard {name}", f"nothing to rank ({cause})", hint)
        raise InputError(
            f"leaderboard {name}", f"there are no records of it in {results}", "make some with `ironbench run`"
        )
    return ranked


def _own(names: Sequence[str], results: str, order: str, sheet: Sheet, licence: str) -> list[Ranking]:
    """Of the trials only those are opened that a peak rests on: the index tells which."""
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
        ranked = analysis.own(did, store, order, sheet, licence)
        own_rankings += [*ranked[:-1], *(replace(last, left_out=reasons) for last in ranked[-1:])]
    return own_rankings
