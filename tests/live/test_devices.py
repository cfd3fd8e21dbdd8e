"""An emulated device is mounted and used, and leaves nothing behind, however it ends."""

import json
import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest
from emulated import HERE, needs_devices, nothing_left
from patience import eventually
from user import PAUSED, User

from ironbench.devices import emulation_rate, mounting
from ironbench.errors import InputError
from ironbench.model.system import Device, Partition
from ironbench.words import grouped

FAILED = 1
"""Exit code of a failed command."""
pytestmark = [pytest.mark.live, pytest.mark.xdist_group("devices"), needs_devices]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path / "home with a space")


def entries(user: User) -> list[dict]:
    return [json.loads(path.read_text()) for path in user.register.glob("*.json")]


@pytest.mark.parametrize("file_system", HERE)
def test_a_device_carries_a_file_system_until_it_is_told_to_end(user: User, file_system: str) -> None:
    point = user.home / "mount point"
    told = user("device", "mount", "free", str(point), "--fs", file_system, "--capacity", "400MiB", "--detach")
    assert (told.code, told.stdout.strip()) == (0, str(point)), told.stderr
    assert point.is_mount()
    longest = point / ("n" * 255)
    longest.write_bytes(b"x" * 100_000)
    assert longest.read_bytes() == b"x" * 100_000
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home)) == (0, True), ended.stderr
    assert not point.is_mount() and user.nothing_runs()


def test_a_device_in_the_foreground_ends_with_ctrl_c(user: User) -> None:
    point = user.home / "d"
    with user.begun("device", "mount", "free", str(point)) as begun:
        begun.wait_for("press Ctrl-C to unmount")
        assert point.is_mount()
        told, _ = begun.end(signal.SIGINT)
    assert (told.code, told.stdout.strip()) == (0, str(point)), told.stderr
    assert nothing_left(user.home) and user.nothing_runs()


def test_a_device_ends_with_the_ironbench_that_is_killed(user: User) -> None:
    trace = str(user.home / "t.parquet")
    with user.begun("device", "mount", "free", str(user.home / "d"), "--trace", trace) as begun:
        begun.wait_for("press Ctrl-C to unmount")
        begun.end(signal.SIGKILL)
    assert eventually(lambda: nothing_left(user.home) and user.nothing_runs())
    assert eventually(lambda: not list(user.home.glob("t.parquet*"))), "rows of which nobody makes a trace any more"


def test_cleanup_takes_apart_what_outlived_both_processes(user: User) -> None:
    with user.begun("device", "mount", "ssd-sata-2011", str(user.home / "d"), "--capacity", "1GiB") as begun:
        begun.wait_for("press Ctrl-C to unmount")
        (entry,) = entries(user)
        os.kill(begun.process.pid, signal.SIGSTOP)  # so that it cannot clean up after its device
        os.kill(entry["server"]["pid"], signal.SIGKILL)
        os.kill(begun.process.pid, signal.SIGKILL)
        begun.end()
    assert not nothing_left(user.home)
    told = user("cleanup")
    assert (told.code, nothing_left(user.home), user.nothing_runs()) == (0, True, True), told.stderr
    assert "device" in told.stderr


@pytest.mark.skipif("btrfs" not in HERE, reason="mkfs.btrfs is not installed")
def test_btrfs_is_made_although_another_device_has_died_and_is_not_yet_unmounted(user: User) -> None:
    with user.begun("device", "mount", "free", str(user.home / "dead")) as dying:
        dying.wait_for("press Ctrl-C to unmount")
        (entry,) = entries(user)
        os.kill(dying.process.pid, signal.SIGSTOP)  # so that it unmounts late
        os.kill(entry["server"]["pid"], signal.SIGKILL)
        late = threading.Timer(3.0, os.kill, (dying.process.pid, signal.SIGCONT))
        late.start()
        told = user(
            "device", "mount", "free", str(user.home / "d"), "--fs", "btrfs", "--capacity", "400MiB", "--detach"
        )
        late.join()
        dying.end()
    assert told.code == 0, told.stderr
    assert user("device", "unmount", str(user.home / "d")).code == 0
    assert eventually(lambda: nothing_left(user.home) and user.nothing_runs())


@pytest.mark.usefixtures("own_register")
def test_a_model_that_is_too_fast_leaves_no_trace_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(emulation_rate, "TOO_FAST", 0.0)
    device = Device("hdd-7200", (Partition("data", 1 << 30, str(tmp_path / "d")),))
    with pytest.raises(InputError, match="I/O path allows only"):
        mounting.Mounted(device, trace=tmp_path / "t.parquet")
    assert nothing_left(tmp_path) and not list(tmp_path.glob("t.parquet*"))


def test_a_mount_point_that_is_not_empty_is_refused(user: User) -> None:
    (user.home / "d").mkdir()
    (user.home / "d" / "file").touch()
    told = user("device", "mount", "free", str(user.home / "d"))
    assert told.code == 2 and "not an empty directory" in told.stderr and user.nothing_runs()


def test_a_mount_point_that_is_in_use_is_refused(user: User) -> None:
    point = str(user.home / "d")
    assert user("device", "mount", "free", point, "--detach").code == 0
    told = user("device", "mount", "free", point)
    assert told.code == 2 and "already mounted there" in told.stderr
    assert user("device", "unmount", "free").code == 0
    assert nothing_left(user.home)


def test_a_device_whose_process_cannot_begin_says_why_and_leaves_nothing(user: User) -> None:
    """In /proc, no directory can be created, which is detected only by trying."""
    told = user("device", "mount", "free", "/proc/ironbench", "--trace", str(user.home / "t.parquet"))
    assert (told.code, user.nothing_runs()) == (1, True) and "/proc/ironbench" in told.stderr, told.stderr
    assert "No such file" in told.stderr and nothing_left(user.home)
    assert not list(user.home.glob("t.parquet*"))


def test_more_memory_than_there_is_is_refused(user: User) -> None:
    told = user("device", "mount", "free", "--capacity", "100TB")
    assert told.code == 2 and "of memory" in told.stderr and user.nothing_runs()


@pytest.mark.parametrize("engine", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)])
def test_a_workload_runs_on_a_device(user: User, engine: str) -> None:
    words = [*PAUSED, "--engine", engine, "--data", "free", "--duration", "2s", "--warmup", "0s", "--with", "scale=1"]
    user.measured("run", "igen-oltp", *words, *(["--log", "free"] if engine == "postgres" else []))
    (record,) = user.records()
    assert any("emulated free" in text for text in record["conditions"].values())
    assert record["metrics"]["device_writes_per_s{role=data}"] >= 0
    assert nothing_left(user.home) and user.nothing_runs()


@pytest.mark.long
def test_duckdb_runs_on_a_device_and_its_reads_are_timed_there(user: User) -> None:
    words = ["--engine", "duckdb", "--data", "ssd-sata-2011", "--cache", "cold", "--with", "test=stream"]
    # Several queries: the reads of a single one may end before the first sample.
    user.measured("run", "tpch", *words, "--with", "sf=0.1", "--with", "check=no")
    (record,) = user.records()
    assert any("emulated ssd-sata-2011" in text for text in record["conditions"].values())
    assert record["metrics"]["device_reads_per_s{role=data}"] > 0
    assert nothing_left(user.home) and user.nothing_runs()


@pytest.mark.long
def test_a_device_that_is_killed_voids_the_trial_and_nothing_hangs(user: User) -> None:
    words = [*PAUSED, "--data", "ssd-sata-2011", "--duration", "30s", "--warmup", "0s", "--with", "scale=1"]
    with user.begun("run", "igen-oltp", *words) as begun:
        assert eventually(lambda: any(entry["kind"] == "device" for entry in entries(user)))
        begun.wait_for("trial 1")
        device = next(entry for entry in entries(user) if entry["kind"] == "device")
        assert eventually(lambda: (user.home / "runtime").exists())
        os.kill(device["server"]["pid"], signal.SIGKILL)
        told, took_s = begun.end()
    assert told.code == 1 and took_s < 60, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided" and "SIGKILL" in record["cause"]
    assert nothing_left(user.home) and user.nothing_runs()


@pytest.mark.long
def test_a_full_backing_reaches_the_engine_as_no_space(user: User) -> None:
    small = user.home / "small"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=80m tmpfs '{small}'") != 0:
        pytest.skip("nothing can be mounted here")
    try:
        words = ["--data", "free", "--backing", str(small), "--duration", "1s", "--with", "scale=4"]
        told = user("run", "igen-oltp", *words)
        assert told.code == 1 and "space" in told.stderr.lower(), told.stderr
    finally:
        os.system(f"umount -l '{small}'")
    assert user.nothing_runs()
    shutil.rmtree(small, ignore_errors=True)


def test_a_trace_that_is_cut_short_is_said_and_not_kept(user: User) -> None:
    small, point = user.home / "small", user.home / "d"
    small.mkdir()
    if os.system(f"mount -t tmpfs -o size=16k tmpfs '{small}'") != 0:
        pytest.skip("nothing can be mounted here")
    try:
        with user.begun("device", "mount", "free", str(point), "--trace", str(small / "t.parquet")) as begun:
            begun.wait_for("press Ctrl-C to unmount")
            file = os.open(point / "f", os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
            for _ in range(600):  # rows of 32 bytes
                os.write(file, b"x" * 4096)
            os.close(file)
            told, _ = begun.end(signal.SIGINT)
        assert told.code == 1 and "incomplete" in told.stderr and "No space left" in told.stderr, told.stderr
        assert not list(small.iterdir())
    finally:
        os.system(f"umount -l '{small}'")
    assert nothing_left(user.home)


def test_a_trace_is_written_when_another_command_unmounts_the_device(user: User) -> None:
    point, trace = user.home / "d", user.home / "t.parquet"
    with user.begun("device", "mount", "free", str(point), "--trace", str(trace)) as begun:
        begun.wait_for("press Ctrl-C to unmount")
        with (point / "f").open("wb") as file:
            file.write(b"x" * 100_000)
            file.flush()
            os.fsync(file.fileno())
        ended = user("device", "unmount", str(point))
        told, _ = begun.end()
    assert (ended.code, told.code, trace.is_file()) == (0, 0, True), told.stderr
    assert user("device", "trace", "replay", str(trace), "--on", "hdd-7200").code == 0
    assert nothing_left(user.home)


@pytest.mark.long
def test_writing_under_memory_pressure_never_stops(user: User) -> None:
    """All dirty pages must be written to the device although the engine's control group has no memory left."""
    words = ["--data", "free", "--fs", "ext4", "--with", "scale=8", "--clients", "8", "--duration", "30s"]
    told = user("run", "igen-oltp", *words, "--memory", "32MB", "--memory-total", "192MB", "--warmup", "0s")
    if "--memory-total" in told.stderr and told.code == 2:
        pytest.skip(told.stderr)
    assert told.code in (0, 3), told.stderr
    (record,) = user.records()
    assert record["metrics"]["throughput"] > 0 and nothing_left(user.home)


def test_with_a_limit_on_all_memory_the_wal_of_a_what_if_is_on_a_zero_latency_device(user: User) -> None:
    words = ["--ideal", "log", "--set", "max_wal_size=128MB", "--with", "scale=1", "--clients", "2"]
    told = user("run", "simple-update", *words, "--memory-total", "512MiB", "--duration", "2s", "--warmup", "0s")
    if "--memory-total" in told.stderr and told.code == 2:
        pytest.skip(told.stderr)
    assert told.code in (0, 3), told.stderr
    (record,) = user.records()
    system, layout = record["system"], record["system"]["layout"]
    assert system["memory_total_bytes"] == 512 << 20
    (device,) = layout["devices"]
    assert device["model"] == "free" and layout["log"] == device["partitions"][0]["directory"]
    assert record["metrics"]["wal_bytes_per_s"] > 0 and nothing_left(user.home)


def test_a_calibration_says_what_this_machine_can_emulate_and_is_known_afterwards(user: User) -> None:
    told = user("device", "calibrate", "--json")
    assert told.code == 0, told.stderr
    rate, models = told.document["rate"], told.document["models"]
    assert rate["reads_per_s"] > 1000 and 1e-6 < rate["read_latency_s"] < 0.01
    assert models["hdd-7200"]["fidelity"] == "faithful" and "free" not in models
    assert nothing_left(user.home) and user.nothing_runs()
    assert user("lab", "new", "storage").code == 0
    text = (user.home / "storage.toml").read_text()
    assert f"This machine emulated at most {grouped(rate['reads_per_s'])} reads/s on " in text
    fast = models["ssd-nvme-enterprise"]["fidelity"] == "refused"
    assert re.search(rf"^{'# ' if fast else ''}NVMe = ", text, re.MULTILINE), "a refused device is commented out"


TRACED = """
question = "How long does a random read take?"

[workload]
name = "storage"
with = { tests = "real-world", size = "16MiB", passes = 1, seconds = 0.1 }

[vary.device]
free = { layout.data = "free" }
disk = { layout.data = "hdd-7200" }

[measure]
repeats = 2
metric = "storage_iops{profile=rnd4k-q1t1-read}"
"""


@pytest.mark.long
def test_every_trial_of_a_lab_leaves_a_trace_that_can_be_replayed(user: User) -> None:
    file, traces = user.home / "traced.toml", user.home / "traces"
    file.write_text(TRACED)
    user.measured("lab", "run", str(file), "--results", str(user.home / "lab"), "--trace", str(traces))
    trials = {path.name for path in (user.home / "lab" / "trials").iterdir()}
    assert {path.name.removesuffix("-data.parquet") for path in traces.iterdir()} == trials and len(trials) == 4
    slow = next(path for path in traces.iterdir() if "disk" in path.name)
    replayed = user("device", "trace", "replay", str(slow), "--on", "ssd-sata-2011", "--json")
    if replayed.code == FAILED:
        pytest.skip("other programs used the machine: latencies differ from the recorded device's")
    assert replayed.code == 0 and replayed.document["keeps_up"]
    assert abs(replayed.document["check"]["miss"]) <= 0.25
    assert replayed.document["predicted"]["in_flight"] < replayed.document["recorded"]["in_flight"]
    whole = user("device", "trace", "replay", str(slow), "--on", "ssd-sata-2011", "--trial", "all", "--json")
    assert 0 < replayed.document["ios"] < whole.document["ios"]
