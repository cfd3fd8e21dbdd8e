"""Plans the trials of `ironbench run`: repeats of one or more numbers of clients in random order, or the start of a
search for the best number of clients or rate (`--clients auto`, `--rate auto:LOW-HIGH`, `--limit`).
"""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from ironbench import catalogue, units
from ironbench.errors import InputError, quoted, written
from ironbench.fields.lab import range_of
from ironbench.fields.sections import LoadSection
from ironbench.model.lab import Lab
from ironbench.model.plan import Plan
from ironbench.model.search import ChosenLoad, Limit, Search
from ironbench.model.system import Cell, Choice, Load, Setup, System, Trial
from ironbench.ranges import Range

CONFIRMATIONS = 3
"""Number of confirmation trials at the peak. The best of several noisy points is too high on average, so the reported
throughput needs new trials. Three is the smallest number that shows variation."""


def new_series() -> str:
    """Returns a unique name that sorts by time: `20261121T013000-3fa9`."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(2)


def plan(system: System, choice: Choice, cells: Sequence[Cell], repeats: int = 1, search: Search | None = None) -> Plan:
    """Plans every configuration once per block, in random order, so that drift favours no configuration.

    For a search, `cells` are the two ends of the range, and the search adds other configurations as necessary.
    """
    if search is not None:
        ends = tuple(Trial(cell, 0) for cell in cells)
        return Plan(new_series(), system, choice, ends, CONFIRMATIONS, search=search)
    order = random.Random(cells[0].load.seed)
    trials: list[Trial] = []
    for block in range(repeats):
        trials += [Trial(cell, block) for cell in order.sample(cells, len(cells))]
    closed = cells[0].load.rate is None  # an open loop has no peak to confirm
    return Plan(new_series(), system, choice, tuple(trials), CONFIRMATIONS if len(cells) > 1 and closed else 0)


AUTO = "auto"
_LIMITS = Range(0.0, 1e18, above=True, example="0.8")
_RANGE = re.compile(r"auto:\s*([0-9]{1,15})\s*-\s*([0-9]{1,15})\s*")
_MOST_CLIENTS = 128
"""Upper end of a search without a declared range. Few databases benefit from more clients."""


def requests_search(field: str, text: object) -> bool:
    """Returns whether the field requests a search. Raises InputError for `auto` with an invalid range."""
    if not isinstance(text, str) or not text.startswith(AUTO):
        return False
    if text != AUTO and not _RANGE.fullmatch(text):
        hint = f"write for example {written(field, 'auto:1-128')}"
        raise InputError(written(field), f"{quoted(text)} is not a range", hint)
    return True


def searched(section: LoadSection) -> tuple[LoadSection, Search | None]:
    """Returns the search that a load section requests, and the section with the highest load of the search as a fixed
    load. If the section requests no search, returns the unchanged section and None. Raises InputError."""
    found = search(section.clients, section.rate, section.limit, 1)
    return (msgspec.structs.replace(section, **{found.of: found.high}) if found else section), found


def search(clients: object, rate: object, limits: Sequence[str], repeats: int) -> Search | None:
    """Returns the search that the load section requests. Returns None if it requests none. Raises InputError."""
    of_clients, of_rate = requests_search("load.clients", clients), requests_search("load.rate", rate)
    if not of_clients and not of_rate:
        if limits:
            ways = f"{written('load.clients', 'auto')} or {written('load.rate', 'auto:LOW-HIGH')}"
            raise InputError(written("load.limit"), "applies only to a search", f"add {ways}")
        return None
    if of_clients and (of_rate or rate is not None):
        cause = f"cannot be combined with {written('load.clients', 'auto')}"
        hint = (
            "search for the number of clients or for the rate, and set the other to a fixed value"
            if of_rate
            else "remove one of the two: if the rate is fixed, more clients do not change the throughput"
        )
        raise InputError(written("load.rate"), cause, hint)
    of, text = ("clients", clients) if of_clients else ("rate", rate)
    field = f"load.{of}"
    low, high = _range(field, str(text))
    range_of(field).require(written(field), high)
    found = tuple(_limit(limit) for limit in limits)
    return Search(of, low, high, found, max(2, repeats))


def load_at(search: Search, load: Load, threads: int, point: int) -> Load:
    """Returns the load at one point of the search."""
    if search.of == "rate":
        return replace(load, rate=float(point))
    # A point with fewer clients usually has fewer workers. However, workers may outnumber clients in the declared load,
    # because workers without clients still load data (`Builder._require_workers`). All workers are then kept.
    workers = min(load.workers, point) if load.workers <= load.clients else load.workers
    return replace(load, clients=point, threads=min(threads, point), workers=workers)


def at_best(trials: Iterable[Trial], setups: Sequence[Setup], best: Mapping[str, ChosenLoad]) -> tuple[Trial, ...]:
    """Returns the trials at the loads that searches chose. Configurations whose search found no load are left out."""
    found = {setup.cell.name: setup_at_best(setup, best) for setup in setups if setup.cell.name in best}
    placed = ((trial, found.get(trial.cell.name)) for trial in trials)
    return tuple(
        replace(trial, cell=setup.cell) if setup else trial for trial, setup in placed if not (setup and setup.skipped)
    )


def setup_at_best(setup: Setup, best: Mapping[str, ChosenLoad]) -> Setup:
    """Returns the setup with the load that its search chose. The setup is unchanged if it has no search, or if the
    search has not ended. If the search found no load, the setup is marked as skipped."""
    chosen = best.get(setup.cell.name)
    if setup.search is None or chosen is None:
        return setup
    if chosen.point is None:
        return replace(setup, best=chosen, skipped=chosen.sentence)
    load = setup.cell.load
    cell = replace(setup.cell, load=load_at(setup.search, load, load.threads, chosen.point))
    return replace(setup, best=chosen, cell=cell)


def lab_at_best(lab: Lab, best: Mapping[str, ChosenLoad]) -> Lab:
    """Returns the lab with every configuration at the load that its search chose. Comparisons of configurations whose
    search found no load are left out."""
    setups = tuple(setup_at_best(setup, best) for setup in lab.setups)
    skipped = {setup.cell.name for setup in setups if setup.skipped}
    pairs = tuple(pair for pair in lab.comparisons if skipped.isdisjoint(pair))
    return replace(lab, setups=setups, comparisons=pairs, trials=at_best(lab.trials, lab.setups, best))


def cell_at(plan: Plan, point: int) -> Cell:
    """Returns the configuration at one point of the plan's search."""
    assert plan.search is not None
    highest = plan.trials[-1].cell.load
    return Cell(f"{plan.search.of}={point}", load_at(plan.search, highest, highest.threads, point))


def _range(field: str, text: str) -> tuple[int, int]:
    if text == AUTO:
        if field == "load.rate":
            hint = f"write for example {written(field, 'auto:100-5000')}"
            raise InputError(written(field), "a search for a rate needs a range", hint)
        return 1, _MOST_CLIENTS
    match = _RANGE.fullmatch(text)
    assert match is not None
    low, high = int(match[1]), int(match[2])
    if not 1 <= low <= high:
        hint = "the first number must be at least 1, and the second number must not be smaller than the first"
        raise InputError(written(field), f"{low}-{high} is not a range", hint)
    return low, high


def _limit(text: str) -> Limit:
    # The name may contain a label, as in {role=log}.
    name, equals, value = (part.strip() for part in text.rpartition("="))
    if not equals:
        hint = "write for example response_time_p99_s=20ms"
        raise InputError(written("load.limit"), f"{quoted(text)} is not METRIC=VALUE", hint)
    known = catalogue.metric(name)
    if known.better == "higher":
        raise InputError(
            written("load.limit", name),
            "a limit is a maximum, but higher values of this metric are better",
            "use a metric for which lower values are better",
        )
    subject = written("load.limit", name)
    limit = _value(subject, value, known.unit)
    _LIMITS.require(subject, limit)
    return Limit(name, limit)


def _value(subject: str, text: str, unit: str) -> float:
    if unit == "s":
        return units.seconds(subject, text)
    if unit.startswith("bytes"):
        return float(units.size(subject, text))
    factor = 0.01 if text.endswith("%") else 1.0
    try:
        return float(text.removesuffix("%")) * factor
    except ValueError:
        raise InputError(subject, f"{quoted(text)} is not a number", "write for example 0.8 or 80%") from None
