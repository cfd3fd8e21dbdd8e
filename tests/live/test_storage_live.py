"""The storage workload on a real directory: its metrics, files and failures."""

from __future__ import annotations

import signal
from pathlib import Path

import launch
import pytest
from emulated import needs_devices
from patience import eventually
from user import records

pytestmark = pytest.mark.live

SUSPECT = 3
"""Exit code on a busy machine; everything here also holds for such trials."""
GOOD = ("ok", "suspect")
SHORT = ["--with", "seconds=0.1", "--with", "passes=2", "--with", "size=16MiB"]


def run(place: Path, results: Path, *more: str, check: bool = True) -> launch.Done:
    words = ["run", "storage", "--data", str(place), "--results", str(results), *SHORT, *more]
    done = launch.run(words)
    if check:
        assert done.returncode in (0, SUSPECT), done.stderr
    return done


# A pass ends at the end of its file. With 16 MiB in memory, few of the threads would get a CPU before the end.
ON_THREADS = ["--with", "size=1GiB", "--with", "seconds=1"]


@pytest.mark.parametrize(
    ("io", "more"), [("io_uring", []), pytest.param("threads", ON_THREADS, marks=pytest.mark.long)]
)
def test_it_prints_the_table_people_know_and_records_it(place: Path, tmp_path: Path, io: str, more: list[str]) -> None:
    done = run(place, tmp_path, "--with", f"io={io}", *more)
    for line in ("SEQ1M Q8T1", "SEQ1M Q1T1", "RND4K Q32T1", "RND4K Q1T1"):
        assert line in done.stdout
    (record,) = records(tmp_path)
    assert record["status"] in GOOD
    assert record["conditions"] == {"direct": "on", "io": io}
    metrics = record["metrics"]
    for test in ("kdm-seq1m-q8t1-read", "kdm-rnd4k-q32t1-read"):
        assert metrics[f"storage_bytes_per_s{{profile={test}}}"] > 0
        rate, latency = (metrics[f"storage_{name}{{profile={test}}}"] for name in ("iops", "latency_mean_s"))
        depth = 8 if "seq" in test else 32
        assert 0.5 * depth <= rate * latency <= 1.3 * depth, "Little's law: queue depth = rate × time"
    # with 1 GiB also 99.9th percentiles; on a busy machine also warnings
    assert len((tmp_path / "trials" / record["id"] / "record.json").read_bytes()) <= 9000
    assert list(place.iterdir()) == []


@pytest.mark.long
def test_every_set_of_tests_gives_its_figures(place: Path, tmp_path: Path) -> None:
    more = ["--with", "tests=real-world+scan+sync+sustained", "--with", "sustain=1", "--with", "mix=70"]
    done = run(place, tmp_path, *more, "--with", "compressible=50")
    for line in ("fdatasync 8K", "O_DSYNC 16K", "SCAN128K Q1T1 read", "SUSTAINED", "RND4K Q1T1 mixed"):
        assert line in done.stdout
    (record,) = records(tmp_path)
    # four sets of tests in one record
    assert len((tmp_path / "trials" / record["id"] / "record.json").read_bytes()) <= 10_000


def test_directories_side_by_side_are_measured_together(place: Path, tmp_path: Path) -> None:
    other = place / "other"
    other.mkdir()
    run(place, tmp_path, "--with", f"beside={other}", "--with", "tests=peak")
    (record,) = records(tmp_path)
    assert record["status"] in GOOD and record["choice"]["options"]["beside"] == str(other)
    assert list(other.iterdir()) == []


def test_two_results_are_set_beside_each_other(place: Path, tmp_path: Path) -> None:
    for label in ("before", "after"):
        run(place, tmp_path, "--label", label, "--with", "tests=peak")
    words = ["compare", "before", "after", "--results", str(tmp_path)]
    done = launch.run(words)
    assert done.returncode == 0
    assert "SEQ1M Q8T1 read" in done.stdout and "B / A" in done.stdout
    page = tmp_path / "page.html"
    assert launch.run(["report", "before", "after", "--results", tmp_path, "-o", page]).returncode == 0
    assert "Device performance" in page.read_text()


def test_what_was_there_before_is_left_alone(place: Path, tmp_path: Path) -> None:
    (place / "mine").write_text("precious")
    run(place, tmp_path, "--with", "tests=peak")
    assert [path.name for path in place.iterdir()] == ["mine"]
    assert (place / "mine").read_text() == "precious"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_nothing_is_left_behind(place: Path, tmp_path: Path, how: signal.Signals) -> None:
    # A pass of these tests ends after its time, and not at the end of the file, which memory reaches at once.
    more = ["--with", "tests=sync", "--with", "io=threads", "--with", "size=16MiB"]
    running = launch.Command(["run", "storage", "--data", str(place), "--results", str(tmp_path), *more])
    eventually(lambda: bytes_written(running.pid) > 2 * SIZE)
    assert list(place.iterdir()) == []
    running.send_signal(how)
    running.wait(20)
    assert list(place.iterdir()) == []
    if how is signal.SIGINT:
        assert running.returncode == 130
        (record,) = records(tmp_path)
        assert record["status"] == "cut-short"
        assert record["metrics"]["transactions"] > 0


SIZE = 16 << 20


def bytes_written(pid: int) -> int:
    """Returns the number of bytes that the process has written. After `SIZE` bytes, the file is filled."""
    counters = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counters["wchar"])


def test_a_device_that_is_full_is_said_to_be_full(tmp_path: Path) -> None:
    done = run(Path("/dev/shm"), tmp_path, "--with", "size=100TiB", check=False)
    assert done.returncode == 2
    assert "are free in this directory" in done.stderr
    assert records(tmp_path) == []


def test_a_file_system_without_direct_io_is_refused_unless_asked_for(tmp_path: Path) -> None:
    proc = run(Path("/proc"), tmp_path, check=False)
    assert proc.returncode == 2
    assert "/proc" in proc.stderr


@pytest.mark.xdist_group("devices")
@needs_devices
def test_a_file_system_is_filled_before_it_is_measured_and_empty_afterwards(tmp_path: Path) -> None:
    more = ["--capacity", "300MiB", "--with", "fill=70", "--with", "tests=peak", "--with", "passes=1"]
    words = ["run", "storage", "--data", "free", "--results", str(tmp_path), "--with", "size=16MiB"]
    done = launch.run([*words, *more, "--with", "seconds=0.05"])
    assert done.returncode in (0, SUSPECT), done.stderr
    (record,) = records(tmp_path)
    assert record["conditions"]["filled"] == "to 70%"
    assert record["metrics"]["capacity_used_share{role=data}"] == pytest.approx(0.7, abs=0.02)


@pytest.mark.long
@needs_devices
def test_a_log_write_does_not_wait_for_what_earlier_tests_left_in_the_devices_memory(tmp_path: Path) -> None:
    words = ["run", "storage", "--data", "hdd-7200", "--capacity", "300MiB", "--results", str(tmp_path)]
    options = ["tests=peak+sync", "size=64MiB", "passes=1", "seconds=0.5"]
    more = [word for option in options for word in ("--with", option)]
    done = launch.run([*words, *more])
    assert done.returncode in (0, SUSPECT), done.stderr
    (record,) = records(tmp_path)
    metrics = record["metrics"]
    # Most of these writes stayed in the device's cache, which takes seconds to write them to the medium.
    assert metrics["storage_bytes_per_s{profile=rnd4k-q32t1-write}"] > 10e6
    assert metrics["storage_latency_mean_s{profile=fdatasync-8k}"] < 0.1
