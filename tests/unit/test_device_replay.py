"""Replay of traces: the recorded I/Os at the recorded times on another device, without waiting."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ironbench.catalogue.devices import device_models
from ironbench.cli import device
from ironbench.devices import models, recording, replay, trace
from ironbench.errors import FailureError, InputError

CORE = models.for_core(device_models())
_MS = 1_000_000


def made(rows: list[tuple[int, str, int, int, int]]) -> trace.Trace:
    time, op, offset, length, completed = zip(*rows, strict=True) if rows else ((), (), (), (), ())
    return trace.Trace(
        np.array(time, "u8"),
        np.array([trace.OPS.index(one) for one in op], "u1"),
        np.array(offset, "u8"),
        np.array(length, "u4"),
        np.array(completed, "u8"),
        np.full(len(time), "data", dtype=object),
    )


def one_client(count: int, think_ns: int, takes_ns: int, op: str = "read") -> trace.Trace:
    """Returns a trace of one client that accesses random blocks of a gigabyte, one after another."""
    rows = []
    for i in range(count):
        at = i * (think_ns + takes_ns)
        rows.append((at, op, i * 7919 * 8192 % (1 << 30), 8192, at + takes_ns))
    return made(rows)


def test_the_arrivals_are_kept_and_the_latencies_are_those_of_the_other_device() -> None:
    found = replay.predicted(one_client(500, think_ns=1 * _MS, takes_ns=8 * _MS), "ssd-sata-2011", CORE)
    assert found.recorded.elapsed_s == pytest.approx(4.5, abs=0.01)
    assert found.predicted.elapsed_s == pytest.approx(found.recorded.elapsed_s, abs=0.01)
    assert (found.recorded.busy_share, found.recorded.in_flight) == pytest.approx((8 / 9, 8 / 9), abs=0.01)
    (latency,) = found.latencies
    assert (latency.op, latency.count) == ("read", 500)
    assert latency.recorded.mean_s == pytest.approx(0.008, rel=0.01)
    assert latency.predicted.mean_s < 0.001
    assert found.predicted.busy_share == pytest.approx(latency.predicted.mean_s / 0.009, rel=0.01)
    assert found.predicted_mean_s == pytest.approx(latency.predicted.mean_s, rel=0.01)
    assert found.keeps_up


def test_a_device_that_needs_longer_than_the_recording_does_not_keep_up() -> None:
    fast = one_client(2000, think_ns=900_000, takes_ns=100_000)
    found = replay.predicted(fast, "hdd-7200", CORE)
    assert not found.keeps_up
    assert found.predicted.elapsed_s > 2 * found.recorded.elapsed_s
    assert found.predicted.busy_share > 0.99
    assert found.predicted.in_flight > 100
    assert replay.predicted(fast, "ssd-sata-2011", CORE).keeps_up


def test_a_few_slow_ios_at_the_end_are_no_backlog() -> None:
    short = made([(0, "read", 0, 8192, 100_000), (_MS, "read", 1 << 29, 8192, _MS + 100_000)])
    found = replay.predicted(short, "hdd-7200", CORE)
    assert found.behind_s > replay.BEHIND * found.recorded.elapsed_s
    assert found.keeps_up


def test_ios_of_one_moment_stay_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    rows = [(moment, "write", 512 * number, 512, moment + 5) for moment in range(50) for number in range(2_000)]
    trace.write(path, made(rows))
    offsets = trace.read(path).offset.reshape(50, 2_000)
    assert (offsets == 512 * np.arange(2_000, dtype="u8")).all()


def test_what_arrived_while_a_trial_was_measured_is_replayed_and_several_trials_are_told_apart(tmp_path: Path) -> None:
    plain = one_client(100, _MS, 8 * _MS)
    trial = np.where(plain.time_ns < 200 * _MS, 0, np.where(plain.time_ns < 600 * _MS, 1, 2)).astype("u2")
    both = replace(plain, trial=trial)
    path = tmp_path / "trace.parquet"
    trace.write(path, both)
    found = trace.read(path)
    assert found.trial is not None
    assert found.trial.tolist() == trial.tolist()
    assert [len(found.measured(which).op) for which in ("1", "2", trace.ALL)] == [44, 33, 100]
    with pytest.raises(InputError, match="2 trials"):
        found.measured()
    with pytest.raises(InputError, match="no such trial: it has 1 2"):
        found.measured("3")
    assert len(replace(found, trial=np.minimum(trial, 1).astype("u2")).measured().op) == 77
    assert plain.measured() is plain
    with pytest.raises(InputError, match="no trial ran"):
        plain.measured("1")


def test_the_time_of_day_is_told_on_the_clock_of_a_device(tmp_path: Path) -> None:
    counters = tmp_path / "counters"
    counters.write_text(json.dumps({"now_ns": 90_000_000_000}))
    now = time.time()
    one = recording.trace_window(counters, now - 30, 5)
    assert one.start_ns == pytest.approx(60e9, abs=1e9)
    assert one.end_ns - one.start_ns == 5_000_000_000


def test_a_trace_of_an_earlier_version_has_counters_that_are_ignored(tmp_path: Path) -> None:
    import duckdb

    new, old = tmp_path / "new.parquet", tmp_path / "old.parquet"
    trace.write(new, replace(on_a_volume(_GP3_READ_NS), trial=np.ones(200, "u2")))
    counters = "2::USMALLINT AS cores, 5::UBIGINT AS used_ns, 6::UBIGINT AS runnable_ns, 7::UBIGINT AS emulation_ns"
    duckdb.sql(f"COPY (SELECT *, {counters}, 1::FLOAT AS work_share FROM '{new}') TO '{old}' (FORMAT parquet)")
    plain, read = trace.read(new), trace.read(old)
    assert read.recorded == plain.recorded == trace.RecordedDevice("aws-gp3", 2 << 30)
    for name in (*trace.COLUMNS, "trial"):
        assert (getattr(read, name) == getattr(plain, name)).all()
    assert device.replay(str(old), "hdd-7200") == 0


def test_a_trace_comes_back_from_parquet_as_it_was_and_in_order(tmp_path: Path) -> None:
    rows = [(5, "write", 4096, 512, 9), (1, "read", 0, 8192, 4), (7, "flush", 0, 0, 8)]
    path = tmp_path / "it's a trace.parquet"
    trace.write(path, made(rows))
    found = trace.read(path)
    assert found.time_ns.tolist() == [1, 5, 7]
    assert [trace.OPS[op] for op in found.op] == ["read", "write", "flush"]
    assert found.length.tolist() == [8192, 512, 0]
    assert found.end() == 8192
    assert found.partition.tolist() == ["data"] * 3


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        trace.read(tmp_path / "none.parquet")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="cannot be read"):
        trace.read(tmp_path / "text")
    import duckdb

    duckdb.sql(f"COPY (SELECT 1 AS time_ns, 'read' AS opp) TO '{tmp_path}/other.parquet'")
    with pytest.raises(InputError, match="no column op"):
        trace.read(tmp_path / "other.parquet")
    columns = "0 AS time_ns, 'erase' AS op, 0 AS \"offset\", 0 AS length, 0 AS completed_ns, 'data' AS \"partition\""
    duckdb.sql(f"COPY (SELECT {columns}) TO '{tmp_path}/odd.parquet'")
    with pytest.raises(InputError, match="contains an unknown operation"):
        trace.read(tmp_path / "odd.parquet")
    with pytest.raises(InputError, match="is empty"):
        replay.predicted(made([]), "hdd-7200", CORE)
    with pytest.raises(InputError, match="completed before"):
        replay.predicted(made([(5, "read", 0, 512, 4)]), "hdd-7200", CORE)
    with pytest.raises(FailureError, match="cannot be written"):
        trace.write(tmp_path / "no" / "where.parquet", made([(0, "read", 0, 512, 1)]))


def test_a_trace_that_is_larger_than_the_device_is_refused() -> None:
    with pytest.raises(InputError, match=r"the trace reaches byte .*, but the device has only"):
        replay.predicted(one_client(10, _MS, _MS), "hdd-7200", CORE, capacity=1 << 20)


def on_a_volume(takes_ns: int) -> trace.Trace:
    """Returns one client on aws-gp3, whose reads take a constant time while it has operations left."""
    return replace(one_client(200, 10 * _MS, takes_ns), recorded=trace.RecordedDevice("aws-gp3", 2 << 30))


_GP3_READ_NS = round(device_models()["aws-gp3"].values()["read_latency"] * 1e9)


def test_a_trace_is_first_replayed_on_the_device_it_was_recorded_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path, on_a_volume(_GP3_READ_NS))
    assert trace.read(path).recorded == trace.RecordedDevice("aws-gp3", 2 << 30)
    assert device.replay(str(path), "hdd-7200", json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["check"]["device"] == "aws-gp3"
    assert document["check"]["replayed_mean_s"] == pytest.approx(document["check"]["recorded_mean_s"], rel=0.02)
    assert document["check"]["miss"] == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("factor", [20, 0.01])
def test_no_prediction_is_made_when_the_recorded_device_is_missed_by_more_than_a_quarter(
    tmp_path: Path, factor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.parquet"
    other = on_a_volume(round(_GP3_READ_NS * factor))
    trace.write(path, other)
    check = replay.checked(other, CORE)
    assert check is not None
    assert check.missed
    with pytest.raises(FailureError) as refused:
        device.replay(str(path), "hdd-7200")
    assert refused.value.subject == f"trace {path}"
    assert capsys.readouterr().out == ""


def test_a_device_that_takes_no_time_has_no_latencies_to_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path, replace(one_client(100, _MS, 20_000), recorded=trace.RecordedDevice("free", 2 << 30)))
    assert device.replay(str(path), "ssd-sata-2011") == 0
    assert "free" in capsys.readouterr().out.splitlines()[1]
    assert device.replay(str(path), "ssd-sata-2011", json=True) == 0
    assert json.loads(capsys.readouterr().out)["check"] is None


def test_a_recorded_device_whose_model_is_not_known_here_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path, replace(one_client(10, _MS, _MS), recorded=trace.RecordedDevice("our-san", 2 << 30)))
    with pytest.raises(InputError, match="our-san") as refused:
        device.replay(str(path), "hdd-7200")
    assert refused.value.subject == f"trace {path}"
    assert "--models" in refused.value.hint


def test_the_verbs_print_a_page_or_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path, one_client(100, _MS, 8 * _MS))
    assert device.replay(str(path), "raid0( 2,ssd-sata-2011 )") == 0
    told = capsys.readouterr().out
    assert "on raid0(2, ssd-sata-2011)" in told
    assert "predicted" in told
    assert "--data 'raid0(2, ssd-sata-2011)'" in " ".join(told.split())
    device.replay(str(path), "hdd-7200", "2GB", json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["ios"], document["keeps_up"]) == (100, True)
    assert document["latencies"][0]["predicted"]["p99_s"] > 0
    trace.write(path, one_client(2000, 900_000, 100_000))
    assert device.replay(str(path), "hdd-7200", "2GB") == 0
    assert "predicted " not in capsys.readouterr().out
    device.replay(str(path), "hdd-7200", "2GB", json=True)
    document = json.loads(capsys.readouterr().out)
    assert not document["keeps_up"]
    assert document["latencies"][0]["predicted"] is None
    assert document["predicted"]["elapsed_s"] > document["recorded"]["elapsed_s"]
    device.show("spread(2 x hdd-10k, ssd-sata-2011)", "20GB")
    told = capsys.readouterr().out
    assert "hdd-10k (2005)" in told
    assert "ssd-sata-2011 (2011)" in told
    assert "benchmark result (predicted)" in told
    assert "ASSUMED" in told
    device.show("raid-card", json=True)
    assert json.loads(capsys.readouterr().out)["models"][0]["kind"] == "controller"
