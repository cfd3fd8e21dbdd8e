"""The tests of workload storage, read back from the metrics of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ironbench.analyse.summarise import Summary
from ironbench.catalogue import base_name, part_of
from ironbench.workloads.storage.profiles import KDISKMARK, known, order

WORKLOAD = "storage"
RATE = "storage_bytes_per_s"
_PROFILE = "profile="


@dataclass(frozen=True, slots=True)
class Tested:
    """One test of one system, or of one side of a comparison."""

    name: str
    """In names of metrics."""
    title: str
    direction: str
    """`read`, `write` or `mix`."""
    kind: str
    """`sequential`, `random`, `sync`, `cost` or `sustained`."""
    block_bytes: int
    figures: Mapping[str, Summary]
    """By metric without its part; of those a record has."""

    @property
    def rate(self) -> Summary:
        return self.figures[RATE]

    @property
    def low(self) -> float:
        """Of all passes of all trials."""
        summary = self.figures.get(f"{RATE}_lowest")
        return summary.low if summary else self.rate.low

    @property
    def high(self) -> float:
        summary = self.figures.get(f"{RATE}_best")
        return summary.high if summary else self.rate.high

    def centre(self, metric: str) -> float | None:
        summary = self.figures.get(metric)
        return summary.centre if summary else None

    @property
    def iops(self) -> float:
        return self.rate.centre / self.block_bytes


def tested(metrics: Mapping[str, Summary]) -> tuple[Tested, ...]:
    """In the order of a table; empty where storage was not measured."""
    figures: dict[str, dict[str, Summary]] = {}
    for name, summary in metrics.items():
        part = part_of(name)
        if base_name(name).startswith("storage_") and part.startswith(_PROFILE):
            figures.setdefault(part.removeprefix(_PROFILE), {})[base_name(name)] = summary
    tests = []
    for name, own in sorted(figures.items(), key=lambda item: order(item[0])):
        test = known(name)
        if test is not None and RATE in own:
            tests.append(Tested(name, test.title, test.direction, _kind(name), test.block_bytes, own))
    return tuple(tests)


def _kind(name: str) -> str:
    name = name.removeprefix(KDISKMARK)
    if name.startswith("rnd"):
        return "random"
    if name.startswith("cost"):
        return "cost"
    if name.startswith(("fsync", "fdatasync", "dsync")):
        return "sync"
    return "sustained" if name.startswith("sustained") else "sequential"
