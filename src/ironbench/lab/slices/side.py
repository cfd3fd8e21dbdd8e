"""One of the systems of a block that stand side by side: driven in turns, frozen between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench import _core, engines, workloads
from ironbench.devices.mounting import NO_DEVICES
from ironbench.engines.administration import REQUEST
from ironbench.errors import IronbenchError
from ironbench.host import copies, processes
from ironbench.host.processes import Used
from ironbench.lab.slices.beneath import Beneath
from ironbench.lab.slices.shared import Shared
from ironbench.lab.slices.slice_plan import AT_WORK_S, EARLY_S, LATE_S, START_UP_S
from ironbench.lab.slices.turn import Slice, attribute_errors_to
from ironbench.model.driven import Driven
from ironbench.model.plan import Plan
from ironbench.model.record import Record
from ironbench.model.session import Freezable, Freezes, Session
from ironbench.model.system import Load, Setup
from ironbench.model.trial_notes import TrialNotes
from ironbench.printer import Printer
from ironbench.stats import slices as of_slices
from ironbench.stats.slices import Started
from ironbench.trial.drive import checkpoints
from ironbench.trial.drive.trial import Surroundings, drive, unpacked
from ironbench.trial.load import Loaded

if TYPE_CHECKING:
    from ironbench._core import Progress


class OverError(Exception):
    """The drive of a side ended before its time, or came to nothing."""

    def __init__(self, side: SliceSide) -> None:
        super().__init__(side)
        self.side = side


class AtTurns:
    """Drives a trial by turns, as `drive` wants it of whoever is not this process's main loop: in a thread of its own,
    which waits for the next turn while others have theirs."""

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


@dataclass(slots=True)
class SliceSide:
    """A running system, its clients connected."""

    plan: Plan
    setup: Setup
    session: Session
    loaded: Loaded
    prepared: TrialNotes
    place: str
    """Where its data are."""
    began_s: float = 0.0
    """Of the block, by `time.monotonic`."""
    beneath: Beneath = field(default_factory=lambda: Beneath(NO_DEVICES))
    shared: Shared | None = None
    """With those that work on the same data."""
    freezer: Freezes | None = None
    driven: Driven | None = None
    slices: list[Slice] = field(default_factory=list)
    frozen_used: Used = field(default_factory=Used)
    """By its processes while it was frozen."""
    debt_s: float = 0.0
    """What still ran of a checkpoint after its last turn, one more, and writing back what that left."""
    unreached: set[str] = field(default_factory=set)
    """Directories whose file systems could not be told to write, for they are another user's."""
    checkpoints: int = 0
    settled: bool = False
    """Driven to its end, its checks passed."""
    record: Record | None = None
    """Once it is written: a Ctrl-C meanwhile writes no second one."""
    _at_turns: AtTurns = field(default_factory=AtTurns)
    _thread: threading.Thread | None = None
    _checkpoint: threading.Thread | None = None
    _frozen_at: Used | None = None
    _requested_before: int = 0
    """Checkpoints, when its last turn began."""
    _turn_at_s: float = 0.0

    @property
    def cell(self) -> str:
        """Name of its cell."""
        return self.setup.cell.name

    @property
    def clients(self) -> int:
        return self.setup.cell.load.clients

    @property
    def warmup_s(self) -> float | None:
        return self.setup.cell.load.warmup_s

    def processes(self) -> Sequence[int]:
        """Of its server; none where they are out of sight."""
        return self.session.processes()

    def connect(self) -> None:
        """Its clients are connected and rest, and it is frozen. OverError: they are not. KeyboardInterrupt."""
        self.beneath.wake()
        self._thread = threading.Thread(target=self._drive, name=f"drive {self.cell}", daemon=True)
        self._thread.start()
        while not self._at_turns.begun.wait(0.05):
            if not self._thread.is_alive():
                raise self._over()
        if not self._progress.rested():
            raise self._over()
        if isinstance(self.session, Freezable):
            self.freezer = self.session.freezer()
        self.rest()

    def _drive(self) -> None:
        trial, around = self.plan.trials[0], Surroundings(driver=self._at_turns, by_clock=False)
        if self.shared is not None:
            around = replace(around, together=self.shared.whole)
        if self.beneath.devices.mounted:
            around = replace(around, checking=self.beneath.devices.at_once)
        try:
            self.driven = drive(self.plan, self.session, trial, tuple, Printer(StringIO(), StringIO()), around)
        except KeyboardInterrupt:
            return  # its rehearsal was stopped, by whoever waits for it here
        finally:
            if self.shared is not None:
                self.shared.give_up()  # once all have ended, it has no effect

    @property
    def _progress(self) -> Progress:
        assert self._at_turns.progress is not None
        return self._at_turns.progress

    def turn(self, start_up_s: float, slice_s: float) -> None:
        """Its turn; at the end it is frozen. OverError, OfOneError, KeyboardInterrupt."""
        with attribute_errors_to(self.cell):
            self.wake()
            self._begin(start_up_s, slice_s)
            self._end(slice_s)

    def _begin(self, start_up_s: float, slice_s: float) -> None:
        """It is awake: its clients go to work."""
        self._turn_at_s = time.monotonic() - self.began_s
        self._requested_before = self.checkpoints
        if slice_s > 0:
            self._request_checkpoint()
        self._progress.begin_turn(start_up_s, slice_s, ())

    def _end(self, slice_s: float) -> None:
        """When its clients rest: it has paid what it left to be written, and is frozen. OverError, FailureError,
        KeyboardInterrupt."""
        turned = self._rested()
        paid_s = self._pay()
        self.rest()
        if slice_s > 0:
            self.slices.append(Slice(self._turn_at_s, slice_s, *turned, paid_s))

    def _rested(self) -> tuple[int, int, float, float, float]:
        turned = self._progress.rested()
        if turned is None:
            raise self._over()
        return turned

    def judge(self, taken: float) -> None:
        """Of its last slice: how much others took meanwhile."""
        self.slices[-1] = replace(self.slices[-1], taken=taken)

    def forget(self) -> None:
        """Its last slice is dropped, and a checkpoint that was requested in it is requested once more."""
        self._progress.forget()
        self.checkpoints = self._requested_before
        self.slices[-1] = replace(self.slices[-1], dropped=True)

    @property
    def kept(self) -> Sequence[Slice]:
        return [one for one in self.slices if not one.dropped]

    def started(self) -> Started:
        """What its clients do right after the start-up of a turn, and once they are at work, in two turns that are
        forgotten: they rest between the two, and are not frozen. The later one has a start-up, too, for it would lose
        their first transactions. OverError, OfOneError, KeyboardInterrupt."""
        with attribute_errors_to(self.cell):
            self.wake()
            early, early_s = self._tried(START_UP_S, EARLY_S)
            late, late_s = self._tried(AT_WORK_S, LATE_S)
            self._pay()
            self.rest()
        return Started(early, late, early_s, late_s)

    def _tried(self, start_up_s: float, slice_s: float) -> tuple[int, float]:
        """Of a turn that is forgotten: transactions, and the seconds that each client spent on them."""
        self._progress.begin_turn(start_up_s, slice_s, ())
        transactions, _, busy_s, *_ = self._rested()
        self._progress.forget()
        return transactions, busy_s / self.clients if busy_s > 0 else slice_s

    def _over(self) -> BaseException:
        """Why a turn came to nothing. The core takes a Ctrl-C as an end of waiting: then the drive goes on, and whoever
        waited for it here would wait for a turn that never comes."""
        if self._at_turns.progress is not None and not self._at_turns.progress.over:
            return KeyboardInterrupt()
        self._join()
        return OverError(self)

    @property
    def turns_s(self) -> float:
        """All that its turns since the first slice took, dropped ones included."""
        return sum(one.start_up_s + one.length_s + one.drain_s + one.paid_s for one in self.slices)

    @property
    def measured_s(self) -> float:
        return sum(one.length_s for one in self.kept)

    def rest(self) -> None:
        if self.freezer is not None:
            self.freezer.freeze()
            self.beneath.rest()
            self._frozen_at = self._used()

    def wake(self) -> None:
        if self.freezer is None:
            return
        if self._frozen_at is not None and self.session.processes():
            self.frozen_used += self._used() - self._frozen_at
            self._frozen_at = None
        self.beneath.wake()
        self.freezer.thaw()

    def _used(self) -> Used:
        return processes.used((*self.session.processes(), *self.beneath.processes))

    @property
    def _writes(self) -> bool:
        return workloads.get(self.plan.choice.workload).writes(self.plan.choice.options)

    def _pay(self) -> float:
        """The kernel would write it back later, in the turn of another."""
        if not self._writes:
            return 0.0
        began = time.perf_counter()
        for directory in set(self.session.directories().values()):
            if not copies.sync_from_outside(Path(directory)):
                self.unreached.add(directory)
        return time.perf_counter() - began

    def _request_checkpoint(self) -> None:
        """As often by its own time as a trial would; it runs while its clients work, in this turn and the next ones."""
        every_s = self.checkpoint_s
        if every_s is None:
            return
        due = 1 + int(self.measured_s / every_s)
        if self.checkpoints >= due or (self._checkpoint is not None and self._checkpoint.is_alive()):
            return
        self.checkpoints += 1
        self._checkpoint = threading.Thread(target=self._checkpointed, name="checkpoint", daemon=True)
        self._checkpoint.start()

    @property
    def checkpoint_s(self) -> float | None:
        """Of its own time, from one requested checkpoint to the next; None: none is requested."""
        return checkpoints.settled(self.setup).cell.load.checkpoint_s if self._at_turns.requests else None

    def _checkpointed(self) -> None:
        try:
            line = self.session.line()
            try:
                line.query(engines.get(self.session.engine).traits.dialect.checkpoint())
            finally:
                line.close()
        except IronbenchError:
            return  # a server that died is seen by its clients

    def pay_off(self) -> None:
        """After its last turn: what it owes is paid and timed, while the others rest. FailureError."""
        self.wake()
        self.beneath.end()
        began, owed = time.perf_counter(), False
        if self._checkpoint is not None:
            owed = self._checkpoint.is_alive()
            self._checkpoint.join()
        if checkpoints.made(self.setup.system, self.plan.choice) and self.setup.system.dsn is None:
            self.session.query(engines.get(self.session.engine).traits.dialect.checkpoint())
            self._pay()
            owed = True
        if owed:
            self.debt_s = time.perf_counter() - began
        self.rest()

    def finish(self) -> None:
        """When all have paid: its clients leave, and its checks begin. FailureError."""
        self.wake()
        self._progress.finish()

    def settle(self) -> None:
        """Waits for its checks. OverError: one has failed, or it came to nothing."""
        self._join()
        self.settled = self._whole()
        if not self.settled:
            raise OverError(self)

    def _whole(self) -> bool:
        driven = self.driven
        if driven is None or driven.failure or not driven.alive or not driven.summary:
            return False
        ended = driven.summary["aborted"] or driven.summary["cut_short"] or not driven.summary["transactions"]
        return not ended and all(check.passed for check in driven.checks)

    def stop(self) -> None:
        """Ends its drive at once, whatever it does; what it measured is kept. May be called twice."""
        if self.freezer is not None:
            self.freezer.thaw()
        self._at_turns.stop()
        if self.shared is not None:
            self.shared.give_up()
        if self._thread is not None:
            self._join()

    def _join(self) -> None:
        assert self._thread is not None
        self._thread.join()

    def figures(self) -> dict[str, float]:
        """Metrics of its slices."""
        kept = self.kept
        found = of_slices.figures([one.rate(self.clients) for one in kept]) | {
            "slices_dropped": float(len(self.slices) - len(kept)),
            "slice_length_s": self.slices[0].length_s,
            "slice_cpu_taken_share": fmean(one.taken for one in kept),
            "slice_paid_s": sum(one.paid_s for one in kept),
            "slice_drain_s": sum(one.drain_s for one in kept),
            "frozen_cpu_s": self.frozen_used.cpu_s,
            "frozen_io_bytes": float(self.frozen_used.io_bytes + self.beneath.frozen_io_bytes),
        }
        if self._writes:
            found |= {"slice_debt_s": self.debt_s, "slice_checkpoints": float(self.checkpoints)}
        if self.freezer is None:
            found = {name: value for name, value in found.items() if not name.startswith("frozen_")}
        return found
