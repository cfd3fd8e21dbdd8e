"""Built-in data. This module reads the list of metrics (metrics.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ironbench.errors import InputError, nearest


@dataclass(frozen=True, slots=True)
class Metric:
    """Definition of a metric."""

    name: str
    unit: str
    """Base unit: `s`, `bytes`, `1/s`, `bytes/s`, `queries/h × SF`, or `1` for a plain number or share."""
    better: str
    """Which values are better: `higher`, `lower` or `neither`."""
    doc: str
    source: str
    """Where the value comes from, such as a file or a system view."""
    per_slice: bool = False
    """Whether records of slices also contain the metric. These records do not contain values that observers sample at
    fixed intervals."""
    workloads: tuple[str, ...] = ()
    """Workloads whose trials have the metric. If empty, every workload has it."""
    needs: str = ""
    """Ability that the engine must have (`engines.base.ABILITIES`). If empty, the metric needs none."""
    total: bool = False
    """Whether the metric is a total over the trial, so that it grows with the amount of work."""
    title: str = ""
    """Name shown to users. If empty, the name is derived from the metric's name (`words`)."""

    @property
    def words(self) -> str:
        """Name shown to users: the title if there is one, otherwise the metric's name without its unit,
        for example `CPU steal (share of time)` for `cpu_steal_share`."""
        return self.title or _spelled(self.name)


@cache
def metrics() -> dict[str, Metric]:
    """Returns every metric in the order of metrics.toml. The keys are the names of the metrics."""
    text = files(__name__).joinpath("metrics.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text).items()
    return {name: Metric(name=name, **{**row, "workloads": tuple(row.get("workloads", ()))}) for name, row in rows}


def _spelled(name: str) -> str:
    for suffix, spelling in _SUFFIXES:
        if name.endswith(suffix):
            name = name.removesuffix(suffix) + spelling
            break
    words = [_WORDS.get(word, word) for word in name.split("_")]
    return " ".join(word for word in words if word)


_SUFFIXES = (
    ("_bytes_per_s", ", bytes per second"),
    ("_per_s", " per second"),
    ("_per_transaction_s", " per transaction"),
    ("_share", " (share of time)"),
    ("_fraction", " (share)"),
    ("_s", ""),
)
_WORDS = {
    "cpu": "CPU", "wal": "WAL", "psi": "pressure:", "io": "I/O", "p50": "median", "p90": "90th percentile",
    "p95": "95th percentile", "p99": "99th percentile", "p999": "99.9th percentile",
}  # fmt: skip


PER_UNIT = "_per_transaction"
"""Part of the names of all metrics per unit of work."""


def base_name(name: str) -> str:
    """Returns a metric's name without its part in braces: `throughput` for `throughput{script=pay}`."""
    return name.partition("{")[0]


def part_of(name: str) -> str:
    """Returns the part of a metric's name in braces: `script=pay` for `throughput{script=pay}`. Returns "" if there is
    none."""
    return name.partition("{")[2].removesuffix("}")


def better(name: str) -> str:
    """Returns which values of a metric are better: `higher`, `lower` or `neither`. Returns `neither` for an unknown
    metric."""
    known = metrics().get(base_name(name))
    return known.better if known else "neither"


def metric(name: str) -> Metric:
    """Returns the metric with this name, which may have a part in braces. Raises InputError that suggests the nearest
    names."""
    known = metrics()
    row = known.get(base_name(name))
    if row is None:
        raise InputError(f"metric {name!r}", "unknown metric", suggestion(base_name(name)))
    return row


def suggestion(name: str, more: Sequence[str] = ()) -> str:
    """Returns a hint for an unknown metric. The hint suggests the metric whose title contains `name` in parentheses,
    such as NOPM. If there is none, it suggests metrics with similar names. `more`: further names that may be
    suggested."""
    named = [one.name for one in metrics().values() if f"({name.casefold()})" in one.words.casefold()]
    return f"did you mean {named[0]}?" if named else nearest(name, [*more, *metrics()])
