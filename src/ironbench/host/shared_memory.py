"""Shared memory that a killed server leaves behind. Such memory exists until it is removed explicitly.

A server removes its own segments when it shuts down, and segments of an earlier server in the same directory when it
starts. The guard runs this module without site-packages, so it uses only the standard library.
"""

from __future__ import annotations

import ctypes
import re
import struct
import time
from pathlib import Path

_POSIX = re.compile(r"/dev/shm/[\w.]+")
_SYSV = re.compile(r"(\d+)\s+/SYSV([0-9a-f]{8})")
"""Pattern of a System V segment in /proc/PID/maps. The column for the inode contains the identifier of the segment
(ipc/shm.c)."""
_IPC_RMID = 0
_PATIENCE_S = 2.0
_HEADER = "<III"
"""Format of the header of a segment that contains a list of other segments. The header contains the magic number, the
number of entries, and the maximum number of entries."""
_FIRST = 16
"""Offset of the list in such a segment. The list extends to the end of the segment. Each entry describes one segment
and starts with two numbers: the number at the end of the segment's name, and the number of the segment's users. A
segment with 0 users no longer exists."""


def of(pid: int, prefix: str, mark: int) -> tuple[str, ...]:
    """Returns the shared memory segments that a server process maps. A POSIX segment is returned as its path, a System
    V segment as `sysv:KEY:ID`, and a segment that lists other segments as `list:PATH`.

    `prefix`: start of the names of the server's segments. `mark`: magic number of the segment that lists the segments
    of other server processes.
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
    """Removes one segment of a dead server. Does nothing if the segment no longer exists or is in use again."""
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
        time.sleep(0.02)  # the server's other processes end shortly after it was killed
    if _attached(key, number) == 0:
        ctypes.CDLL(None).shmctl(int(number), _IPC_RMID, None)


def _header(path: Path) -> tuple[int, ...]:
    """Returns the header of a list segment. Returns () if it cannot be read."""
    try:
        with path.open("rb") as file:
            return struct.unpack(_HEADER, file.read(struct.calcsize(_HEADER)))
    except (OSError, struct.error):
        return ()


def _listed(path: Path) -> list[str]:
    """Returns the segments of the same user that a list segment contains."""
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
    """Returns the number of processes that use a segment. Returns None if there is no segment with that key and
    number."""
    try:
        rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    except OSError:
        return None
    return next((int(row[6]) for row in rows if int(row[0]) & 0xFFFFFFFF == int(key) and row[1] == number), None)
