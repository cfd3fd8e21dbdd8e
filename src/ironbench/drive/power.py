"""The power goes when the last transaction of a trial has been confirmed, and comes back: is all of it there?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ironbench import units
from ironbench.devices.mounting import Devices
from ironbench.errors import FailureError, IronbenchError
from ironbench.model.record import Check
from ironbench.model.session import Powered, Session
from ironbench.words import counted
from ironbench.workloads.base import checked

WAYS = {
    "lose": "all writes that no flush had followed are lost",
    "subset": "some writes that no flush had followed are there, others are lost",
    "torn": "of every write that no flush had followed some sectors are there",
}
"""What a cut may take; the devices do it: `crates/ironbench-device/src/live/undo.rs`."""
NOT_BACK = "afterwards the database does not start"
"""Stands in the cause of a trial whose database did not survive its power cut."""
SUMMARY = "power_cut"
"""Set in the summary that checks see: what the engine counted by itself has not survived."""


@dataclass(frozen=True, slots=True)
class PowerCut:
    """One that is to happen."""

    how: str
    """Of `WAYS`."""
    storage: Devices
    """Under the engine, mounted so that their power can be cut."""


def cut(session: Session, planned: PowerCut, seed: int) -> dict[str, str]:
    """Cuts it and waits for the engine to be back; what happened, for the record. FailureError: it stays away."""
    subject = f"power cut ({planned.how})"
    if not isinstance(session, Powered):
        raise FailureError(subject, f"{session.engine} cannot be started on what a power cut leaves")
    at_stake: list[int] = []
    began_s = time.monotonic()

    def restored() -> None:
        nonlocal began_s
        planned.storage.restore_power()
        began_s = time.monotonic()

    try:
        session.lose_power(lambda: at_stake.append(planned.storage.cut(planned.how, seed)), restored)
        if not session.alive():
            raise FailureError(subject, "it does not answer")
    except IronbenchError as error:
        words = f"{_at_stake(at_stake)}; {NOT_BACK}: {error}"
        raise FailureError(subject, words, "check the settings by which it makes commits safe") from error
    took_s = time.monotonic() - began_s
    back = f"the engine was back after {units.span(took_s)}"
    return {"power": f"cut after the measured time: {_at_stake(at_stake)}; {back}"}


def held(how: str, check: Callable[[], tuple[Check, ...]]) -> tuple[Check, ...]:
    """The workload's checks of what is left; data that cannot even be read fail them."""
    try:
        return check()
    except IronbenchError as error:
        return (checked(f"data can be read after the power cut ({how})", "yes", str(error)),)


def _at_stake(counts: list[int]) -> str:
    return f"{counted(sum(counts), 'write')} had not been flushed"
