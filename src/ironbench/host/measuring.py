"""One queued lab at a time on a machine, and none beside what was begun in a terminal.

A terminal never waits for a lab: who begins something there means it. The queue waits for both. Hence two locks:
terminals share one while they measure; a queued lab holds the other, and gets it only while no terminal shares the
first. With one lock, what a terminal begins beside a queued lab could hold nothing, and the next lab would begin beside
it. The files are the user's own, so users do not see each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ironbench.errors import FailureError, IronbenchError
from ironbench.host import place

QUEUED = "IRONBENCH_QUEUED"
"""Variable of a queued lab: the lock is its own."""
_TERMINALS = "terminals.lock"
_QUEUED_LAB = "measuring.lock"


@contextmanager
def shared(say: Callable[[str], object]) -> Iterator[None]:
    """Somebody measures from now on; `say` hears of a queued lab that does, too."""
    with contextlib.ExitStack() as held:
        beside = False
        if not os.environ.get(QUEUED):
            with contextlib.suppress(OSError, IronbenchError):  # no place for locks: nobody is kept from measuring
                # The queue has it for the moment alone in which it begins a lab.
                fcntl.flock(held.enter_context(_opened(_TERMINALS)), fcntl.LOCK_SH)
                with _opened(_QUEUED_LAB) as lab:
                    beside = not _locked(lab, fcntl.LOCK_SH)
        if beside:
            say("caution: a queued lab is measured on this machine now; each disturbs the other")
        yield


def alone() -> int | None:
    """A descriptor that holds the machine, for the lab to inherit; None: something is measured. FailureError: there is
    no place for the locks."""
    try:
        with _opened(_TERMINALS) as terminals, _opened(_QUEUED_LAB) as lab:
            free = _locked(terminals, fcntl.LOCK_EX) and _locked(lab, fcntl.LOCK_EX)
            return os.dup(lab) if free else None
    except OSError as error:
        cause = f"cannot be locked: {error.strerror or error}"
        raise FailureError("this machine", cause, "let XDG_CACHE_HOME name a directory that can be written") from error


@contextmanager
def _opened(name: str) -> Iterator[int]:
    """OSError, IronbenchError: there is no place for it."""
    path = place.cache() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
