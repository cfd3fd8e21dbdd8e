"""One queued lab at a time on a machine: a lock that it holds alone, and that what is begun in a terminal shares.

A terminal never waits for it: who begins something there means it. The queue waits for both.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ironbench.errors import IronbenchError
from ironbench.process import place

QUEUED = "IRONBENCH_QUEUED"
"""Variable of a queued lab: the lock is its own."""


@contextmanager
def shared(say: Callable[[str], object]) -> Iterator[None]:
    """Somebody measures from now on; `say` hears of a queued lab that does, too."""
    descriptor = None if os.environ.get(QUEUED) else _opened()
    try:
        if descriptor is not None and not _held(descriptor, fcntl.LOCK_SH):
            say("caution: a queued lab is measured on this machine now; each disturbs the other")
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def alone() -> int | None:
    """A descriptor that holds the machine, for the lab to inherit; None: something is measured."""
    descriptor = _opened()
    if descriptor is not None and not _held(descriptor, fcntl.LOCK_EX):
        os.close(descriptor)
        return None
    return descriptor


def _opened() -> int | None:
    """None: there is no place for it."""
    with contextlib.suppress(OSError, IronbenchError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None


def _held(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _path() -> Path:
    return place.cache() / "measuring.lock"
