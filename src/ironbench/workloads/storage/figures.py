"""Computes metrics, time series and histograms from the passes of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING

from ironbench.catalogue.storage_tests import Test
from ironbench.model.observation import Series
from ironbench.model.sample import quantiles
from ironbench.workloads.storage.passes import BUCKET_S, PassResult

if TYPE_CHECKING:
    from ironbench._core import Histogram

_CPU_PER_IO = "storage_cpu_per_io_s"
_TERSE = (
    (10, ("storage_latency_p50_s", "storage_latency_p999_s")),
    (12, ("storage_iops",)),
    (14, (_CPU_PER_IO,)),
)
"""Metrics that are left out if a record has more tests than the number before them, so that records stay small."""
_COST = "cost"
"""Prefix of tests that measure the CPU time per I/O. For them, this metric is always stored."""
_OF_SEVERAL = ("storage_bytes_per_s_best", "storage_bytes_per_s_lowest")
_QUANTILES = {"storage_latency_p50_s": 0.5, "storage_latency_p99_s": 0.99, "storage_latency_p999_s": 0.999}
_USUAL = ("storage_bytes_per_s", "storage_iops", "storage_latency_mean_s", *_QUANTILES, _CPU_PER_IO)
"""Metrics of every test. A quantile is missing if there were too few I/Os."""
_SETTLED = 3
"""The last third of a sustained write shows the rate that the drive can sustain."""


def metrics(passes: Sequence[PassResult]) -> dict[str, float]:
    """Returns the metrics of every test. The rate is that of the median pass, or for KDiskMark's tests the mean of the
    passes. The lowest and highest rates show the range of the passes. Latency and CPU time are computed from all passes
    together."""
    values: dict[str, float] = {}
    by_test = grouped(passes)
    for name, own in by_test.items():
        by_alone = grouped_alone(passes, name)
        for metric, value in (_of(own) | _alone(by_alone)).items():
            if _is_kept(metric, name, len(by_test)):
                values[f"{metric}{{profile={name}}}"] = float(f"{value:.6g}")
    return values


def metrics_of_tests(tests: Sequence[Test], passes: int, beside: bool) -> dict[str, tuple[str, ...]]:
    """Returns the metrics that a trial with these tests will have. The key is the name of a metric; the value is its
    parts."""
    # A sustained write has a single pass, which uses all files together.
    short = tuple(f"profile={test.name}" for test in tests if not test.sustained)
    of_short = (*(_OF_SEVERAL if passes > 1 else ()), *(("storage_alone_bytes_per_s",) if beside else ()))
    by_name = {name: [test.name for test in tests if _is_kept(name, test.name, len(tests))] for name in _USUAL}
    parts_of = {name: tuple(f"profile={test}" for test in kept) for name, kept in by_name.items() if kept}
    parts_of |= {name: short for name in of_short if short}
    long = tuple(f"profile={test.name}" for test in tests if test.sustained)
    return parts_of | ({"storage_burst_bytes_per_s": long, "storage_settled_bytes_per_s": long} if long else {})


def _is_kept(metric: str, test: str, tests: int) -> bool:
    if metric == _CPU_PER_IO and test.startswith(_COST):
        return True
    return not any(metric in metrics for number, metrics in _TERSE if tests > number)


def grouped_alone(passes: Sequence[PassResult], name: str) -> dict[int, list[PassResult]]:
    """Returns those passes of a test in which only one file was used. The key is the index of the file."""
    by_file: dict[int, list[PassResult]] = {}
    for one in passes:
        if one.ios and one.alone is not None and one.test.name == name:
            by_file.setdefault(one.alone, []).append(one)
    return by_file


def _alone(by_file: dict[int, list[PassResult]]) -> dict[str, float]:
    if not by_file:
        return {}
    return {"storage_alone_bytes_per_s": sum(median(one.bytes_per_s for one in own) for own in by_file.values())}


def grouped(passes: Sequence[PassResult]) -> dict[str, list[PassResult]]:
    """Returns the passes of each test. If there are several files, only passes that used all of them are included."""
    by_test: dict[str, list[PassResult]] = {}
    for one in passes:
        if one.ios and one.alone is None:
            by_test.setdefault(one.test.name, []).append(one)
    return by_test


def _of(passes: Sequence[PassResult]) -> dict[str, float]:
    rates = [one.bytes_per_s for one in passes]
    times = merged(passes)
    rate = fmean(rates) if passes[0].test.kdiskmark else median(rates)
    cpu_per_io_s = _cpu_per_io_s(passes)
    values = {
        "storage_bytes_per_s": rate,
        "storage_iops": rate / passes[0].test.block_bytes,
        "storage_latency_mean_s": times.mean_s,
        **quantiles(times, _QUANTILES),
        _CPU_PER_IO: cpu_per_io_s,
    }
    if len(passes) > 1:
        values |= dict(zip(_OF_SEVERAL, (max(rates), min(rates)), strict=True))
    return values | (_sustained(passes) if passes[0].test.sustained else {})


def _cpu_per_io_s(passes: Sequence[PassResult]) -> float:
    return sum(one.cpu_s for one in passes) / sum(one.ios for one in passes)


def _sustained(passes: Sequence[PassResult]) -> dict[str, float]:
    """Returns metrics of a sustained write. The rate in the first second is that of an empty write cache. The rate in
    the last third is that of a full one."""
    counts = passes[0].buckets[: int(passes[0].elapsed_s / BUCKET_S)]
    if len(counts) < 2 * _SETTLED:
        return {}
    block, first = passes[0].test.block_bytes, counts[: min(10, len(counts) // _SETTLED)]
    last = counts[-(len(counts) // _SETTLED) :]
    return {
        "storage_burst_bytes_per_s": sum(first) * block / (len(first) * BUCKET_S),
        "storage_settled_bytes_per_s": sum(last) * block / (len(last) * BUCKET_S),
    }


def merged(passes: Sequence[PassResult]) -> Histogram:
    """Merges the times of all I/Os, over all passes and both directions."""
    from ironbench._core import Histogram

    whole = Histogram()
    for one in passes:
        whole.merge(one.reads)
        whole.merge(one.writes)
    return whole


def histograms(passes: Sequence[PassResult]) -> dict[str, Histogram]:
    return {f"response_time{{profile={name}}}": merged(own) for name, own in grouped(passes).items()}


def series(passes: Sequence[PassResult]) -> tuple[Series, ...]:
    """Returns time series of rates. Each point is a pass with its start. For a sustained write, each point is a
    second."""
    every = []
    for name, own in grouped(passes).items():
        points = [(one.began_s, one.bytes_per_s) for one in own]
        if own[0].test.sustained:
            points = _by_second(own[0])
        every.append(_series(f"storage_bytes_per_s{{profile={name}}}", points))
    return tuple(every)


def _by_second(one: PassResult) -> list[tuple[float, float]]:
    whole = int(one.elapsed_s)
    width = round(1 / BUCKET_S)
    sums = [sum(one.buckets[second * width : (second + 1) * width]) for second in range(whole)]
    return [(one.began_s + second, total * float(one.test.block_bytes)) for second, total in enumerate(sums)]


def _series(name: str, points: Sequence[tuple[float, float]]) -> Series:
    return Series(name, tuple(at for at, _ in points), tuple(value for _, value in points))
