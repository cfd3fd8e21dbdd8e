"""The catalogue of metrics: every row is complete, every name is found, and unknown names get a suggestion."""

from __future__ import annotations

import pytest

from ironbench import workloads
from ironbench.catalogue import base_name, metric, metrics, part_of
from ironbench.errors import InputError


def test_every_metric_has_a_known_unit_a_direction_and_a_sentence() -> None:
    for row in metrics().values():
        assert row.unit in {"s", "bytes", "1/s", "1/min", "bytes/s", "queries/h × SF", "1"}, row
        assert row.better in {"higher", "lower", "neither"}, row
        assert row.doc.endswith("."), row
        assert row.source, row


def test_a_name_in_seconds_says_so_and_only_then() -> None:
    for row in metrics().values():
        per_second = row.name.endswith("_per_s")
        assert (row.unit == "s") == (row.name.endswith("_s") and not per_second), row


def test_a_metric_is_bound_to_workloads_that_there_are() -> None:
    for row in metrics().values():
        assert set(row.workloads) <= set(workloads.names()), row


def test_a_part_in_braces_belongs_to_its_metric() -> None:
    assert metric("throughput{script=pay}").name == "throughput"
    assert base_name("wait_share{event=IO.DataFileRead}") == "wait_share"
    assert part_of("wait_share{event=IO.DataFileRead}") == "event=IO.DataFileRead"
    assert part_of("throughput") == ""


def test_an_unknown_metric_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        metric("throughputt")
    assert "throughput" in caught.value.hint
    with pytest.raises(InputError) as known_as:
        metric("nopm")
    assert known_as.value.hint == "did you mean new_orders_per_min?"
    with pytest.raises(InputError) as unlike:
        metric("xyzzy")
    assert unlike.value.hint.count(",") < 40 and "more" in unlike.value.hint
