"""What a queue keeps of a lab: who waits, since when, until when, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from ironbench.errors import InputError

WAITING, RUNNING, DONE, FAILED, STOPPED, CANCELLED = "waiting", "running", "done", "failed", "stopped", "cancelled"
ENDED = (DONE, FAILED, STOPPED, CANCELLED)


class QueueEntry(msgspec.Struct, frozen=True):
    """One lab in the queue."""

    id: str
    name: str
    """Of its lab file, without suffix."""
    made_at: float
    """Seconds since the epoch, as all times here."""
    order: float
    """The smallest goes first."""
    lab: str
    """Name of the lab's directory, once it has begun."""
    resumes: bool = False
    """It goes on with a lab that is there."""
    more: int = 0
    """Blocks that are added to it."""
    follows: str = ""
    """Id of the entry whose next night it is."""
    not_before: float = 0.0
    after: str = ""
    """Id of the entry that must have ended."""
    nightly: str = ""
    """`22:00`, in the server's time zone: it is put in again for the next night when it begins."""
    state: str = WAITING
    why: str = ""
    """Why it ended as it did."""
    pid: int = 0
    born: str = ""
    """Of its process."""
    begun_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 0
    rounds: int = 0
    """That had been added to its lab before it began: once there is another, `more` is done."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to be queued."""

    name: str
    text: str
    not_before: float = 0.0
    after: str = ""
    nightly: str = ""
    follows: str = ""


def next_at(clock: str, now: float) -> float:
    """The next time that clocks here show `22:00`, later than now. InputError."""
    try:
        hour, minute = (int(part) for part in clock.split(":"))
        at = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=0, microsecond=0)
    except ValueError:
        raise InputError(f"nightly {clock}", "is no time of day", "write it as 22:00") from None
    return (at if at.timestamp() > now else at + timedelta(days=1)).timestamp()


def at_time(text: str) -> float:
    """Of a form's `2026-11-25T22:00`, in the server's time zone; 0 where it is empty. InputError."""
    if not text:
        return 0.0
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp()
        moment(at)  # what no page could show
    except (ValueError, OverflowError, OSError):
        raise InputError(f"time {text[:40]!r}", "is no time", "write it as 2026-11-25T22:00") from None
    if found.tzinfo is not None:
        raise InputError(f"time {text[:40]!r}", "names a time zone; it is the server's", "write it as 2026-11-25T22:00")
    return at


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
