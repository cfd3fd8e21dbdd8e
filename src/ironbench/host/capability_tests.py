"""Tests which operations this machine allows. The tests have no lasting effect."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ironbench.host.profiling import Restriction, restrictions

_IO_URING_SETUP = 425
"""Number of the io_uring_setup system call, which is the same on every architecture (io_uring_setup(2))."""
_IO_URING_PARAMS_BYTES = 120
_PR_SET_TIMERSLACK = 29
_WAKE_UPS = 300
_WAKE_UP_S = 0.001
_SYNCS = 40


class LocalCapabilityTests:
    """Tries operations on this machine. A method with the result type `str | None` returns None if the operation works,
    and otherwise the reason why it fails."""

    def io_uring(self) -> str | None:
        libc = ctypes.CDLL(None, use_errno=True)
        params = ctypes.create_string_buffer(_IO_URING_PARAMS_BYTES)
        ring = libc.syscall(_IO_URING_SETUP, 2, params)
        if ring < 0:
            return os.strerror(ctypes.get_errno())
        os.close(ring)
        return None

    def fuse(self) -> str | None:
        return _opens("/dev/fuse")

    def loop_device(self) -> str | None:
        return _opens("/dev/loop-control")

    def user_namespace(self) -> str | None:
        unshare = shutil.which("unshare")
        if unshare is None:
            return "the program `unshare` is missing (package util-linux)"
        command = [unshare, "--user", "--map-user=1000", "--map-group=1000", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return None if done.returncode == 0 else done.stderr.strip() or f"unshare exited with status {done.returncode}"

    def profiles(self, kind: str) -> Sequence[Restriction]:
        return restrictions((kind,))

    def cgroup(self, directory: Path) -> str | None:
        group = directory / f"ironbench-doctor-{os.getpid()}"
        try:
            group.mkdir()
            group.rmdir()
        except OSError as error:
            return error.strerror or str(error)
        return None

    def wake_ups(self) -> list[float]:
        # By default, the kernel may delay wake-ups by 50 µs (timer slack, prctl(2)). The core also sets the timer slack
        # to 1 ns.
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
        late = []
        for _ in range(_WAKE_UPS):
            due = time.monotonic() + _WAKE_UP_S
            time.sleep(_WAKE_UP_S)
            late.append(time.monotonic() - due)
        libc.prctl(_PR_SET_TIMERSLACK, 0, 0, 0, 0)
        return late

    def syncs(self, directory: Path) -> list[float]:
        took = []
        try:
            with tempfile.TemporaryFile(dir=directory) as file:
                for n in range(_SYNCS):
                    start = time.monotonic()
                    os.pwrite(file.fileno(), os.urandom(4096), n * 4096)
                    os.fdatasync(file.fileno())
                    took.append(time.monotonic() - start)
        except OSError:
            return []
        return took

    def free_bytes(self, directory: Path) -> tuple[int, int] | None:
        try:
            usage = os.statvfs(directory)
        except OSError:
            return None
        return usage.f_bavail * usage.f_frsize, usage.f_blocks * usage.f_frsize


def _opens(device: str) -> str | None:
    try:
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{device}: {error.strerror}"
    return None
