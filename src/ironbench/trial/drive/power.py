"""Cuts the power of emulated devices after the last transaction of a trial was committed, and checks that no data were
lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ironbench import units
from ironbench.devices.mounting import Devices
from ironbench.errors import FailureError, IronbenchError
from ironbench.model.note import Note, note
from ironbench.model.plan import AT_STAKE
from ironbench.model.record import NOT_BACK, Check
from ironbench.model.session import PowerCutSession, Session
from ironbench.words import counted
from ironbench.workloads.base import checked

WAYS = {
    "lose": "all writes after the last flush are lost",
    "subset": "some of the writes after the last flush are lost",
    "torn": "of each write after the last flush, only some sectors are stored",
}
"""Kinds of data loss at a power cut, implemented by the emulated devices
(`crates/ironbench-device/src/live/undo.rs`)."""
NOTHING_AT_STAKE = "nothing-at-stake"
SUMMARY = "power_cut"
"""Key in the summary that is passed to the checks. The key is present if the power was cut before the checks, which
resets the engine's own counters."""


class NotBackError(FailureError):
    """The database did not survive a power cut."""

    code = NOT_BACK


@dataclass(frozen=True, slots=True)
class PowerCut:
    """A planned power cut."""

    how: str
    """Kind of data loss: a key of `WAYS`."""
    storage: Devices
    """The engine's devices, mounted so that their power can be cut."""


@dataclass(frozen=True, slots=True)
class PowerCutRecovery:
    """A power cut after which the engine started again."""

    how: str
    """Kind of data loss: a key of `WAYS`."""
    at_stake: int
    """Number of writes that had not been flushed when the power was cut, on all devices together."""
    back_s: float
    """Seconds from the return of the power until the engine answered."""

    def conditions(self) -> dict[str, str]:
        back = f"the engine answered again after {units.span(self.back_s)}"
        return {"power": f"cut after the measured time: {_words(self.at_stake)}; {back}"}

    def metrics(self) -> dict[str, float]:
        return {AT_STAKE: float(self.at_stake)}

    def warnings(self) -> tuple[Note, ...]:
        return () if self.at_stake else (note(NOTHING_AT_STAKE, how=self.how),)


def cut(session: Session, planned: PowerCut, seed: int) -> PowerCutRecovery:
    """Cuts the power and waits until the engine has recovered. Raises FailureError if it does not recover."""
    subject = f"power cut ({planned.how})"
    if not isinstance(session, PowerCutSession):
        raise FailureError(subject, f"{session.engine} cannot be restarted by ironbench after a power cut")
    at_stake: list[int] = []
    began_s = time.monotonic()

    def restored() -> None:
        nonlocal began_s
        planned.storage.restore_power()
        began_s = time.monotonic()

    try:
        session.lose_power(lambda: at_stake.append(planned.storage.cut(planned.how, seed)), restored)
        if not session.alive():
            raise FailureError(subject, "does not answer")
    except IronbenchError as error:
        words = f"{_words(sum(at_stake))}; the database does not start after the power cut: {error}"
        raise NotBackError(subject, words, "check the settings that make commits durable") from error
    return PowerCutRecovery(planned.how, sum(at_stake), time.monotonic() - began_s)


def checks_after_power_cut(how: str, check: Callable[[], tuple[Check, ...]]) -> tuple[Check, ...]:
    """Runs the workload's checks after a power cut. If the data cannot be read, returns a failed check."""
    try:
        return check()
    except IronbenchError as error:
        return (checked(f"data can be read after the power cut ({how})", "yes", str(error)),)


def _words(at_stake: int) -> str:
    return f"{counted(at_stake, 'write')} had not been flushed"
