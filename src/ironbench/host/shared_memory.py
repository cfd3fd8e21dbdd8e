"""Shared memory that a killed server leaves behind: it outlives all processes until somebody removes it.

A server that shuts down removes its own, and one that starts removes what its predecessor in the same directory left.
Only the standard library: the guard runs this without site-packages.
"""

from __future__ import annotations

import ctypes
import re
import struct
import time
from pathlib import Path

_POSIX = re.compile(r"/dev/shm/[\w.]+")
_SYSV = re.compile(r"(\d+)\s+/SYSV([0-9a-f]{8})")
"""In /proc/PID/maps the inode of a System V segment is its identifier (ipc/shm.c)."""
_IPC_RMID = 0
_PATIENCE_S = 2.0
_HEADER = "<III"
"""Of a segment that lists others: its mark, how many it lists, how many it could list."""
_FIRST = 16
"""Where its list begins, in bytes; it goes to the end. Each entry begins with the number that ends the name of a
segment, and with how many use that one; 0: it is gone."""


def of(pid: int, prefix: str, mark: int) -> tuple[str, ...]:
    """Names of the segments that a server's process maps: a path, `list:PATH`, or `sysv:KEY:ID`.

    `prefix`: of the server's files; `mark`: first word of the one among them that lists those of its other processes.
    """
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ()
    posix = {name for name in _POSIX.findall(maps) if name.startswith(f"/dev/shm/{prefix}")}
    sysv = {f"sysv:{int(key, 16)}:{number}" for number, key in _SYSV.findall(maps)}
    listing = {name for name in posix if _header(Path(name))[:1] == (mark,)}
    return tuple(sorted(posix - listing | {f"list:{name}" for name in listing} | sysv))


def remove(name: str) -> None:
    """Removes one segment of a server that is dead; what is gone already, or in use again, stays as it is."""
    kind, _, rest = name.partition(":")
    if kind == "list":
        for listed in (*_listed(Path(rest)), rest):
            remove(listed)
        return
    if kind != "sysv":
        if _POSIX.fullmatch(name):
            Path(name).unlink(missing_ok=True)
        return
    key, number = rest.split(":")
    deadline = time.monotonic() + _PATIENCE_S
    while _attached(key, number) and time.monotonic() < deadline:
        time.sleep(0.02)  # backends leave a moment after the server that was killed
    if _attached(key, number) == 0:
        ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)


def _header(path: Path) -> tuple[int, ...]:
    """Empty: there is none."""
    try:
        with path.open("rb") as file:
            return struct.unpack(_HEADER, file.read(struct.calcsize(_HEADER)))
    except (OSError, struct.error):
        return ()


def _listed(path: Path) -> list[str]:
    """The segments of the same user that this one lists."""
    try:
        text, user = path.read_bytes(), path.stat().st_uid
        _, count, most = struct.unpack_from(_HEADER, text)
        size = (len(text) - _FIRST) // most
        entries = [struct.unpack_from("<II", text, _FIRST + place * size) for place in range(min(count, most))]
    except (OSError, struct.error, ZeroDivisionError):
        return []
    stem = str(path).rstrip("0123456789")
    found = [Path(f"{stem}{number}") for number, users in entries if users]
    return [str(one) for one in found if one.exists() and one.stat().st_uid == user]


def _attached(key: str, number: str) -> int | None:
    """How many processes use that segment; None when there is none of that key and number."""
    try:
        rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    except OSError:
        return None
    return next((int(row[6]) for row in rows if int(row[0]) & 0xFFFFFFFF == int(key) and row[1] == number), None)
