"""Entries of the queue, and functions for their start times."""

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
    """Name of the lab file without its suffix."""
    made_at: float
    """Time at which the entry was created. Like all numeric times in this module, it is in seconds since the epoch."""
    order: float
    """Position in the queue. The entry with the smallest value starts first."""
    lab: str
    """Name of the lab's directory."""
    resumes: bool = False
    """Whether the entry continues an existing lab."""
    more: int = 0
    """Number of blocks that the entry adds to the lab."""
    follows: str = ""
    """If this entry was created as the next night's copy of a nightly entry, the id of that entry."""
    not_before: float = 0.0
    after: str = ""
    """Id of the entry that must end before this entry starts."""
    nightly: str = ""
    """Time of day in the server's time zone, such as `22:00`. When the entry starts, a copy is queued for the next
    night."""
    state: str = WAITING
    why: str = ""
    """Why the entry ended in this state."""
    pid: int = 0
    born: str = ""
    """Start time of the entry's process. Together with `pid`, it identifies the process."""
    begun_at: float = 0.0
    ended_at: float = 0.0
    tries: int = 0
    rounds: int = 0
    """Number of rounds that had been added to the lab before this entry started. If the lab has more rounds now, this
    entry has already added its round."""


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
    """Returns the next time after `now` at which the server's clock shows a time of day, such as `22:00`. Raises
    InputError if `clock` is not a time of day."""
    try:
        hour, minute = (int(part) for part in clock.split(":"))
        at = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=0, microsecond=0)
    except ValueError:
        raise InputError(f"nightly {clock}", "is not a time of day", "write for example 22:00") from None
    return (at if at.timestamp() > now else at + timedelta(days=1)).timestamp()


def at_time(text: str) -> float:
    """Reads a time from a form, such as `2026-11-25T22:00`, in the server's time zone. Returns 0 if the text is empty.
    Raises InputError if it is not a date and time, or has a time zone."""
    hint = "write for example 2026-11-25T22:00"
    if not text:
        return 0.0
    try:
        found = datetime.fromisoformat(text)
        at = found.timestamp()
        moment(at)  # raises an error for a time that pages cannot show
    except (ValueError, OverflowError, OSError):
        raise InputError(f"time {text[:40]!r}", "is not a date and time", hint) from None
    if found.tzinfo is not None:
        raise InputError(f"time {text[:40]!r}", "has a time zone, but times are in the server's time zone", hint)
    return at


def moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
