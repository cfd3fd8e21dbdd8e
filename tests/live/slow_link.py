"""A network link that delays and loses packets, for kernels without netem(8), made of two tap devices and this process.

Run as `slow_link.py HERE NAMESPACE THERE`: creates a device in this network namespace and one in the other, while it
runs. Each line on standard input sets delay and loss: `20 0.01` delays packets by 20 ms each way, and loses one of a
hundred.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque
from pathlib import Path

_TUNSETIFF = 0x400454CA
_TAP, _NO_PACKET_INFORMATION = 0x0002, 0x1000
_CLONE_NEWNET = 0x40000000
_LARGEST = 1 << 16


def tap(name: str) -> int:
    """Creates a device in the network namespace of this thread."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP | _NO_PACKET_INFORMATION))
    return fd


def enter(namespace: str) -> None:
    with Path(f"/run/netns/{namespace}").open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def main(here: str, namespace: str, there: str) -> None:
    ours = tap(here)
    enter(namespace)
    theirs = tap(there)
    print("ready", flush=True)
    carry(ours, theirs)


def carry(ours: int, theirs: int) -> None:
    """Forwards packets until one side is closed."""
    delay_s, loss = 0.0, 0.0
    other = {ours: theirs, theirs: ours}
    waiting: dict[int, deque[tuple[float, bytes]]] = {ours: deque(), theirs: deque()}
    while True:
        due = min((queue[0][0] for queue in waiting.values() if queue), default=None)
        left = None if due is None else max(0.0, due - time.monotonic())
        ready, _, _ = select.select([ours, theirs, 0], [], [], left)
        if 0 in ready:
            line = sys.stdin.readline()
            if not line:
                return
            ms, lost = line.split()
            delay_s, loss = float(ms) / 1e3, float(lost)
        now = time.monotonic()
        for fd in ready:
            if fd:
                _take(fd, waiting[other[fd]], now + delay_s, loss)
        for fd, queue in waiting.items():
            while queue and queue[0][0] <= time.monotonic():
                _give(fd, queue.popleft()[1])


def _take(fd: int, queue: deque[tuple[float, bytes]], due: float, loss: float) -> None:
    for _ in range(64):
        try:
            packet = os.read(fd, _LARGEST)
        except BlockingIOError:
            return
        if random.random() >= loss:
            queue.append((due, packet))


def _give(fd: int, packet: bytes) -> None:
    with contextlib.suppress(OSError):  # a device that is down accepts nothing
        os.write(fd, packet)


if __name__ == "__main__":
    main(*sys.argv[1:])
