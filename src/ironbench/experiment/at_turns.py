"""Who drives a trial by turns: in a thread of its own, which waits for the next turn while others have theirs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import _core
from ironbench.drive.trial import unpacked
from ironbench.engines.administration import REQUEST
from ironbench.model.driven import Driven
from ironbench.model.system import Load

if TYPE_CHECKING:
    from ironbench._core import Progress


class AtTurns:
    """Drives a trial by turns, as `drive` wants it of whoever is not this process's main loop."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.progress: Progress | None = None
        self.rehearsal: Progress | None = None
        self.stopping = False
        """Somebody wants it to end, perhaps before it begins."""
        self.requests = False
        """Whether checkpoints are requested during trials: then they are in turns, by the system's own time."""

    def drive(self, plan: bytes, load: Load, progress: Progress, started: str) -> Driven:
        # What is sampled by the clock would be sampled in the turns of others, too; what is requested, `Side` requests.
        whole = msgspec.json.decode(plan, type=dict[str, Any])
        self.requests = any(one["name"] == REQUEST for one in whole.pop("observers"))
        whole["observers"] = []
        progress.by_turns()
        self.progress = progress
        self.begun.set()
        return self._driven(msgspec.json.encode(whole), progress, started)

    def rehearse(self, plan: bytes, load: Load, progress: Progress, started: str) -> Driven:
        """Before the first turn, in one piece."""
        self.rehearsal = progress
        return self._driven(plan, progress, started)

    def stop(self) -> None:
        """Ends what it drives, and what it would drive next. From another thread."""
        self.stopping = True
        for one in filter(None, (self.rehearsal, self.progress)):
            one.stop()

    def _driven(self, plan: bytes, progress: Progress, started: str) -> Driven:
        if self.stopping:
            progress.stop()
        return unpacked(_core.drive(plan, progress), started)
