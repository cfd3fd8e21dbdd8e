"""A zero-latency device, whose requests the kernel passes through: the same bytes, the same end of file."""

import mmap
import os
import platform
import random
import signal
import subprocess
from pathlib import Path

import pytest
from emulated import device_pid, needs_devices, nothing_left
from patience import eventually
from user import PAUSED, User

PAGE = 4096
PAGES = 2000

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("devices"), needs_devices]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.mark.parametrize(
    "model", ["free", *(pytest.param(one, marks=pytest.mark.long) for one in ("ram", "ssd-sata-2011"))]
)
def test_what_was_written_is_read_whoever_answers_and_when(user: User, model: str) -> None:
    point = user.home / "d"
    told = user("device", "mount", model, str(point), "--capacity", "400MiB", "--detach")
    assert told.code == 0, told.stderr
    passed = "the I/O path (kernel only)" in told.stderr
    assert passed == (model == "free" and passes_through())
    assert flushes(point) != passed
    chosen = random.Random(1)
    written = {}
    buffer = mmap.mmap(-1, 64 * PAGE)  # aligned, as O_DIRECT requires
    file = os.open(point / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    os.truncate(file, (PAGES + 64) * PAGE)
    for _ in range(500):
        place, length = chosen.randrange(PAGES), chosen.choice([1, 1, 1, 8, 64])
        data = chosen.randbytes(length * PAGE)
        buffer[: len(data)] = data
        assert os.pwrite(file, memoryview(buffer)[: len(data)], place * PAGE) == len(data)
        written |= {place + page: data[page * PAGE : (page + 1) * PAGE] for page in range(length)}
    os.fsync(file)
    for place, data in written.items():
        os.preadv(file, [memoryview(buffer)[:PAGE]], place * PAGE)
        assert buffer[:PAGE] == data
    os.close(file)
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home), user.nothing_runs()) == (0, True, True), ended.stderr


def passes_through() -> bool:
    """Returns whether the kernel supports FUSE passthrough (since Linux 6.9)."""
    return tuple(int(part) for part in platform.release().split(".")[:2]) >= (6, 9)


def flushes(point: Path) -> bool:
    mounts = map(str.split, Path("/proc/mounts").read_text().splitlines())
    (options,) = (words[3] for words in mounts if words[1] == str(point))
    return "nobarrier" not in options.split(",")


@pytest.mark.long
def test_what_is_discarded_beside_them_leaves_bytes_alone(user: User) -> None:
    point = user.home / "d"
    assert user("device", "mount", "free", str(point), "--capacity", "400MiB", "--detach").code == 0
    kept = os.urandom(40 << 20)
    for name in ("before", "discarded", "after"):
        (point / name).write_bytes(kept)
    os.sync()
    (point / "discarded").unlink()
    trimmed = subprocess.run(["fstrim", "-v", str(point)], capture_output=True, text=True, check=True)
    assert " 0 B" not in trimmed.stdout
    Path("/proc/sys/vm/drop_caches").write_text("1")
    assert (point / "before").read_bytes() == (point / "after").read_bytes() == kept
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home)) == (0, True), ended.stderr


@pytest.mark.long
def test_a_record_says_that_storage_was_emulated_though_its_process_saw_nothing(user: User) -> None:
    point = user.home / "d"
    assert user("device", "mount", "free", str(point), "--capacity", "400MiB", "--detach").code == 0
    words = ["--engine", "sqlite", "--data", str(point / "db"), "--with", "scale=1"]
    words += [*PAUSED, "--duration", "1s", "--warmup", "0s"]
    ran = user("run", "igen-oltp", *words)
    assert ran.code in (0, 3), ran.stderr
    (record,) = user.records()
    assert "emulated" in [one["code"] for one in record["warnings"]]
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home)) == (0, True), ended.stderr


@pytest.mark.long
def test_the_end_of_its_process_voids_the_trial_though_the_device_goes_on(user: User) -> None:
    words = ["--data", "free", "--duration", "10s", *PAUSED, "--warmup", "0s", "--with", "scale=1"]
    with user.begun("run", "igen-oltp", *words) as begun:
        begun.wait_for("trial 1")
        os.kill(device_pid(user.register), signal.SIGKILL)
        told, took_s = begun.end()
    assert told.code == 1 and took_s < 60, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided" and "SIGKILL" in record["cause"]
    assert eventually(lambda: nothing_left(user.home) and user.nothing_runs())


def test_its_memory_is_taken_at_mount(user: User) -> None:
    """Otherwise, the memory would be charged to the writer's control group, and a server would have less memory the
    more it writes."""
    point = user.home / "d"
    told = user("device", "mount", "free", str(point), "--capacity", "400MiB", "--detach")
    assert told.code == 0, told.stderr
    status = Path(f"/proc/{device_pid(user.register)}/status").read_text()
    assert int(status.split("RssShmem:")[1].split()[0]) * 1024 >= 400e6
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home)) == (0, True), ended.stderr
