"""Replay of traces: the same work on another device, without waiting, and warnings about unreliable predictions."""

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
from ironbench.model.driven import CpuUse

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
    """Random blocks of a gigabyte, one after another."""
    rows = []
    for i in range(count):
        at = i * (think_ns + takes_ns)
        rows.append((at, op, i * 7919 * 8192 % (1 << 30), 8192, at + takes_ns))
    return made(rows)


def test_a_faster_device_saves_its_own_time_and_not_the_programs() -> None:
    found = replay.predicted(one_client(500, think_ns=1 * _MS, takes_ns=8 * _MS), "ssd-sata-2011", CORE)
    assert found.recorded_s == pytest.approx(4.5, abs=0.01)
    assert found.thinking_s == pytest.approx(0.499, abs=0.002)
    assert 0.499 < found.predicted_s < 0.6
    assert found.latencies[0].op == "read"
    assert found.latencies[0].count == 500


def test_kept_arrivals_keep_the_length() -> None:
    found = replay.predicted(one_client(500, _MS, 8 * _MS), "ssd-sata-2011", CORE, closed=False)
    assert found.predicted_s == pytest.approx(found.recorded_s, abs=0.01)


def test_a_prediction_out_of_its_range_says_so() -> None:
    reads = replay.predicted(one_client(300, 10_000, 8 * _MS), "hdd-7200", CORE)
    assert reads.out_of_range == ()
    writes = replay.predicted(one_client(300, 10_000, 8 * _MS, "write"), "hdd-7200(cache=off)", CORE)
    assert any("100% of the bytes are writes" in doubt for doubt in writes.out_of_range)
    flushes = replay.predicted(one_client(300, 10_000, 8 * _MS, "flush"), "ssd-nvme-2014", CORE)
    assert any("group commit" in doubt and "more flushes" in doubt for doubt in flushes.out_of_range)
    far = replay.predicted(one_client(300, 10_000, 8 * _MS), "ssd-nvme-consumer", CORE)
    assert any("times as long as recorded" in doubt for doubt in far.out_of_range)
    thinking = replay.predicted(one_client(300, 10 * _MS, 200_000), "ssd-nvme-2014", CORE)
    assert any("spent in the program" in doubt for doubt in thinking.out_of_range)


def several_clients(clients: int, count: int, think_ns: int, takes_ns: int) -> trace.Trace:
    """Several clients like `one_client`, each starting a little after the previous one."""
    rows = []
    for client in range(clients):
        for i in range(count):
            at = client * think_ns // clients // 3 + i * (think_ns + takes_ns)
            rows.append((at, "read", (client * count + i) * 7919 * 8192 % (1 << 30), 8192, at + takes_ns))
    return made(sorted(rows))


def test_several_clients_that_think_for_long_are_out_of_range_and_waiting_ones_are_not() -> None:
    waiting = replay.predicted(several_clients(4, 200, 10_000, 12 * _MS), "raid0(4, hdd-7200)", CORE)
    assert not any("at a time" in doubt for doubt in waiting.out_of_range)
    faster = replay.predicted(several_clients(4, 200, 10 * _MS, 12 * _MS), "ssd-sata-2011", CORE)
    assert any("slower than predicted" in doubt for doubt in faster.out_of_range)
    slower = replay.predicted(several_clients(4, 200, 3 * _MS, 1 * _MS), "hdd-7200", CORE)
    assert any("faster than predicted" in doubt for doubt in slower.out_of_range)
    alone = replay.predicted(one_client(200, 10 * _MS, 12 * _MS), "ssd-sata-2011", CORE)
    assert not any("at a time" in doubt for doubt in alone.out_of_range)


def computing(clients: int, count: int, computes_ns: int, takes_ns: int, cores: int) -> trace.Trace:
    """Several clients that only compute and read, on a machine that counted it and has enough cores."""
    plain = several_clients(clients, count, computes_ns, takes_ns)
    share = clients * computes_ns / (computes_ns + takes_ns)
    used = (plain.completed_ns * share).astype("u8")
    return replace(plain, processors=trace.CpuCounters(cores, used, used, used // 2, np.ones(len(used), "f4")))


def test_computing_takes_a_core_and_there_are_as_many_as_there_were() -> None:
    alone = computing(8, 100, 3 * _MS, 40 * _MS, cores=2)
    found = replay.predicted(alone, "ssd-nvme-2014", CORE)
    assert found.computing_s == pytest.approx(2.4, rel=0.1)
    assert 1.1 < found.predicted_s < 1.4
    assert found.cores == 2
    assert found.idling < 0.1
    assert not any("at a time" in doubt for doubt in found.out_of_range)
    more = replace(alone, processors=replace(alone.processors, cores=8))  # type: ignore[type-var]
    assert replay.predicted(more, "ssd-nvme-2014", CORE).predicted_s < 0.7
    assert replay.predicted(alone, "ssd-nvme-2014", CORE, closed=False).cores == 0
    assert alone.processors is not None
    emulated = replay.predicted(alone, "ssd-nvme-2014", CORE, answering_ns=alone.processors.answering_ns())
    assert 1.4 * found.predicted_s < emulated.predicted_s < 1.6 * found.predicted_s


def test_computing_on_mostly_idle_processors_is_said_where_it_decides_the_time() -> None:
    def colder(on: str, clients: int, cores: int) -> bool:
        found = replay.predicted(computing(clients, 100, 3 * _MS, 40 * _MS, cores), on, CORE)
        return any("after pauses" in doubt for doubt in found.out_of_range)

    assert colder("ssd-nvme-2014", clients=4, cores=2)
    assert colder("ssd-nvme-2014", clients=4, cores=16)
    assert colder("ssd-nvme-2014", clients=1, cores=2)
    assert not colder("hdd-10k", clients=4, cores=2)
    assert not colder("ssd-nvme-2014", clients=8, cores=2)


def test_ios_of_one_moment_stay_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    rows = [(moment, "write", 512 * number, 512, moment + 5) for moment in range(50) for number in range(2_000)]
    trace.write(path, made(rows))
    offsets = trace.read(path).offset.reshape(50, 2_000)
    assert (offsets == 512 * np.arange(2_000, dtype="u8")).all()


def test_what_arrived_while_a_trial_was_measured_is_replayed_and_several_trials_are_told_apart(tmp_path: Path) -> None:
    plain = one_client(100, _MS, 8 * _MS)
    trial = np.where(plain.time_ns < 200 * _MS, 0, np.where(plain.time_ns < 600 * _MS, 1, 2)).astype("u2")
    both = replace(computing(1, 100, _MS, 8 * _MS, 2), trial=trial)
    path = tmp_path / "trace.parquet"
    trace.write(path, both)
    found = trace.read(path)
    assert found.trial is not None
    assert found.trial.tolist() == trial.tolist()
    assert found.processors is not None
    assert both.processors is not None
    assert found.processors.used_ns.tolist() == both.processors.used_ns.tolist()
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
    one = recording.on_its_clock(counters, now - 30, 5, CpuUse(now - 40, now - 20, 3.0))
    assert one.began == pytest.approx(60e9, abs=1e9)
    assert one.ended - one.began == 5_000_000_000
    assert one.computed == pytest.approx((50e9, 70e9, 3e9), abs=1e9)
    assert recording.on_its_clock(counters, now, 5, None).computed is None


def test_what_others_computed_is_left_out_where_the_works_own_is_known() -> None:
    plain = computing(8, 100, 3 * _MS, 40 * _MS, cores=2)
    assert plain.processors is not None
    counts = plain.processors
    twice = replace(counts, used_ns=counts.used_ns * 2, runnable_ns=counts.runnable_ns * 2)
    halved = replace(twice, work_share=np.full(len(counts.used_ns), 0.5, "f4"))
    alone, disturbed = (
        replay.predicted(replace(plain, processors=one), "ssd-nvme-2014", CORE) for one in (counts, halved)
    )
    assert disturbed.computing_s == pytest.approx(alone.computing_s, rel=0.1)
    assert disturbed.predicted_s == pytest.approx(alone.predicted_s, rel=0.1)
    assert any("other programs used" in doubt for doubt in disturbed.out_of_range)
    assert not any("other programs used" in doubt for doubt in alone.out_of_range)


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


def test_the_time_of_an_emulation_is_added_only_where_the_trace_tells_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    trace.write(path, one_client(100, _MS, 8 * _MS))
    assert device.replay(str(path), "hdd-7200") == 0
    with pytest.raises(InputError, match="has no CPU times") as caught:
        device.replay(str(path), "hdd-7200", emulated=True)
    assert caught.value.subject == "--emulated"


def on_a_volume(takes_ns: int) -> trace.Trace:
    """One client on aws-gp3, whose reads take a constant time while it has operations left."""
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
    assert document["check"]["replayed_s"] == pytest.approx(document["recorded_s"], rel=0.02)


@pytest.mark.parametrize("factor", [20, 0.01])
def test_no_prediction_is_made_when_the_recorded_device_is_missed_by_more_than_a_quarter(
    tmp_path: Path, factor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.parquet"
    thinking = replace(
        one_client(200, 0, round(_GP3_READ_NS * factor)), recorded=trace.RecordedDevice("aws-gp3", 2 << 30)
    )
    trace.write(path, thinking)
    check = replay.checked(thinking, CORE)
    assert check is not None
    assert check.missed
    with pytest.raises(FailureError) as refused:
        device.replay(str(path), "hdd-7200")
    assert refused.value.subject == f"trace {path}"
    assert capsys.readouterr().out == ""


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
    device.replay(str(path), "hdd-7200", "2GB", arrivals=True, json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["ios"] == 100
    assert document["latencies"][0]["predicted"]["p99_s"] > 0
    device.show("spread(2 x hdd-10k, ssd-sata-2011)", "20GB")
    told = capsys.readouterr().out
    assert "hdd-10k (2005)" in told
    assert "ssd-sata-2011 (2011)" in told
    assert "benchmark result (predicted)" in told
    assert "ASSUMED" in told
    device.show("raid-card", json=True)
    assert json.loads(capsys.readouterr().out)["models"][0]["kind"] == "controller"
