"""Entries of the queue, and their times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from ironbench.errors import InputError

WAITING, RUNNING, DONE, FAILED, STOPPED, CANCELLED = "waiting", "running", "done", "failed", "stopped", "cancelled"
ENDED = (DONE, FAILED, STOPPED, CANCELLED)


class QueueEntry(msgspec.Struct, frozen=True):
    """A lab in the queue."""

    id: str
    name: str
    """Name of the lab file, without suffix."""
    made_at: float
    """Seconds since the epoch, as all times in this file."""
    order: float
    """Position: the smallest starts first."""
    lab: str
    """Name of the lab's directory."""
    resumes: bool = False
    """Whether it continues an existing lab."""
    more: int = 0
    """Number of blocks to add to the lab."""
    follows: str = ""
    """Id of the nightly entry that this one follows."""
    not_before: float = 0.0
    after: str = ""
    """Id of the entry that must end first."""
    nightly: str = ""
    """Time of day, `22:00`, in the server's time zone. When the entry starts, the next night is queued."""
    state: str = WAITING
    why: str = ""
    """Why it ended in this state."""
    pid: int = 0
    born: str = ""
    """Start time of its process, which identifies the process together with `pid`."""
    begun_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 0
    rounds: int = 0
    """Number of rounds that had been added to the lab before this entry started; one more means that `more` is done."""


@dataclass(frozen=True, slots=True)
class QueueRequest:
    """A lab to queue."""

    name: str
    text: str
    not_before: float = 0.0
    after: str = ""
    nightly: str = ""
    follows: str = ""


def next_at(clock: str, now: float) -> float:
    """Returns the next time, later than now, at which it is `22:00` here. InputError."""
    try:
        hour, minute = (int(part) for part in clock.split(":"))
        at = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=0, microsecond=0)
    except ValueError:
        raise InputError(f"nightly {clock}", "is not a time of day", "write for example 22:00") from None
    return (at if at.timestamp() > now else at + timedelta(days=1)).timestamp()


def at_time(text: str) -> float:
    """Reads a form's `2026-11-25T22:00` in the server's time zone; 0 if it is empty. InputError."""
    hint = "write for example 2026-11-25T22:00"
    if not text:
        return 0.0
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp()
        moment(at)  # out of range for a page
    except (ValueError, OverflowError, OSError):
        raise InputError(f"time {text[:40]!r}", "is not a date and time", hint) from None
    if found.tzinfo is not None:
        raise InputError(f"time {text[:40]!r}", "has a time zone, but times are in the server's time zone", hint)
    return at


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
