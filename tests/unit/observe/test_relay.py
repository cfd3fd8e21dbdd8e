"""Metrics of the relay that adds latency."""

import json

import pytest

from ironbench import catalogue
from ironbench.host.tree import Tree
from ironbench.model.observation import Sample
from ironbench.trial.observe.relay import OBSERVER


def told(t_s: float, pieces: int, cpu_s: tuple[float, ...] = (0.1, 0.3)) -> Sample:
    counters = {"round_trip_s": 0.001, "passing_s": 0.00004, "pieces": pieces, "late_ns": 30_000 * pieces, "bytes": 0}
    return Sample(t_s, json.dumps(counters | {"cpu_ns": [int(1e9 * one * t_s) for one in cpu_s]}).encode())


def test_the_added_latency_contains_the_relays_own_time() -> None:
    samples = {"relay.counters": [told(t_s, 1000 * t_s) for t_s in range(5)]}
    metrics = OBSERVER.parse(samples, 4.0).metrics
    assert metrics["added_latency_s"] == pytest.approx(0.001 + 0.00004 + 2 * 0.00003)
    assert metrics["relay_cpu_cores"] == pytest.approx(0.4)
    assert metrics["relay_busiest_thread_share"] == pytest.approx(0.3)
    assert metrics.keys() <= catalogue.metrics().keys()


def test_without_traffic_only_its_cpu_time_is_known() -> None:
    samples = {"relay.counters": [told(t_s, 7) for t_s in range(3)]}
    assert "added_latency_s" not in OBSERVER.parse(samples, 2.0).metrics


def test_a_reading_while_the_counters_were_written_is_left_out() -> None:
    samples = {"relay.counters": [told(0, 0), Sample(1.0, b'{"round_trip_s": 0.001, "pie'), told(2, 2000)]}
    assert OBSERVER.parse(samples, 2.0).metrics["relay_cpu_cores"] == pytest.approx(0.4)


def test_a_session_without_a_relay_has_no_counters() -> None:
    assert OBSERVER.sources(object(), Tree()) == ()  # type: ignore[arg-type]
