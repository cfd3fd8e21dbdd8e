"""Metrics of the observer of emulated devices."""

import json

import pytest

from ironbench import catalogue
from ironbench.host.tree import Tree
from ironbench.model.observation import Sample
from ironbench.trial.observe.emulation import OBSERVER, quantile


def counts(count: int, late_ns: int = 0) -> dict:
    each_ns = 100_000
    return {
        "count": count,
        "bytes": count * 8192,
        "latency_ns": count * each_ns,
        "late": 0,
        "late_ns": late_ns,
        "sizes": [[8192, count]],
        "latencies": [[each_ns, count * 98 // 100], [800_000, count - count * 98 // 100]],
    }


def told(t_s: float, reads: int, late_ns: int) -> Sample:
    none = counts(0)
    partitions = {
        "data": {"read": counts(reads, late_ns), "write": none, "flush": none, "in_flight": 0, "deepest": 3},
        "log": {"read": none, "write": counts(reads // 2), "flush": none, "in_flight": 0, "deepest": 1},
    }
    text = {"model": "m", "now_ns": 0, "cpu_ns": int(t_s * 3e8), "modelled": True, "reads_per_s": 50_000.0}
    return Sample(t_s, json.dumps(text | {"partitions": partitions}).encode())


SAMPLES = {"emulation.data=data,log=log": [told(t_s, 1000 * t_s, 10_000_000 * t_s) for t_s in range(1, 5)]}


def test_sizes_latencies_and_the_emulations_own_cost_are_told_by_role() -> None:
    metrics = OBSERVER.parse(SAMPLES, 4.0).metrics
    assert metrics["device_read_size_bytes{role=data}"] == 8192
    assert metrics["device_read_latency_p99_s{role=data}"] == pytest.approx(8e-4)
    assert metrics["emulation_late_share{role=data}"] == pytest.approx(0.1)
    assert metrics["emulation_late_share{role=log}"] == 0
    assert metrics["emulation_cpu_cores"] == pytest.approx(0.3)
    assert metrics["emulation_load_share"] == pytest.approx(1500 / 50_000)
    assert "device_read_latency_p99_s{role=log}" not in metrics


def test_a_device_whose_requests_the_kernel_passes_through_tells_its_cpu_time_alone() -> None:
    unseen = {"emulation.data=data": [told(t_s, 0, 0) for t_s in range(1, 5)]}
    assert OBSERVER.parse(unseen, 4.0).metrics == {"emulation_cpu_cores": pytest.approx(0.3)}


def test_a_role_with_a_handful_of_ios_is_not_told_to_be_late() -> None:
    few = {"emulation.data=data": [told(t_s, 9 * t_s, 1_000_000 * t_s) for t_s in range(1, 5)]}
    assert "emulation_late_share{role=data}" not in OBSERVER.parse(few, 4.0).metrics


def test_what_was_counted_in_the_window_is_kept_bucket_by_bucket() -> None:
    counted = {one.name: one for one in OBSERVER.parse(SAMPLES, 4.0).counted}
    latency = counted["device_read_latency_s{role=data}"]
    assert latency.edges == pytest.approx((1e-4, 8e-4))
    assert latency.counts == pytest.approx((2940, 60))  # 1000 reads a second, between the first and the last sample
    assert counted["device_write_size_bytes{role=log}"].edges == (8192.0,)
    assert "device_write_latency_s{role=data}" not in counted


def test_every_metric_and_series_is_in_the_catalogue() -> None:
    observation = OBSERVER.parse(SAMPLES, 4.0)
    of_time = [*observation.series, *observation.counted]
    for name in [*observation.metrics, *(one.name for one in of_time)]:
        catalogue.metric(name)


def test_a_quantile_is_the_edge_of_its_bucket() -> None:
    assert quantile({1.0: 98, 2.0: 1, 3.0: 1}, 0.99) == 2.0
    assert quantile({}, 0.99) is None


def test_a_directory_that_is_on_no_emulated_device_has_no_source(tmp_path) -> None:
    class Session:
        def directories(self) -> dict[str, str]:
            return {"data": "/"}

    assert OBSERVER.sources(Session(), Tree()) == ()
