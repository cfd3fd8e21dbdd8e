"""How long I/Os took and how large they were, by role, all trials of a peak together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ironbench.analyse.archive import Archive
from ironbench.catalogue import base_name, part_of
from ironbench.model.record import Record

_PER_OCTAVE = {"latency_s": 4, "size_bytes": 1}
"""Buckets drawn for each doubling: devices count latencies in eighths of an octave, sizes in whole ones."""
_SMALLEST = {"latency_s": 1e-6, "size_bytes": 512.0}
"""Where their buckets begin: `crates/ironbench-device/src/live/tally.rs`."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one kind of I/O on one role."""

    metric: str
    """`device_read_latency_s`, `device_write_size_bytes`, …"""
    part: str
    """The role."""
    count: float
    points: tuple[tuple[float, float], ...]
    """(upper end of the bucket, share of the I/Os in it), buckets without any between them included."""

    @property
    def step(self) -> float:
        """Upper over lower end of a bucket."""
        return 2 ** (1 / _PER_OCTAVE[_quantity(self.metric)])

    def quantile(self, share: float) -> float:
        """Upper end of the bucket in which that share is reached."""
        passed = 0.0
        for edge, own in self.points:
            passed += own
            if passed >= share - 1e-9:
                return edge
        return self.points[-1][0]


def spreads(trials: Sequence[Record], archive: Archive) -> tuple[Spread, ...]:
    """By name; empty where nothing was counted, as on real devices."""
    merged: dict[str, dict[int, float]] = {}
    for record in trials:
        for one in archive.counted(record.id):
            if not base_name(one.name).endswith(tuple(_PER_OCTAVE)):  # of another version
                continue
            buckets = merged.setdefault(one.name, {})
            for edge, count in zip(one.edges, one.counts, strict=True):
                place = _place(one.name, edge)
                buckets[place] = buckets.get(place, 0.0) + count
    return tuple(_spread(name, buckets) for name, buckets in sorted(merged.items()) if sum(buckets.values()) > 0)


def _quantity(name: str) -> str:
    return next(quantity for quantity in _PER_OCTAVE if base_name(name).endswith(quantity))


def _place(name: str, edge: float) -> int:
    quantity = _quantity(name)
    octaves = math.log2(max(edge, _SMALLEST[quantity]) / _SMALLEST[quantity])
    return math.ceil(octaves * _PER_OCTAVE[quantity] - 1e-6)


def _spread(name: str, buckets: dict[int, float]) -> Spread:
    quantity, total = _quantity(name), sum(buckets.values())
    points = [
        (_SMALLEST[quantity] * 2 ** (place / _PER_OCTAVE[quantity]), buckets.get(place, 0.0) / total)
        for place in range(min(buckets), max(buckets) + 1)
    ]
    return Spread(base_name(name), part_of(name).removeprefix("role="), total, tuple(points))
