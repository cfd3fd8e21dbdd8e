"""Rankings: of published results, and of the results in a directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ironbench import workloads
from ironbench.catalogue import prices, published
from ironbench.catalogue.prices import Sheet
from ironbench.errors import InputError, nearest
from ironbench.model.note import note
from ironbench.records import Store
from ironbench.report import wording
from ironbench.study import leaderboard as analysis
from ironbench.study.leaderboard import Ranking


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
