"""Published results of third parties."""

from __future__ import annotations

import csv
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ironbench.errors import InputError, nearest

_PROCESSORS = re.compile(r"(\d+)x (.+)")


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One system's result in a published list."""

    system: str
    processor: str
    sockets: int
    cores: int
    """Physical cores of the whole system."""
    score: float
    per_core: float
    """Score per core. The value is taken from the list if the list contains it. Otherwise, the value is the score
    divided by the number of cores."""
    other: dict[str, str | float]
    """The other columns of the list: name → number or text."""


@dataclass(frozen=True, slots=True)
class Published:
    """A list of published results, in the order of the list's file."""

    name: str
    title: str
    score: str
    """Name of the score in the list."""
    source: str
    own: str
    """The ironbench workload that is most similar to the published benchmark."""
    entries: tuple[PublishedResult, ...]


def names() -> list[str]:
    """Returns the names of the lists."""
    return list(_declared())


@cache
def get(name: str) -> Published:
    """Returns the list with this name. Raises InputError that suggests the nearest name."""
    declared = _declared()
    if name not in declared:
        raise InputError(f"leaderboard {name}", "unknown list of published results", nearest(name, names()))
    row = declared[name]
    text = files(__name__).joinpath(row["file"]).read_text(encoding="utf-8")
    entries = tuple(_entry(line, row) for line in csv.DictReader(text.splitlines()))
    return Published(name, row["title"], row["score"], row["source"], row["own"], entries)


@cache
def _declared() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__name__).joinpath("lists.toml").read_text(encoding="utf-8"))


def _entry(line: dict[str, str], row: dict[str, Any]) -> PublishedResult:
    own = {"system", "processor", "processors", "cores", "sockets", row["score"], row.get("per_core", "")}
    sockets, cores, processor = _silicon(line, row)
    score = float(line[row["score"]])
    per_core = float(line[row["per_core"]]) if "per_core" in row else score / cores
    other = {key: _value(value) for key, value in line.items() if key not in own}
    return PublishedResult(line["system"], processor, sockets, cores, score, per_core, other)


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _silicon(line: dict[str, str], row: dict[str, Any]) -> tuple[int, int, str]:
    """Returns the number of sockets, the number of cores, and the processor. The list contains these values in separate
    columns, or in one text such as `2x Xeon 5355`."""
    if "cores" in line:
        return int(line["sockets"]), int(line["cores"]), line["processor"]
    match = _PROCESSORS.fullmatch(line["processors"])
    assert match, line["processors"]
    known: dict[str, int] = row["processors"]
    return int(match[1]), int(match[1]) * known[match[2]], match[2]
