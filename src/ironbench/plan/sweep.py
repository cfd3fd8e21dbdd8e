"""The plan of `ironbench run`: one system, a list of client counts, repeats in random order."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Sequence

from ironbench import ranges
from ironbench.errors import InputError
from ironbench.model.plan import Plan
from ironbench.model.search import Search
from ironbench.model.system import Cell, Choice, Load, System, Trial
from ironbench.plan.searching import load_at

CONFIRMATIONS = 3
"""Fresh trials of the peak. Choosing the best of several noisy points favours the luckiest one, so the chosen trial
must not be the reported one; three is the least that shows a spread."""


def new_series() -> str:
    """A name that sorts by time and does not clash: `20261121T013000-3fa9`."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def sweep(
    system: System, choice: Choice, load: Load, clients: Sequence[int], threads: int | None, repeats: int, observe: bool
) -> Plan:
    """Every client count once per block, each block in its own random order so that drift favours none of them."""
    validate(load)
    cells = [Cell(f"clients={n}", _with_clients(load, n, threads)) for n in clients]
    order = random.Random(load.seed)
    trials: list[Trial] = []
    for block in range(repeats):
        trials += [Trial(cell, block) for cell in order.sample(cells, len(cells))]
    confirmations = CONFIRMATIONS if len(cells) > 1 and load.rate is None else 0  # a rate is kept or not: no peak
    return Plan(new_series(), system, choice, tuple(trials), confirmations, observe)


def searching(system: System, choice: Choice, load: Load, search: Search, threads: int, observe: bool) -> Plan:
    """A search for the best load: its range as trials, from which it takes what it needs."""
    ends = [load_at(search, load, threads, point) for point in (search.low, search.high)]
    for end in ends:
        validate(end)
    trials = tuple(
        Trial(Cell(f"{search.of}={point}", end), 0) for point, end in zip((search.low, search.high), ends, strict=True)
    )
    return Plan(new_series(), system, choice, trials, CONFIRMATIONS, observe, search)


def validate(load: Load) -> None:
    if load.duration_s is not None and load.transactions is not None:
        raise InputError("--transactions", "given together with --duration", "choose one of them")
    for quantity, value in (
        ("duration", load.duration_s),
        ("transactions", load.transactions),
        ("rate", load.rate),
        ("max_tries", load.max_tries),
    ):
        if value is not None:
            ranges.RANGES[quantity].require(f"--{quantity.replace('_', '-')}", value)
    if load.rate is not None or load.rate_share is not None:
        if load.think_time_s:
            raise InputError(
                "--think-time", "given together with --rate", "a rate already says when transactions start"
            )
        if load.duration_s is None:
            raise InputError("--rate", "given together with --transactions", "give an open loop a --duration")
    if load.max_tries == 0 and load.duration_s is None and load.transactions is not None:
        cause = "0 is without limit, and with --transactions nothing else ends a transaction that always fails"
        raise InputError("--max-tries", cause, "give a number of tries, or --duration in place of --transactions")


def _with_clients(load: Load, clients: int, threads: int | None) -> Load:
    from dataclasses import replace

    return replace(load, clients=clients, threads=min(threads or 1, clients))
