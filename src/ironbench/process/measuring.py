"""One queued lab at a time on a machine: a lock that it holds alone, and that what is begun in a terminal shares.

A terminal never waits for it: who begins something there means it. The queue waits for both.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ironbench.errors import FailureError, IronbenchError
from ironbench.process import place

QUEUED = "IRONBENCH_QUEUED"
"""Variable of a queued lab: the lock is its own."""


@contextmanager
def shared(say: Callable[[str], object]) -> Iterator[None]:
    """Somebody measures from now on; `say` hears of a queued lab that does, too."""
    descriptor = None
    if not os.environ.get(QUEUED):
        with contextlib.suppress(OSError, IronbenchError):  # no place for it: nobody is kept from measuring
            descriptor = _opened()
    try:
        if descriptor is not None and not _held(descriptor, fcntl.LOCK_SH):
            say("caution: a queued lab is measured on this machine now; each disturbs the other")
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def alone() -> int | None:
    """A descriptor that holds the machine, for the lab to inherit; None: something is measured. FailureError: there is
    no place for the lock."""
    try:
        descriptor = _opened()
    except OSError as error:
        cause = f"cannot be locked: {error.strerror or error}"
        raise FailureError("this machine", cause, "let XDG_CACHE_HOME name a directory that can be written") from error
    if not _held(descriptor, fcntl.LOCK_EX):
        os.close(descriptor)
        return None
    return descriptor


def _opened() -> int:
    """OSError, IronbenchError: there is no place for it."""
    path = place.cache() / "measuring.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _held(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
