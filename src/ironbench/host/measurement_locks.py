"""Locks that allow one queued lab at a time on a machine, and none while a command in a terminal measures.

A command in a terminal never waits for a lab, because its user wants to run it now. The queue waits for both. There are
therefore two locks: commands in terminals share one while they measure; a queued lab takes the other exclusively, and
only while no terminal shares the first. With one lock, a terminal command started during a queued lab could not take
any lock, and the next lab would start during the command. The lock files belong to the user, so different users do not
see each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ironbench.errors import FailureError, IronbenchError
from ironbench.host import data_dirs

QUEUED = "IRONBENCH_QUEUED"
"""Environment variable that marks a queued lab, for which the lock is already taken."""
_TERMINALS = "terminals.lock"
_QUEUED_LAB = "measuring.lock"


@contextmanager
def shared(say: Callable[[str], object]) -> Iterator[None]:
    """Marks this process as measuring during the block. If a queued lab is measuring at the same time, `say` is called
    with a warning."""
    with contextlib.ExitStack() as held:
        beside = False
        if not os.environ.get(QUEUED):
            # measuring is allowed even if lock files cannot be created
            with contextlib.suppress(OSError, IronbenchError):
                # The queue takes this lock exclusively, but only for the moment at which it starts a lab.
                fcntl.flock(held.enter_context(_opened(_TERMINALS)), fcntl.LOCK_SH)
                with _opened(_QUEUED_LAB) as lab:
                    beside = not _locked(lab, fcntl.LOCK_SH)
        if beside:
            say("warning: a queued lab is running on this machine, and the two measurements disturb each other")
        yield


def alone() -> int | None:
    """Takes the lock for a queued lab. Returns a locked descriptor for the lab to inherit, or None if another command
    is measuring. Raises FailureError if the lock files cannot be created."""
    try:
        with _opened(_TERMINALS) as terminals, _opened(_QUEUED_LAB) as lab:
            free = _locked(terminals, fcntl.LOCK_EX) and _locked(lab, fcntl.LOCK_EX)
            return os.dup(lab) if free else None
    except OSError as error:
        cause = f"cannot be locked: {error.strerror or error}"
        raise FailureError("this machine", cause, "set XDG_CACHE_HOME to a writable directory") from error


@contextmanager
def _opened(name: str) -> Iterator[int]:
    """Opens a lock file. Raises OSError or IronbenchError if the file cannot be created."""
    path = data_dirs.cache() / name
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
