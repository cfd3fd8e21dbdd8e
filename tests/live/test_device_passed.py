"""A free device, whose requests the kernel passes through to its bytes: the same bytes, the same ends."""

import mmap
import os
import random
import signal
from pathlib import Path

import pytest
from emulated import device_pid, needs_devices, nothing_left
from user import User, eventually

PAGE = 4096
PAGES = 2000

pytestmark = [pytest.mark.live, needs_devices]


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.mark.parametrize(
    ("model", "way"), [("free", "the kernel alone"), ("ram", "/dev/fuse"), ("ssd-sata-2011", "/dev/fuse")]
)
def test_what_was_written_is_read_whoever_answers_and_when(user: User, model: str, way: str) -> None:
    point = user.home / "d"
    told = user("device", "mount", model, str(point), "--capacity", "400MB", "--detach")
    assert told.code == 0 and f"through {way}" in told.stderr, told.stderr
    chosen = random.Random(1)
    written = {}
    buffer = mmap.mmap(-1, 64 * PAGE)  # aligned, as O_DIRECT wants it
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
    os.ftruncate(file, 0)  # discards
    os.posix_fallocate(file, 0, PAGES * PAGE)
    os.fsync(file)
    os.preadv(file, [memoryview(buffer)[:PAGE]], 0)
    assert buffer[:PAGE] == bytes(PAGE)
    os.close(file)
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home), user.nothing_runs()) == (0, True, True), ended.stderr


def test_a_device_whose_process_is_killed_fails_what_waits_and_is_taken_apart(user: User) -> None:
    words = ["--data", "free", "--duration", "30s", "--warmup", "0s", "--with", "scale=1"]
    with user.begun("run", "igen-oltp", *words) as begun:
        begun.wait_for("sweep 1")
        os.kill(device_pid(user.register), signal.SIGKILL)
        told, took_s = begun.end()
    assert told.code == 1 and took_s < 60, told.stderr
    (record,) = user.records()
    assert record["status"] == "voided" and "SIGKILL" in record["cause"]
    assert eventually(lambda: nothing_left(user.home) and user.nothing_runs())


def test_memory_of_a_passed_through_device_is_taken_at_mount_and_belongs_to_its_process(user: User) -> None:
    """Not to the control group of whoever writes: a server's memory would shrink with what it writes."""
    point = user.home / "d"
    told = user("device", "mount", "free", str(point), "--capacity", "400MB", "--detach")
    assert told.code == 0, told.stderr
    status = Path(f"/proc/{device_pid(user.register)}/status").read_text()
    assert int(status.split("RssShmem:")[1].split()[0]) * 1024 >= 400e6
    ended = user("device", "unmount", str(point))
    assert (ended.code, nothing_left(user.home)) == (0, True), ended.stderr
