"""Processor and memory kernels: correct results, refused memory sizes, flagged disturbances, and a chart."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from ironbench import _core, workloads
from ironbench.cli import main
from ironbench.errors import FailureError, InputError
from ironbench.model.record import Record
from ironbench.model.system import Choice, Load, System
from ironbench.records import Store
from ironbench.workloads import free_memory
from ironbench.workloads.kernels import _columns

HERE = System("none", "here")


def run(monkeypatch: pytest.MonkeyPatch, results: Path, *words: str) -> Record:
    monkeypatch.setattr("sys.argv", ["ironbench", "run", *words, "--results", str(results), "--no-observe"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, 3)
    return Store(results).all()[-1]


@pytest.mark.parametrize("variant", ["scalar", "vector"])
def test_pictures_are_counted_and_their_checksum_held(
    variant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ["--with", f"variant={variant}", "--with", "width=64", "--with", "height=40", "--with", "pin=yes"]
    record = run(monkeypatch, tmp_path, "igen-cpu", *options, "--clients", "2", "--duration", "0.3s", "--warmup", "0s")
    assert [check.passed for check in record.checks] == [True]
    assert record.metrics["throughput"] > 10
    assert 0.45 < record.metrics["float_operations_share"] < 0.55
    assert record.conditions["threads pinned"] == "one CPU per thread"
    assert record.system.engine == "none"


def test_both_variants_have_one_checksum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {
        run(monkeypatch, tmp_path, "igen-cpu", "--with", f"variant={one}", "--duration", "1s", "--warmup", "0s")
        .conditions["checksum"]
        for one in ("scalar", "vector")
    }  # fmt: skip
    assert len(found) == 1


def test_a_lottery_tells_allocation_and_search_apart_and_together(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = ["--with", "memory=4MiB", "--with", "draws=2000"]
    metrics = run(monkeypatch, tmp_path, "igen-ram", *options, "--duration", "0.3s").metrics
    assert metrics["draws_per_s"] == pytest.approx(metrics["throughput"] * 2000)
    assert metrics["draws_per_s{phase=search}"] > metrics["draws_per_s"]
    parts = metrics["response_time_mean_s{phase=search}"] + metrics["response_time_mean_s{phase=allocate}"]
    assert parts == pytest.approx(metrics["response_time_mean_s"], rel=0.01)
    for probe in ("memory_copy_bytes_per_s", "memory_triad_bytes_per_s", "memory_latency_s"):
        assert metrics[probe] > 0


def test_probes_of_little_memory_say_that_they_measured_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ["--with", "memory=4MiB", "--with", "draws=2000"]
    record = run(monkeypatch, tmp_path, "igen-ram", *options, "--duration", "0.2s")
    (found,) = [warning for warning in record.warnings if warning.code == "probes-within-caches"]
    assert found.values["probed_bytes"] == 4 << 20


def test_huge_pages_and_numa_nodes_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ["--with", "memory=4MiB", "--with", "draws=2000", "--with", "probes=no", "--with", "huge=no"]
    record = run(monkeypatch, tmp_path, "igen-ram", *options, "--duration", "0.2s")
    assert record.conditions["huge pages"] in ("0% of the memory", "not visible here")
    assert "NUMA nodes" in record.conditions
    assert "memory_latency_s" not in record.metrics


def test_the_end_of_a_trial_is_no_standstill_in_its_course() -> None:
    columns = _columns([3] * 10 + [1], 1.0)
    found = {name: np.frombuffer(of["transactions"], "<f8").tolist() for name, of in columns.items()}
    assert found == {"timeline": [3.0] * 9 + [4.0], "seconds": [31.0]}
    short = _columns([2, 2], 0.25)
    assert np.frombuffer(short["timeline"]["transactions"], "<f8").tolist() == [2.0, 2.0, 0.0]


def test_more_threads_than_cpus_are_allowed_and_marked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ["--with", "width=64", "--with", "height=40", "--client-cpus", "0"]
    record = run(monkeypatch, tmp_path, "igen-cpu", *options, "--clients", "3", "--duration", "0.2s")
    assert "more-threads-than-cpus" in [warning.code for warning in record.warnings]


def test_memory_beyond_what_is_free_is_refused_before_the_first_byte() -> None:
    free_memory.require("here", 2, 1 << 30, available=3 << 30)
    with pytest.raises(InputError, match="3 threads of 1024 MiB exceed the 3072 MiB of free memory"):
        free_memory.require("here", 3, 1 << 30, available=3 << 30)
    ram = workloads.get("igen-ram")
    with pytest.raises(InputError, match="of free memory"):
        ram.accepts(HERE, Load(clients=64, on_error="stop"), Choice("igen-ram", ram.validated({"memory": "1TB"})))
    cpu = workloads.get("igen-cpu")
    with pytest.raises(InputError, match="5000 threads of 1525 MiB"):
        large = Choice("igen-cpu", cpu.validated({"width": "20000", "height": "20000"}))
        cpu.accepts(HERE, Load(clients=5000, on_error="stop"), large)


@pytest.mark.parametrize(
    ("workload", "options", "cause"),
    [
        ("igen-ram", {"memory": "1kB"}, "too little memory"),
        ("igen-ram", {"memory": "much"}, "is not a size"),
        ("igen-ram", {"huge": "perhaps"}, "is unknown"),
        ("igen-cpu", {"variant": "fast"}, "is unknown"),
        ("igen-cpu", {"width": "1"}, "out of range"),
    ],
)
def test_options_that_make_no_sense_are_refused(workload: str, options: dict[str, str], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        workloads.get(workload).validated(options)


def test_a_picture_needs_a_directory_that_exists(tmp_path: Path) -> None:
    cpu = workloads.get("igen-cpu")
    choice = Choice("igen-cpu", cpu.validated({"png": str(tmp_path / "no" / "set.png")}))
    with pytest.raises(InputError, match="not in an existing directory"):
        cpu.accepts(HERE, Load(on_error="stop"), choice)


def test_a_picture_is_given_up_when_nobody_waits_for_it_and_errors_come_through() -> None:
    asked: list[int] = []
    assert _core.mandelbrot_png(20_000, 1000, 1_000_000, lambda: asked.append(1) or len(asked) > 2) is None
    assert len(asked) == 3
    with pytest.raises(ZeroDivisionError):
        _core.mandelbrot_png(90, 60, 100, lambda: bool(1 / 0))


def test_the_picture_is_a_png_of_the_set() -> None:
    data = _core.mandelbrot_png(90, 60, 100, lambda: False)
    assert data is not None
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (90, 60)
    place, chunks = 8, []
    while place < len(data):
        size, kind = struct.unpack(">I4s", data[place : place + 8])
        body, (sum_of,) = data[place + 8 :][:size], struct.unpack(">I", data[place + 8 + size :][:4])
        assert zlib.crc32(kind + body) == sum_of
        chunks.append(kind)
        place += size + 12
    assert (chunks[0], chunks[-1], place) == (b"IHDR", b"IEND", len(data))


def test_a_plan_that_makes_no_sense_and_memory_that_cannot_be_had_are_errors() -> None:
    with pytest.raises(InputError, match="missing field"):
        _core.Kernels(b'{"threads": 1}')
    plan = b'{"threads":1,"pin":[],"warmup_s":0,"seed":1,"kernel":{"kind":"lottery","bytes":4611686018427387904,'
    workers = _core.Kernels(plan + b'"huge":"no","draws":1,"probe_s":0}}')
    workers.start(0.1)
    with pytest.raises(FailureError, match="cannot allocate"):
        workers.result()


def test_what_limits_a_server_limits_work_without_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = ["--with", "width=64", "--with", "height=40", "--server-cpus", "0"]
    record = run(monkeypatch, tmp_path, "igen-cpu", *options, "--clients", "1", "--duration", "0.2s")
    assert record.conditions["CPUs"] == "0"
