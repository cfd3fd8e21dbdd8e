"""What `leaderboard` was asked for, validated, and the rankings it shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ironbench import workloads
from ironbench.analyse import leaderboard
from ironbench.analyse.leaderboard import Ranking
from ironbench.catalogue import prices, published
from ironbench.errors import InputError, nearest
from ironbench.record import Store
from ironbench.record.index import Listed


def asked(name: str, per: str, sort: str, licence: str, sheets: Sequence[str], results: str) -> list[Ranking]:
    """InputError names the option at fault."""
    known = [*published.names(), *workloads.names()]
    if name and name not in known:
        raise InputError(f"leaderboard {name}", "is no published list and no workload", nearest(name, known))
    if per and per not in leaderboard.PER:
        raise InputError(f"--per {per}", "is unknown", nearest(per, list(leaderboard.PER)))
    if "currency" in (per, sort) and not licence:
        raise InputError(
            "--per currency",
            "nothing says what a system costs",
            "name a price with --licence, e.g. --licence sql-server-2014-enterprise",
        )
    order = leaderboard.checked_sort(sort or per or "score")
    sheet = prices.with_sheets([Path(path) for path in sheets])
    boards = [published.get(one) for one in published.names() if name in ("", one)]
    rankings = [leaderboard.published(board, order, sheet, licence) for board in boards]
    store = Store(Path(results))
    for workload in dict.fromkeys([board.own for board in boards] or [name]):
        records = store.matching((), partial(_did, workload))
        derived = workloads.get(workload).derived if workload in workloads.names() else ""
        rankings += leaderboard.own(records, store, order, sheet, licence, derived)
    if not rankings:
        raise InputError(
            f"leaderboard {name}", f"there are no records of it in {results}", "make some with `ironbench run`"
        )
    return rankings


def _did(workload: str, row: Listed) -> bool:
    return row.workload == workload
