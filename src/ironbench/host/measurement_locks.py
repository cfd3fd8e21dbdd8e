"""Locks that keep queued labs from disturbing other measurements. On one machine, at most one queued lab runs at a
time, and none starts while a command in a terminal measures.

A command in a terminal never waits for a queued lab, because its user wants to run it now. The queue waits for commands
in terminals and for its other labs. This requires two locks:

Commands in terminals share the first lock while they measure. A queued lab holds the second lock exclusively, and takes
this lock only if no command holds the first one. A single lock would not work: a command that is started during a
queued lab could not take the lock, so the next lab would start during the command.

The lock files belong to the user. Labs and commands of other users are therefore not noticed.
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
            # If the lock files cannot be created, the command measures without locks.
            with contextlib.suppress(OSError, IronbenchError):
                # This call hardly ever waits: the queue holds the lock exclusively only while it checks whether it can
                # start a lab.
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
        return True  # the file system has no locks
    return True
