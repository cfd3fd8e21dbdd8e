"""Statistics of the process that emulates a device: I/O sizes, latencies, CPU time, and how accurately it follows its
model.

A device publishes its counters as a file next to its partitions (`crates/ironbench-device/src/live`). The observer
finds the device from the mount of a role's directory and from the mount's loop device, so that it also finds devices
that another process has mounted.
"""

from __future__ import annotations

import json
from functools import partial

from ironbench.host.mounts import COUNTERS, emulated
from ironbench.host.tree import Tree
from ironbench.model.observation import Counted, Observation, Series, Source
from ironbench.model.observer import Samples
from ironbench.model.points import CounterGrowth, Values, growth, points, present, rate_series, steps
from ironbench.model.session import Session
from ironbench.trial.observe.disk import role_devices

_PREFIX = "emulation."
_KINDS = ("read", "write", "flush")
_QUANTILE = 0.99
_FEWEST = 30.0
"""Minimum number of I/Os. With fewer I/Os, the metric for the delay in comparison with the device model is left out."""


class Emulation:
    name = "emulation"
    doc = (
        "Emulated devices: size and latency of I/Os on each device, CPU time of the emulation, "
        "and delay of I/Os compared with the device model"
    )

    def sources(self, session: Session, machine: Tree) -> tuple[Source, ...]:
        roles: dict[str, list[str]] = {}
        for role, number in role_devices(session.directories(), machine).items():
            if partition := emulated(number, machine):
                counters = str(partition.with_name(COUNTERS))
                roles.setdefault(counters, []).append(f"{role}={partition.name}")
        return tuple(Source(f"{_PREFIX}{','.join(named)}", "file", path) for path, named in roles.items())

    def parse(self, samples: Samples, window_s: float) -> Observation:
        metrics: dict[str, float] = {}
        series: list[Series] = []
        counted: list[Counted] = []
        cpu_s, load, seen = 0.0, 0.0, False
        for source in samples:
            if not source.startswith(_PREFIX):
                continue
            readings = points(samples[source], _parse)
            if (grown := growth(readings, window_s)) is None:
                continue
            each, seen = steps(readings), True
            cpu_s += grown.rate("cpu_s")
            if ceiling := readings[-1].values["reads_per_s"]:
                load = max(load, grown.rate("done") / ceiling)
            for named in source.removeprefix(_PREFIX).split(","):
                role, _, partition = named.partition("=")
                metrics.update(_of_role(grown, role, partition))
                series += _series(each, role, partition)
                counted += _counted(grown, role, partition)
        if seen:
            metrics["emulation_cpu_cores"] = cpu_s
        # The load is 0 for zero-latency devices: the kernel passes their requests on, so they are not counted.
        if load > 0:
            metrics["emulation_load_share"] = load
        return Observation(metrics, tuple(series), tuple(counted))


def quantile(counts: dict[float, float], q: float) -> float | None:
    """Returns the upper edge of the bucket that contains the quantile. Returns None if all counts are zero."""
    total = sum(counts.values())
    if total <= 0:
        return None
    passed = 0.0
    for edge in sorted(counts):
        passed += counts[edge]
        if passed >= q * total:
            return edge
    return max(counts)


def _of_role(grown: CounterGrowth, role: str, partition: str) -> dict[str, float]:
    label = f"{{role={role}}}"
    figures: dict[str, float | None] = {}
    for kind in _KINDS:
        figures[f"device_{kind}_latency_p99_s{label}"] = _latency(grown, f"{partition}.{kind}", _QUANTILE)
        if kind != "flush":
            figures[f"device_{kind}_size_bytes{label}"] = grown.ratio(
                f"{partition}.{kind}.bytes", f"{partition}.{kind}.count"
            )
    held_s = sum(grown.by.get(f"{partition}.{kind}.latency_s", 0.0) for kind in _KINDS)
    late_s = sum(grown.by.get(f"{partition}.{kind}.late_s", 0.0) for kind in _KINDS)
    done = sum(grown.by.get(f"{partition}.{kind}.count", 0.0) for kind in _KINDS)
    figures[f"emulation_late_share{label}"] = late_s / held_s if held_s > 0 and done >= _FEWEST else None
    return present(figures)


def _series(each: list[tuple[float, CounterGrowth]], role: str, partition: str) -> list[Series]:
    return [
        rate_series(
            f"device_{kind}_latency_p99_s{{role={role}}}",
            each,
            partial(_latency, key=f"{partition}.{kind}", q=_QUANTILE),
        )
        for kind in _KINDS
    ]


def _counted(grown: CounterGrowth, role: str, partition: str) -> list[Counted]:
    distributions = []
    for kind in _KINDS:
        whole = {"latency_s": _buckets(grown, f"{partition}.{kind}.within.")}
        if kind != "flush":
            whole["size_bytes"] = _buckets(grown, f"{partition}.{kind}.sized.")
        for quantity, buckets in whole.items():
            edges = sorted(edge for edge, count in buckets.items() if count > 0)
            if edges:
                name = f"device_{kind}_{quantity}{{role={role}}}"
                distributions.append(Counted(name, tuple(edges), tuple(buckets[edge] for edge in edges)))
    return distributions


def _latency(grown: CounterGrowth, key: str, q: float) -> float | None:
    return quantile(_buckets(grown, f"{key}.within."), q)


def _buckets(grown: CounterGrowth, prefix: str) -> dict[float, float]:
    """Returns the counts of a histogram. Maps the upper edge of each bucket to the count of the bucket."""
    return {float(name[len(prefix) :]): by for name, by in grown.by.items() if name.startswith(prefix)}


def _parse(text: str) -> Values:
    """Returns `cpu_s`, `done`, `reads_per_s`; for each partition and kind `data.read.count`, `.within.<s>`,
    `.sized.<n>` …"""
    counters = json.loads(text)
    values: Values = {"cpu_s": counters["cpu_ns"] / 1e9, "reads_per_s": counters["reads_per_s"], "done": 0.0}
    for name, counts in counters["partitions"].items():
        for kind in _KINDS:
            key, one = f"{name}.{kind}", counts[kind]
            values[f"{key}.count"] = one["count"]
            values[f"{key}.bytes"] = one["bytes"]
            values[f"{key}.latency_s"] = one["latency_ns"] / 1e9
            values[f"{key}.late_s"] = one["late_ns"] / 1e9
            values["done"] += one["count"]
            for edge, count in one["latencies"]:
                values[f"{key}.within.{edge / 1e9:.9g}"] = count
            for edge, count in one["sizes"]:
                values[f"{key}.sized.{edge}"] = count
    return values


OBSERVER = Emulation()
