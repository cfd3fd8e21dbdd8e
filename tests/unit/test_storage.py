"""The storage workload: its tests, refusals and evaluation of passes; nothing here touches a device."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import launch
import pytest

from ironbench import catalogue, units, workloads
from ironbench._core import Histogram, StorageProgress
from ironbench.catalogue import base_name
from ironbench.catalogue.storage_tests import MIB, SET_WORDS, SETS, chosen, order, storage_test
from ironbench.errors import FailureError, InputError
from ironbench.model.record import Record
from ironbench.model.system import Choice, Device, Layout, Load, Partition, System
from ironbench.model.work import Work
from ironbench.study.summarise import summarise
from ironbench.words import THIN
from ironbench.workloads.storage import figures, files
from ironbench.workloads.storage.passes import PassResult, PassSettings, _settled, due, run

STORAGE = workloads.get("storage")


def options(**told: str) -> dict[str, str]:
    return STORAGE.validated(told)


def one_pass(name: str = "rnd4k-q1t1-read", ios: int = 1000, seconds: float = 2.0, began_s: float = 0.0) -> PassResult:
    test = next(test for lines in SETS.values() for line in lines for test in line if test.name == name)
    times = Histogram()
    for _ in range(ios):
        times.record(1_000_000)
    buckets = [ios // 20] * 20
    size = ios * test.block_bytes
    empty = Histogram()
    way = (empty, times) if test.direction == "write" else (times, empty)
    return PassResult(test, began_s, seconds, ios, size, ios * 1e-5, *way, tuple(buckets), "io_uring", "", False)


LINES = ["seq1m-q8t1", "seq1m-q1t1", "rnd4k-q32t1", "rnd4k-q1t1"]


@pytest.mark.parametrize(("name", "prefix"), [("default", "kdm-"), ("steady", "")])
def test_the_default_is_the_table_of_disk_benchmarks(name: str, prefix: str) -> None:
    names = [test.name for test in chosen(name, 0)]
    assert names == [f"{prefix}{line}-{way}" for way in ("read", "write") for line in LINES]
    assert {test.kdiskmark for test in chosen(name, 0)} == {name == "default"}


def test_a_pass_of_kdiskmark_ends_with_the_file_and_its_result_is_the_mean(tmp_path: Path) -> None:
    terms = PassSettings(16 * MIB, 0, "threads", 1, ())
    with files.made([str(tmp_path)], terms.size, direct=False) as measured:
        for test in chosen("default", 0)[::4]:
            assert run(test, measured, terms, 600.0, 0.0, StorageProgress()).bytes == terms.size
    found = figures.metrics([one_pass("kdm-rnd4k-q1t1-read", ios) for ios in (1000, 3000, 3500)])
    assert found["storage_bytes_per_s{profile=kdm-rnd4k-q1t1-read}"] == pytest.approx(2500 * 4096 / 2)


def test_sets_are_joined_without_doing_a_test_twice() -> None:
    names = [test.name for test in chosen("steady+peak+sync", 0)]
    assert len(names) == len(set(names)) == 8 + 6


def test_a_mix_comes_last_and_says_its_share() -> None:
    last = chosen("peak", 70)[-1]
    assert (last.name, last.read_percent) == ("rnd4k-q32t1-mix70", 70)
    assert storage_test(last.name) == last


@pytest.mark.parametrize("name", list(SETS))
def test_every_test_is_known_by_its_name_again(name: str) -> None:
    for test in chosen(name, 0):
        assert storage_test(test.name) == test
    assert storage_test("rnd4k") is None


def test_a_line_reads_before_it_writes_and_mixed_comes_after() -> None:
    names = [test.name for test in chosen("steady", 70)]
    lines = [name.rpartition("-")[0] for name in sorted(names, key=order)]
    assert lines[:6] == ["seq1m-q8t1"] * 3 + ["seq1m-q1t1"] * 3
    assert [name.rpartition("-")[2] for name in sorted(names, key=order)][:3] == ["read", "write", "mix70"]


def test_every_set_is_explained() -> None:
    assert set(SET_WORDS) == set(SETS)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"tests": "defalt"}, "default"),
        ({"tests": "default+"}, "known"),
        ({"size": "20MB"}, "whole MiB"),
        ({"size": "10MiB"}, "out of range"),
        ({"size": "1000000001"}, "whole MiB"),
        ({"passes": "0"}, "1 to 100"),
        ({"mix": "100"}, "0 to 99"),
        ({"fill": "100"}, "0 to 99"),
        ({"compressible": "101"}, "0 to 100"),
        ({"direct": "maybe"}, "on"),
        ({"direct": "off", "tests": "peak+cost"}, "reads from the page cache"),
    ],
)
def test_options_that_make_no_sense_are_refused(told: dict[str, str], words: str) -> None:
    with pytest.raises(InputError) as caught:
        options(**told)
    assert words in f"{caught.value.cause} {caught.value.hint}"


def test_too_many_tests_for_one_record_are_refused() -> None:
    with pytest.raises(InputError, match="the maximum is 20"):
        options(tests="default+nvme+classic+sync+scan+sustained", mix="70")


def test_how_long_it_takes_follows_from_passes_and_seconds() -> None:
    assert STORAGE.usual_duration_s(options()) == 8 * 5 * 5
    assert STORAGE.usual_duration_s(options(tests="peak+sustained", passes="3", seconds="2")) == 4 * 3 * 2 + 60


def test_a_directory_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--data"):
        STORAGE.fits(System("none", "n"), Choice("storage", options()))
    missing = System("none", "n", layout=Layout(data=str(tmp_path)))
    with pytest.raises(InputError, match="does not exist"):
        STORAGE.fits(missing, Choice("storage", options(beside="/not/there", direct="off")))


def test_a_file_that_does_not_fit_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are free in this directory"):
        files.require(str(tmp_path), 1 << 60, direct=False)
    assert list(tmp_path.iterdir()) == []


def test_a_filler_is_what_is_missing_to_the_level(tmp_path: Path) -> None:
    usage, size = shutil.disk_usage(tmp_path), 64 * MIB
    level = usage.used * 100 // usage.total + 2
    if usage.free < usage.total * 0.05 or usage.total < 100 * size:
        pytest.skip("the disk here is small or nearly full")
    filler = files.filler_bytes(str(tmp_path), level, size)
    assert filler % MIB == 0
    assert usage.used + size + filler == pytest.approx(usage.total * level / 100, abs=256 * MIB)


def test_a_file_system_that_is_fuller_already_is_refused(tmp_path: Path) -> None:
    usage = shutil.disk_usage(tmp_path)
    with pytest.raises(InputError, match="full"):
        files.require_level(str(tmp_path), 1, usage.total)


def test_a_file_system_is_filled_once_however_many_directories_of_it_are_measured(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("a", "b")]
    for folder in folders:
        Path(folder).mkdir()
    assert files.by_file_system([*folders, "/proc"]) == {folders[0]: 2, "/proc": 1}
    usage, size = shutil.disk_usage(tmp_path), 16 * MIB
    level = usage.used * 100 // usage.total + 2
    if usage.free < usage.total * 0.05 or usage.total < 100 * size:
        pytest.skip("the disk here is small or nearly full")
    with files.filled(folders[0], level, 2 * size, direct=False), files.made(folders, size, direct=False):
        now = shutil.disk_usage(tmp_path)
        assert now.used / now.total == pytest.approx(level / 100, abs=0.005)


def test_a_directory_in_memory_is_recognised(tmp_path: Path) -> None:
    memory = "/dev/shm"
    assert files.in_memory([memory]) == ([memory] if mounted_in_memory(memory) else [])
    assert files.in_memory(["/proc"]) == []


def mounted_in_memory(path: str) -> bool:
    lines = Path("/proc/mounts").read_text().splitlines()
    return any(line.split()[1:3] == [path, "tmpfs"] for line in lines)


def test_files_that_fit_alone_but_not_together_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    size = shutil.disk_usage(tmp_path).free * 7 // 10 // MIB * MIB
    beside = options(size=str(size), beside=str(tmp_path / "b"), direct="off")
    with pytest.raises(InputError, match="are free in this directory"):
        STORAGE.fits(System("none", "n", layout=Layout(data=str(tmp_path))), Choice("storage", beside))


def test_a_level_that_an_emulated_device_cannot_have_is_refused_before_it_is_mounted() -> None:
    device = Device("free", (Partition("data", 300 * MIB, "/not/there/yet"),))
    system = System("none", "n", layout=Layout(data="/not/there/yet", devices=(device,)))
    STORAGE.fits(system, Choice("storage", options(size="100MiB", fill="70")))
    with pytest.raises(InputError, match=r"3[34]% full"):
        STORAGE.fits(system, Choice("storage", options(size="100MiB", fill="30")))


def test_reads_from_the_page_cache_need_memory_for_all_of_the_file() -> None:
    device = Device("free", (Partition("data", 300 * MIB, "/not/there/yet"),))
    system = System("none", "n", layout=Layout(data="/not/there/yet", devices=(device,)))
    STORAGE.fits(system, Choice("storage", options(size="900TiB")))
    with pytest.raises(InputError, match="of free memory") as caught:
        STORAGE.fits(system, Choice("storage", options(size="900TiB", tests="real-world+cost")))
    assert "page cache" in caught.value.hint


def test_files_have_no_name_and_their_space_is_theirs(tmp_path: Path) -> None:
    with files.made([str(tmp_path)], 16 << 20, direct=False) as (file,):
        assert list(tmp_path.iterdir()) == []
        assert os.fstat(file.cached).st_size == 16 << 20
        os.pwrite(file.cached, b"x", 0)
        assert os.pread(file.synced, 1, 0) == b"x"
    with pytest.raises(OSError):
        os.fstat(file.cached)


def test_metrics_are_the_median_pass_and_the_range() -> None:
    found = figures.metrics([one_pass(ios=ios) for ios in (1000, 3000, 2000)])
    part = "{profile=rnd4k-q1t1-read}"
    assert found[f"storage_bytes_per_s{part}"] == 2000 * 4096 / 2
    assert found[f"storage_iops{part}"] == 1000
    assert found[f"storage_bytes_per_s_best{part}"] == 3000 * 4096 / 2
    assert found[f"storage_bytes_per_s_lowest{part}"] == 1000 * 4096 / 2
    assert found[f"storage_latency_mean_s{part}"] == pytest.approx(1e-3, rel=1e-3)
    assert found[f"storage_cpu_per_io_s{part}"] == pytest.approx(1e-5)
    assert all(base_name(name) in catalogue.metrics() for name in found)


def stored(passes: int) -> Record:
    from factories import DISK, record

    return replace(record(DISK, 1, 10.0), choice=Choice("storage", {"passes": str(passes)}))


@pytest.mark.parametrize(("passes", "said"), [(3, "too few passes"), (4, "too few passes"), (5, "apart")])
def test_ranges_are_called_apart_only_where_chance_alone_hardly_makes_them_so(passes: int, said: str) -> None:
    from ironbench.report.storage import compared
    from ironbench.study.compare import SystemComparison

    slow, fast = (
        figures.metrics([one_pass("dsync-8k", start + 10 * number) for number in range(passes)])
        for start in (1000, 2000)
    )
    rows = [SimpleNamespace(metric=name, a=summarise([slow[name]]), b=summarise([fast[name]])) for name in slow]
    trials = ((stored(passes),), (stored(passes),))
    comparison = cast(SystemComparison, SimpleNamespace(peaks=SimpleNamespace(rows=rows), trials=trials))
    (row,) = compared(comparison)[0][1].texts
    assert row[-1] == said


def test_wal_syncs_are_compared_by_the_ranges_of_their_passes() -> None:
    from factories import DISK, record

    from ironbench.report import sections as shown
    from ironbench.report.storage import compared
    from ironbench.study.compare import SystemComparison
    from ironbench.study.runstudy import studies

    passes = [[one_pass("dsync-8k", ios) for ios in counts] for counts in ((1000, 2000, 9000), (900, 4900, 8000))]
    metrics = [figures.metrics(each) for each in passes]
    rows = [
        SimpleNamespace(metric=name, a=summarise([a]), b=summarise([metrics[1][name]]))
        for name, a in metrics[0].items()
    ]
    trials = ((stored(3),), (stored(3),))
    comparison = cast(SystemComparison, SimpleNamespace(peaks=SimpleNamespace(rows=rows), trials=trials))
    (row,) = compared(comparison)[0][1].texts
    assert [cell.replace(",", "") for cell in row[1:3]] == ["1000", "2450"]
    assert [cell.replace(",", "") for cell in row[4:]] == ["500 to 4500", "450 to 4000", "overlap"]
    (study,) = studies([replace(record(DISK, 1, 10.0, metrics=metrics[0]), choice=Choice("storage"))])
    (section,) = [one for one in shown.sections(study) if one.id == "storage-sync"]
    assert section.tables[0][1].texts[0][2].replace(",", "") == "500 to 4500"


def test_one_pass_has_no_best() -> None:
    assert not any("best" in name for name in figures.metrics([one_pass()]))


def test_a_record_of_many_tests_keeps_what_is_asked_for_most() -> None:
    names = [test.name for test in chosen("default+nvme+sync", 0)][:14]
    found = figures.metrics([one_pass(name) for name in names for _ in range(2)])
    assert len(found) == 14 * 6
    assert {base_name(name) for name in found} >= {"storage_bytes_per_s_lowest", "storage_bytes_per_s_best"}
    assert sum(len(name) + 16 for name in found) < 5800


def test_a_sustained_write_tells_its_burst_from_what_settles() -> None:
    whole = one_pass("sustained-write")
    falling = [100] * 10 + [10] * 20
    slow = PassResult(
        **{name: getattr(whole, name) for name in whole.__slots__} | {"buckets": (*falling,), "elapsed_s": 3.0}
    )
    found = figures.metrics([slow])
    assert found["storage_burst_bytes_per_s{profile=sustained-write}"] == pytest.approx(1000 * (1 << 20), rel=1e-5)
    assert found["storage_settled_bytes_per_s{profile=sustained-write}"] == pytest.approx(100 * (1 << 20), rel=1e-5)
    (series,) = figures.series([slow])
    assert series.value == (1000.0 * (1 << 20), 100.0 * (1 << 20), 100.0 * (1 << 20))


def test_a_pass_without_any_io_says_nothing() -> None:
    assert figures.metrics([one_pass(ios=0)]) == {}


def test_several_directories_are_measured_alone_and_together() -> None:
    planned = due(options(tests="real-world", passes="2"), 2)
    assert [one.alone for one in planned[:3]] == [0, 1, None]
    assert len(planned) == 4 * 2 * 3
    together = [one_pass(ios=3000)]
    alone = [replace(one_pass(ios=2000), alone=number) for number in (0, 1)]
    found = figures.metrics([*alone, *together])
    assert found["storage_bytes_per_s{profile=rnd4k-q1t1-read}"] == 3000 * 4096 / 2
    assert found["storage_alone_bytes_per_s{profile=rnd4k-q1t1-read}"] == 2 * 2000 * 4096 / 2


def test_a_duration_is_shared_among_all_passes() -> None:
    planned = due(options(tests="peak+sustained", passes="2"), 1, duration_s=10.0)
    assert sum(one.seconds for one in planned) == pytest.approx(10.0)


def test_what_a_trial_will_have_is_known_before() -> None:
    promised = STORAGE.measures(options(tests="default+sync", passes="2"))
    names = [test.name for test in chosen("default+sync", 0)]
    found = figures.metrics([one_pass(name) for name in names for _ in range(2)])
    assert {f"{name}{{{part}}}" for name, parts in promised.items() for part in parts} == set(found)


def test_the_set_cost_keeps_its_cpu_time_beside_many_other_tests() -> None:
    names = [test.name for test in chosen("default+cost", 0)]
    assert len(names) == 18
    found = figures.metrics([one_pass(name) for name in names for _ in range(2)])
    of_cpu = {name for name in found if base_name(name) == "storage_cpu_per_io_s"}
    assert of_cpu == {f"storage_cpu_per_io_s{{profile={name}}}" for name in names if name.startswith("cost")}
    promised = STORAGE.measures(options(tests="default+cost", passes="2"))
    assert {f"{name}{{{part}}}" for name, parts in promised.items() for part in parts} == set(found)
    assert sum(len(name) + 16 for name in found) < 7000


def test_a_sustained_write_promises_no_figure_of_several_passes_or_of_one_directory_alone() -> None:
    asked = options(tests="real-world+sustained", passes="2", beside="/b")
    promised = STORAGE.measures(asked)
    short = ("rnd4k-q1t1-read", "seq1m-q1t1-read", "rnd4k-q1t1-write", "seq1m-q1t1-write")
    passes = [one_pass(name, ios=20_000) for name in short for _ in range(2)]
    passes += [replace(one_pass(name, ios=20_000), alone=number) for name in short for number in (0, 1)]
    found = figures.metrics([*passes, one_pass("sustained-write", ios=20_000)])
    assert {f"{name}{{{part}}}" for name, parts in promised.items() for part in parts} == set(found)


def test_reads_from_the_device_and_from_the_cache_are_compared_by_size() -> None:
    from factories import DISK, record

    from ironbench.report import sections as shown
    from ironbench.report.storage import headline
    from ironbench.study.runstudy import studies

    metrics = {}
    for name, cost_s in (("cost8k-device", 12e-6), ("cost8k-cached", 4e-6)):
        metrics[f"storage_bytes_per_s{{profile={name}}}"] = 1e8
        metrics[f"storage_cpu_per_io_s{{profile={name}}}"] = cost_s
    (study,) = studies([replace(record(DISK, 1, 10.0, metrics=metrics), choice=Choice("storage"))])
    assert "COST8K device: 12.0 µs of CPU time per read" in headline(study)[0][1].replace(THIN, " ")
    (section,) = [one for one in shown.sections(study) if one.id == "storage-cost"]
    (row,) = section.tables[0][1].texts
    assert [cell.replace(THIN, " ") for cell in row] == ["8K", "12.0 µs", "4.00 µs", "8.00 µs", "977 ms"]
    assert [key.label for key in section.charts[0].legend] == ["from the device", "from the page cache"]


def test_a_flush_that_fails_before_a_log_is_measured_is_a_failure_of_the_storage(tmp_path: Path) -> None:
    reading, writing = os.pipe()  # a file that cannot be synced: fdatasync(2), EINVAL
    try:
        with pytest.raises(FailureError, match="a flush failed"):
            _settled([files.TestFile(str(tmp_path), reading, reading, reading)])
    finally:
        os.close(reading)
        os.close(writing)


def test_a_scan_through_an_empty_page_cache_begins_when_what_was_written_is_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushed.append)
    (scan,) = [test for test in chosen("scan", 0) if test.cached]
    terms = PassSettings(16 * MIB, 0, "threads", 1, ())
    with files.made([str(tmp_path)], terms.size, direct=False) as measured:
        done = run(scan, measured, terms, 0.02, 0.0, StorageProgress())
        assert flushed == [measured[0].cached] and done.ios > 0


@pytest.mark.parametrize(("direct", "evicts"), [(True, True), (False, False)])
def test_a_direct_write_finds_nothing_in_the_page_cache_that_it_must_throw_away(
    direct: bool, evicts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        files.require(str(tmp_path), 16 * MIB, direct)
    except InputError as error:
        pytest.skip(str(error))
    evicted: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda fd, *of_it: evicted.append(fd))
    terms = PassSettings(16 * MIB, 0, "threads", 1, ())
    with files.made([str(tmp_path)], terms.size, direct) as measured:
        for name in ("rnd4k-q1t1-read", "rnd4k-q1t1-write"):
            test = storage_test(name)
            assert test is not None and not evicted
            run(test, measured, terms, 0.02, 0.0, StorageProgress())
        assert evicted == ([measured[0].cached] if evicts else [])


@pytest.mark.parametrize(
    ("server", "client", "held"), [((0, 1), (2,), (0, 1)), (None, (2,), (2,)), ((1,), None, (1,)), (None, None, ())]
)
def test_its_threads_are_held_to_the_cpus_that_the_record_says(
    server: tuple[int, ...] | None,
    client: tuple[int, ...] | None,
    held: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[PassSettings] = []

    def fill(measured: list[files.TestFile], terms: PassSettings, progress: StorageProgress) -> None:
        seen.append(terms)
        raise FailureError("test", "is over")

    monkeypatch.setattr("ironbench.workloads.storage.passes.fill", fill)
    layout = Layout(data=str(tmp_path))
    system = System("none", "n", layout=layout, server_cpus=server, client_cpus=client)
    choice = Choice("storage", options(size="16MiB", direct="off"))
    work = SimpleNamespace(
        system=system, choice=choice, load=Load(), on_stop=lambda stop: None, show=lambda share, words: None
    )
    with pytest.raises(FailureError, match="is over"):
        STORAGE.drive(cast("Work", work))
    assert [terms.cpus for terms in seen] == [held]


def test_plans_count_the_rests_between_passes(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    start = 'question = "Which?"\n[workload]\nname = "storage"\nwith = { size = "16MiB", interval = INTERVAL }\n'

    def estimate_s(interval: int) -> float:
        text = start.replace("INTERVAL", str(interval)) + '[vary]\nlayout.data = ["./a", "./b"]\n'
        text += '[measure]\nmetric = "storage_iops{profile=kdm-rnd4k-q1t1-read}"\n'
        (tmp_path / "disks.toml").write_text(text)
        done = launch.run(["lab", "plan", "disks.toml", "--json"], cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return float(json.loads(done.stdout)["estimate_s"])

    rests_s = 3.0 * len(due(options(size="16MiB"), 1))
    assert estimate_s(3) - estimate_s(0) == pytest.approx(12 * rests_s)
    words = ["run", "storage", "--data", "./a", "--with", "size=16MiB", "--with", "interval=3", "--plan"]
    done = launch.run(words, cwd=tmp_path)
    assert f"and {units.span(rests_s)} of pauses between measurements" in done.stdout
