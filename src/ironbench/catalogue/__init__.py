"""Data shipped with the tool: here the metrics that records hold."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ironbench.errors import InputError, nearest


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number in a record means."""

    name: str
    unit: str
    """Base unit: `s`, `bytes`, `1/s`, `bytes/s` or `1` for a plain number or share."""
    better: str
    """`higher`, `lower` or `neither`."""
    doc: str
    source: str
    """Where the number comes from."""


@cache
def metrics() -> dict[str, Metric]:
    """Every metric by name, in the catalogue's order."""
    text = files(__name__).joinpath("metrics.toml").read_text(encoding="utf-8")
    return {name: Metric(name=name, **row) for name, row in tomllib.loads(text).items()}


def base_name(name: str) -> str:
    """`throughput{script=pay}` → `throughput`."""
    return name.partition("{")[0]


def part_of(name: str) -> str:
    """`throughput{script=pay}` → `script=pay`; empty for a whole."""
    return name.partition("{")[2].removesuffix("}")


def metric(name: str) -> Metric:
    """The metric a record's name refers to, its part in braces ignored. InputError with the nearest names."""
    known = metrics()
    found = known.get(base_name(name))
    if found is None:
        raise InputError(f"metric {name!r}", "no such metric in the catalogue", nearest(base_name(name), list(known)))
    return found
