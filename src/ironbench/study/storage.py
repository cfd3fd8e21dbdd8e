"""Results of the storage workload's tests, read from the metrics of records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ironbench.catalogue import base_name, part_of
from ironbench.catalogue.storage_tests import KDISKMARK, order, storage_test
from ironbench.model.finding import LEAST_BLOCKS_SHOWN
from ironbench.model.note import Note, note
from ironbench.model.record import Record
from ironbench.stats.intervals import LEVEL
from ironbench.stats.ratio import paired
from ironbench.study.comparability import complete_blocks
from ironbench.study.summarise import Summary, over_passes

WORKLOAD = "storage"
RATE = "storage_bytes_per_s"
_PROFILE = "profile="


@dataclass(frozen=True, slots=True)
class StorageTestResult:
    """Result of a storage test: of one system, or of one side of a comparison."""

    name: str
    """Name of the test as used in metrics."""
    title: str
    direction: str
    """Direction of the I/Os: `read`, `write` or `mix`."""
    kind: str
    """Kind of the test: `sequential`, `random`, `sync`, `cost` or `sustained`."""
    block_bytes: int
    figures: Mapping[str, Summary]
    """Values of the metrics that the test recorded. The names of the metrics are without the part."""

    @property
    def rate(self) -> Summary:
        return self.figures[RATE]

    @property
    def low(self) -> float:
        """Lowest rate over all passes of all trials."""
        return over_passes(self.figures, RATE).low

    @property
    def high(self) -> float:
        return over_passes(self.figures, RATE).high

    def centre(self, metric: str) -> float | None:
        summary = self.figures.get(metric)
        return summary.centre if summary else None

    @property
    def iops(self) -> float:
        return self.rate.centre / self.block_bytes


def tested(metrics: Mapping[str, Summary]) -> tuple[StorageTestResult, ...]:
    """Returns the test results in table order. Returns nothing if storage was not measured."""
    figures: dict[str, dict[str, Summary]] = {}
    for name, summary in metrics.items():
        part = part_of(name)
        if base_name(name).startswith("storage_") and part.startswith(_PROFILE):
            figures.setdefault(part.removeprefix(_PROFILE), {})[base_name(name)] = summary
    tests = []
    for name, own in sorted(figures.items(), key=lambda item: order(item[0])):
        test = storage_test(name)
        if test is not None and RATE in own:
            tests.append(StorageTestResult(name, test.title, test.direction, _kind(name), test.block_bytes, own))
    return tuple(tests)


def rate_ratio(a: Sequence[Record], b: Sequence[Record], test: str) -> tuple[float, float, float] | None:
    """Returns the ratio of a test's rate in B to its rate in A, and the bounds of its 95% confidence interval. Returns
    None if no block has both rates.

    The ratio is the geometric mean over the blocks in which both have the rate. With fewer than `LEAST_BLOCKS_SHOWN`
    blocks, the bounds are 0 and infinity.
    """
    metric = f"{RATE}{{{_PROFILE}{test}}}"
    sides = ([one.metrics.get(metric, 0.0) for one in side] for side in complete_blocks(a, b))
    ratios = [of_b / of_a for of_a, of_b in zip(*sides, strict=True) if of_a > 0 and of_b > 0]
    return paired(ratios).with_interval(LEVEL, LEAST_BLOCKS_SHOWN) if ratios else None


MOST_BY_CHANCE = 0.01
"""Maximum probability that two equal devices have disjoint ranges in a row of the table. If it is higher, ranges are
not judged."""


def passes_of(record: Record) -> int:
    return int(record.choice.options.get("passes", 1))


def apart_by_chance(a: Sequence[Record], b: Sequence[Record]) -> float:
    """Returns the probability that two equal and steady devices have disjoint ranges in one row of the table. For equal
    devices, all ways to divide the ranked rates between the two sides are equally likely. In two of them, all rates of
    one side are lower than those of the other side (the smallest p value of the two-sided rank-sum test: Wilcoxon,
    Biometrics Bulletin 1, 1945). Drift between two runs, which shifts all passes of a run, is not taken into account.
    """
    passes = [sum(map(passes_of, side)) for side in (a, b)]
    return 2 / math.comb(sum(passes), passes[0]) if all(passes) else 1.0


def any_apart(each: float, rows: int) -> float:
    """Returns the probability that at least one of several independent rows has disjoint ranges by chance."""
    return 1 - (1 - each) ** rows


def ranges_by_chance(
    a: Mapping[str, Summary], b: Mapping[str, Summary], trials: tuple[Sequence[Record], Sequence[Record]]
) -> tuple[Note, ...]:
    """Returns a note with the probability that equal devices have disjoint ranges in this comparison. Returns nothing
    if ranges are not judged."""
    rows = len({one.name for one in tested(a)} & {one.name for one in tested(b)})
    each = apart_by_chance(*trials)
    if not rows or each > MOST_BY_CHANCE:
        return ()
    in_turns = bool({one.series for one in trials[0]} & {one.series for one in trials[1]})
    return (note("ranges-by-chance", rows=rows, each=each, any=any_apart(each, rows), in_turns=in_turns),)


def _kind(name: str) -> str:
    name = name.removeprefix(KDISKMARK)
    if name.startswith("rnd"):
        return "random"
    if name.startswith("cost"):
        return "cost"
    if name.startswith(("fsync", "fdatasync", "dsync")):
        return "sync"
    return "sustained" if name.startswith("sustained") else "sequential"
