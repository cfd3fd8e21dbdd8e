"""What `--clients auto`, `--rate auto:LOW-HIGH` and `--limit` ask for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ironbench import catalogue, ranges, units
from ironbench.errors import InputError, quoted
from ironbench.model.plan import Plan
from ironbench.model.search import Limit, Search
from ironbench.model.system import Cell, Load

AUTO = "auto"
_RANGE = re.compile(r"auto:\s*([0-9]{1,15})\s*-\s*([0-9]{1,15})\s*")
_MOST_CLIENTS = 128
"""Where the search ends that is given no range: more than most databases gain anything from."""


def asked(option: str, text: object) -> bool:
    """Whether the option asks for a search. InputError for `auto` with something unreadable behind it."""
    if not isinstance(text, str) or not text.startswith(AUTO):
        return False
    if text != AUTO and not _RANGE.fullmatch(text):
        raise InputError(option, f"{quoted(text)} is not a range", f"write for example {option} auto:1-128")
    return True


def search(clients: str, rate: object, limits: Sequence[str], repeats: int) -> Search | None:
    """The search that is asked for; None when there is none. InputError."""
    of_clients, of_rate = asked("--clients", clients), asked("--rate", rate)
    if not of_clients and not of_rate:
        if limits:
            raise InputError(
                "--limit", "there is nothing to search", "a limit goes with --clients auto or --rate auto:LOW-HIGH"
            )
        return None
    if of_clients and of_rate:
        raise InputError("--rate", "given together with --clients auto", "search one of them and give the other")
    if of_clients and rate is not None:
        raise InputError("--rate", "given together with --clients auto", "more clients do not change what is asked for")
    option, text = ("--clients", clients) if of_clients else ("--rate", str(rate))
    low, high = _range(option, text)
    ranges.RANGES[option.removeprefix("--")].require(option, high)
    found = tuple(_limit(limit) for limit in limits)
    return Search(option.removeprefix("--"), low, high, found, max(2, repeats))


def load_at(search: Search, load: Load, threads: int, point: int) -> Load:
    """The load at one point of the search."""
    if search.of == "rate":
        return replace(load, rate=float(point))
    return replace(load, clients=point, threads=min(threads, point))


def cell_at(plan: Plan, point: int) -> Cell:
    """The cell of one point of the plan's search."""
    assert plan.search is not None
    highest = plan.trials[-1].cell.load
    return Cell(f"{plan.search.of}={point}", load_at(plan.search, highest, highest.threads, point))


def _range(option: str, text: str) -> tuple[int, int]:
    if text == AUTO:
        if option == "--rate":
            raise InputError(option, "a search for a rate needs a range", "write for example --rate auto:100-5000")
        return 1, _MOST_CLIENTS
    match = _RANGE.fullmatch(text)
    assert match is not None
    low, high = int(match[1]), int(match[2])
    if not 1 <= low <= high:
        raise InputError(option, f"{low}-{high} is not a range", "the first number is 1 or more, the second no less")
    return low, high


def _limit(text: str) -> Limit:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise InputError("--limit", f"{quoted(text)} is not METRIC=VALUE", "write for example response_time_p99_s=20ms")
    known = catalogue.metric(name)
    if known.better == "higher":
        raise InputError(
            f"--limit {name}", "is better when it is higher", "a limit is the most that a metric may reach under load"
        )
    found = _value(f"--limit {name}", value, known.unit)
    ranges.RANGES["limit"].require(f"--limit {name}", found)
    return Limit(name, found)


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
