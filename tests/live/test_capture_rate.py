"""A replay at a target rate that the server cannot sustain."""

from __future__ import annotations

from pathlib import Path

import pytest
from raw_server import RawServer
from user import User
from written_log import write_csvlog

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("capture")]


def test_transactions_that_wait_for_their_session_at_the_end_are_counted_and_finished(place: Path) -> None:
    """The session can run 20 statements per second, and 60 start in the first second. Half of the capture is due
    later."""
    user = User(place)
    write_csvlog(place / "server.csv", *((n / 60, "select pg_sleep(0.05)") for n in range(120)))
    assert user("capture", "server.csv", "-o", "shop.capture").code == 0
    rated = ("--with", "file=shop.capture", "--with", "mode=rate", "--rate", "60", "--duration", "1s", "--no-observe")
    with RawServer() as server:
        dsn = f"postgresql://postgres@/postgres?host={server.host}&port={server.port}"
        told = user.measured("run", "capture", "--dsn", dsn, *rated)
    assert "not sustained" in told.stdout, told.stdout
    (record,) = user.records()
    metrics = record["metrics"]
    assert metrics["due"] == pytest.approx(60, abs=2)
    assert metrics["transactions"] + metrics["unfinished"] + metrics["not_started"] == metrics["due"]
    assert metrics["not_started"] >= 38
    (note,) = [one["values"] for one in record["warnings"] if one["code"] == "rate-not-kept"]
    assert note["waiting"] == metrics["not_started"] + metrics["unfinished"] and note["longest_wait_s"] > 0.5
    # All of them end within 5 s after the measured time. The last one waited for the 59 before it.
    assert "censored" not in metrics
    assert metrics["replayed_statements"] == metrics["due"]
    assert metrics["response_time_max_s"] > 1.9 and metrics["response_time_p50_s"] > 0.8
    assert metrics["service_time_p50_s"] < 0.2, "without the time in the queue"
