"""Metrics derived from a block device's counters."""

from __future__ import annotations

from ironbench.model.observation import Sample
from ironbench.trial.observe.disk import OBSERVER


def sample(t_s: float, reads: int, read_ms: int) -> Sample:
    """Returns a line of /sys/dev/block/*/stat (Documentation/block/stat.rst): reads, merges, sectors, ms, then the same
    for writes."""
    return Sample(t_s, f"{reads} 0 {reads * 8} {read_ms} 0 0 0 0 0 0 0".encode())


def test_requests_faster_than_the_kernels_clock_shows_have_no_time_rather_than_none() -> None:
    found = OBSERVER.parse({"disk.data": [sample(0.0, 0, 0), sample(1.0, 12, 0), sample(2.0, 22, 30)]}, 2.0)
    by_name = {one.name: list(one.value) for one in found.series}
    assert by_name["device_reads_per_s{role=data}"] == [12.0, 10.0]
    assert by_name["device_read_latency_s{role=data}"] == [0.003]


def test_a_window_has_whole_requests_and_their_bytes_though_its_edges_lie_between_samples() -> None:
    rare = OBSERVER.parse({"disk.data": [sample(-0.1, 0, 0), sample(3.0, 0, 0), sample(4.0, 1, 5)]}, 3.2)
    assert rare.metrics["device_reads_per_s{role=data}"] == 0
    assert rare.metrics["device_read_bytes_per_s{role=data}"] == 0
    assert "device_read_latency_s{role=data}" not in rare.metrics
    some = OBSERVER.parse({"disk.data": [sample(0.0, 0, 0), sample(2.0, 4, 8), sample(4.0, 9, 18)]}, 3.0)
    assert some.metrics["device_reads_per_s{role=data}"] * 3.0 == 6
    assert some.metrics["device_read_bytes_per_s{role=data}"] * 3.0 == 6 * 8 * 512
