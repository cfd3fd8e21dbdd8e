"""The device model is asked for the same I/Os, at the same offsets, that fio issued on an emulated device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import emulation, outside
from bench.outside import Done, Point, Run, Seen

SEQUENTIAL = Point("1 MiB sequential read, depth 8", "read", 1 << 20, 8, False)


def test_a_point_has_ten_thousand_ios_or_the_model_is_asked_for_the_same() -> None:
    runs = [run for name in ("hdd-10k", "ssd-sata", "aws-gp3") for run in emulation._runs(name)]
    assert {run.logged for run in runs} == {False, True}
    for run in runs:
        assert run.seconds <= emulation.LONGEST_S
    fast = [run for run in emulation._runs("ssd-sata") if run.point.random]
    assert not any(run.logged for run in fast)
    assert all(run.logged for run in emulation._runs("hdd-10k"))


def test_fios_logs_are_read_in_their_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "fio version 3 iolog\n30 f add\n323 f open\n327 f read 8192 4096\n5308 f read 0 4096\n9000 f close\n"
    )
    assert outside.offsets_of(log).tolist() == [8192, 0]
    log.write_text("27, 14423609, 0, 4096, 0, 0\n31, 18100000, 0, 4096, 0, 0\n")
    ended_ms, took_ns = outside.latencies_of(log)
    assert (ended_ms.tolist(), took_ns.tolist()) == ([27, 31], [14423609, 18100000])


def test_the_model_answers_given_ios_as_it_does_those_of_a_probe() -> None:
    places = np.arange(500, dtype="u8") << np.uint64(20)
    run = Run(SEQUENTIAL, 0, 1, logged=True)
    ours = outside.modelled("hdd-7200", run, Done(places, 0, 500))
    probed = outside.expected("hdd-7200", SEQUENTIAL, 500)
    assert ours == replace(probed, p99_between_s=(probed.p99_s, probed.p99_s))
    assert probed.p99_between_s[0] <= probed.p99_s <= probed.p99_between_s[1]
    inner = outside.modelled("hdd-7200", run, Done(places, 400, 92))
    assert inner.count == 92
    assert inner.iops < ours.iops


def test_the_first_extent_of_a_file_is_its_begin(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (1 << 20))
    try:
        found = outside.extents(file)
    except OSError as error:
        pytest.skip(f"this file system does not tell where its files are: {error}")
    begins = [begin for begin, _ in found]
    assert begins[0] == 0
    assert begins == sorted(set(begins))


def test_a_percentile_is_held_against_the_nearest_end_of_its_range() -> None:
    wanted = Seen(1.0, 1.0, 3.0, 100, (2.0, 4.0), 0.9)
    assert [wanted.p99_beyond(seen) for seen in (1.0, 2.5, 9.0)] == [2.0, 2.5, 4.0]
