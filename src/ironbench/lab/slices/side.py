"""A system that is interleaved with the other systems of its block. The system gets load only in its turns, and is
paused between them."""

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
from ironbench.host.processes import ResourceUsage
from ironbench.lab.slices.shared import SharedChecks
from ironbench.lab.slices.slice_plan import AT_WORK_S, EARLY_S, LATE_S, START_UP_S
from ironbench.lab.slices.system_devices import SystemDevices
from ironbench.lab.slices.turn import Slice, attribute_errors_to
from ironbench.model.driven import Driven
from ironbench.model.plan import Plan
from ironbench.model.profile import SampledProfile
from ironbench.model.profile_request import ProfileRequest
from ironbench.model.record import Record
from ironbench.model.session import PausableSession, ServerPause, Session
from ironbench.model.system import Load, Setup
from ironbench.model.trial_notes import TrialNotes
from ironbench.printer import Printer
from ironbench.stats import slices as of_slices
from ironbench.stats.slices import StartTransactions
from ironbench.trial.drive import checkpoints
from ironbench.trial.drive import profile as profiling
from ironbench.trial.drive.drive_trial import DriveOptions, drive, unpacked
from ironbench.trial.load import Loaded

if TYPE_CHECKING:
    from ironbench._core import Profiler, Progress


class DriveEndedError(Exception):
    """Raised when the trial of a system ended early or without a result."""

    def __init__(self, side: SliceSide) -> None:
        super().__init__(side)
        self.side = side


class TurnDriver:
    """Runs the load of one system in a separate thread. The thread waits while other systems have their turns."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.progress: Progress | None = None
        self.rehearsal: Progress | None = None
        self.stopping = False
        """Whether the trial must end. May be set before the trial starts."""
        self.requests = False
        """Whether the trial needs requested checkpoints. `SliceSide` requests them in the system's turns, at intervals
        that count only these turns."""

    def drive(self, plan: bytes, load: Load, progress: Progress, rehearsal: bool = False) -> Driven:
        """Drives the trial in turns. A rehearsal runs before the first turn and is not divided into turns."""
        if rehearsal:
            self.rehearsal = progress
        else:
            # Observers are removed, because they sample at fixed intervals, also during other systems' turns. The
            # observer that requests checkpoints is replaced by `SliceSide`.
            whole = msgspec.json.decode(plan, type=dict[str, Any])
            self.requests = any(one["name"] == REQUEST for one in whole["observers"])
            plan = msgspec.json.encode({**whole, "observers": []})
            progress.by_turns()
            self.progress = progress
            self.begun.set()
        if self.stopping:
            progress.stop()
        return unpacked(_core.drive(plan, progress))

    def stop(self) -> None:
        """Ends the current run of the load and prevents another one. Called from another thread."""
        self.stopping = True
        for one in filter(None, (self.rehearsal, self.progress)):
            one.stop()


@dataclass(slots=True)
class SliceSide:
    """A running system with connected clients."""

    plan: Plan
    setup: Setup
    session: Session
    loaded: Loaded
    prepared: TrialNotes
    place: str
    """Key of the place where the system's data are stored (`lab.data.data_location`)."""
    began_s: float = 0.0
    """Start of the block, as `time.monotonic`."""
    storage: SystemDevices = field(default_factory=lambda: SystemDevices(NO_DEVICES))
    shared: SharedChecks | None = None
    """Checks that are shared with other systems on the same data."""
    freezer: ServerPause | None = None
    driven: Driven | None = None
    slices: list[Slice] = field(default_factory=list)
    frozen_used: ResourceUsage = field(default_factory=ResourceUsage)
    """Resources that the system's processes used during pauses. The trial's resource usage excludes these resources."""
    debt_s: float = 0.0
    """Seconds after the last turn for writes that the turns left behind: the end of a running checkpoint, one more
    checkpoint, and writing back dirty data."""
    unreached: set[str] = field(default_factory=set)
    """Directories whose file systems could not be synced because they belong to another user."""
    checkpoints: int = 0
    settled: bool = False
    """Whether the system's load ran to the end and the system's checks passed."""
    record: Record | None = None
    """The system's record, once it is written. After Ctrl-C, this shows that no second record is needed."""
    profile: SampledProfile | None = None
    """The stacks that were sampled in the system's measured slices."""
    _profiler: Profiler | None = None
    _at_turns: TurnDriver = field(default_factory=TurnDriver)
    _thread: threading.Thread | None = None
    _checkpoint: threading.Thread | None = None
    _frozen_at: ResourceUsage | None = None
    _requested_before: int = 0
    """Number of checkpoints that had been requested when the system's last turn started."""
    _turn_at_s: float = 0.0

    @property
    def cell(self) -> str:
        """Name of the configuration."""
        return self.setup.cell.name

    @property
    def clients(self) -> int:
        return self.setup.cell.load.clients

    @property
    def warmup_s(self) -> float | None:
        return self.setup.cell.load.warmup_s

    def processes(self) -> Sequence[int]:
        """Returns the process ids of the system's server. Returns nothing if they are not visible on this machine."""
        return self.session.processes()

    def connect(self) -> None:
        """Connects the system's clients and pauses the system. Raises DriveEndedError if connecting failed, and
        KeyboardInterrupt."""
        self.storage.wake()
        self._thread = threading.Thread(target=self._drive, name=f"drive {self.cell}", daemon=True)
        self._thread.start()
        while not self._at_turns.begun.wait(0.05):
            if not self._thread.is_alive():
                raise self._over()
        if not self._progress.rested():
            raise self._over()
        if isinstance(self.session, PausableSession):
            self.freezer = self.session.freezer()
        self.rest()

    def _drive(self) -> None:
        trial, options = self.plan.trials[0], DriveOptions(driver=self._at_turns, by_clock=False)
        if self.shared is not None:
            options = replace(options, combine=self.shared.whole)
        if self.storage.devices.mounted:
            options = replace(options, while_checking=self.storage.devices.at_once)
        plan = replace(self.plan, profile=None)  # stacks are sampled outside of `drive`, see `begin_profile`
        try:
            self.driven = drive(plan, self.session, trial, tuple, Printer(StringIO(), StringIO()), options)
        except KeyboardInterrupt:
            return  # the main thread has stopped the rehearsal
        finally:
            if self.shared is not None:
                self.shared.give_up()  # no effect if all systems have ended

    @property
    def _progress(self) -> Progress:
        assert self._at_turns.progress is not None
        return self._at_turns.progress

    def turn(self, start_up_s: float, slice_s: float) -> None:
        """Runs a turn and pauses the system after it. Raises DriveEndedError, OneSystemError and KeyboardInterrupt."""
        with attribute_errors_to(self.cell):
            self.wake()
            self._begin(start_up_s, slice_s)
            self._end(slice_s)

    def _begin(self, start_up_s: float, slice_s: float) -> None:
        """Starts the clients of the resumed system."""
        self._turn_at_s = time.monotonic() - self.began_s
        self._requested_before = self.checkpoints
        if slice_s > 0:
            self._request_checkpoint()
        self._progress.begin_turn(start_up_s, slice_s, ())

    def _end(self, slice_s: float) -> None:
        """Waits for the system's clients, writes back its dirty data and pauses it. Raises DriveEndedError,
        FailureError and KeyboardInterrupt."""
        turned = self._rested()
        paid_s = self._write_back()
        self.rest()
        if slice_s > 0:
            self.slices.append(Slice(self._turn_at_s, slice_s, *turned, paid_s))

    def _rested(self) -> tuple[int, int, float, float, float]:
        turned = self._progress.rested()
        if turned is None:
            raise self._over()
        return turned

    def judge(self, taken: float) -> None:
        """Stores `taken`, the fraction of CPU time that other programs used during the last turn."""
        self.slices[-1] = replace(self.slices[-1], taken=taken)

    def forget(self) -> None:
        """Drops the last slice. If a checkpoint was requested in this slice, it will be requested again."""
        self._progress.forget()
        self.checkpoints = self._requested_before
        self.slices[-1] = replace(self.slices[-1], dropped=True)

    @property
    def kept(self) -> Sequence[Slice]:
        return [one for one in self.slices if not one.dropped]

    def started(self) -> StartTransactions:
        """Measures how fast transactions are right after start-up, and how fast they are later. For this, it runs two
        turns that are not recorded. Between them, the clients pause, but the server is not paused. The start of the
        second turn is not measured either, because transactions that begin before the measured part are not counted.
        Raises DriveEndedError, OneSystemError and KeyboardInterrupt.
        """
        with attribute_errors_to(self.cell):
            self.wake()
            early, early_s = self._tried(START_UP_S, EARLY_S)
            late, late_s = self._tried(AT_WORK_S, LATE_S)
            self._write_back()
            self.rest()
        return StartTransactions(early, late, early_s, late_s)

    def _tried(self, start_up_s: float, slice_s: float) -> tuple[int, float]:
        """Runs a turn that is not recorded. Returns the number of its transactions, and the mean time in seconds that a
        client spent on them."""
        self._progress.begin_turn(start_up_s, slice_s, ())
        transactions, _, busy_s, *_ = self._rested()
        self._progress.forget()
        return transactions, busy_s / self.clients if busy_s > 0 else slice_s

    def _over(self) -> BaseException:
        """Returns the exception for a turn without a result. After Ctrl-C, the core stops waiting for the turn, but the
        load continues. In this case, waiting for the end of the load would never return.
        """
        if self._at_turns.progress is not None and not self._at_turns.progress.over:
            return KeyboardInterrupt()
        self._join()
        return DriveEndedError(self)

    def begin_profile(self, request: ProfileRequest | None) -> None:
        """Starts to sample the stacks of this system and of the client. Raises FailureError."""
        if request is not None:
            self._profiler = profiling.started(request, self.session)

    def end_profile(self) -> None:
        """Stops sampling. The profile contains only samples from kept slices of this system. Start-ups are excluded. A
        second call has no effect."""
        profiler, self._profiler = self._profiler, None
        if profiler is not None and self.kept:
            began = ((self.began_s + one.at_s + one.start_up_s, one.length_s) for one in self.kept)
            self.profile = profiling.collected(profiler.stop([profiling.window(*one) for one in began]))

    @property
    def turns_s(self) -> float:
        """Total seconds of the system's turns that contain a slice. Dropped turns are included; the warm-up and the
        pilot are not."""
        return sum(one.start_up_s + one.length_s + one.drain_s + one.paid_s for one in self.slices)

    @property
    def measured_s(self) -> float:
        return sum(one.length_s for one in self.kept)

    def rest(self) -> None:
        if self.freezer is not None:
            self.freezer.freeze()
            self.storage.rest()
            self._frozen_at = self._used()

    def wake(self) -> None:
        if self.freezer is None:
            return
        if self._frozen_at is not None and self.session.processes():
            self.frozen_used += self._used() - self._frozen_at
            self._frozen_at = None
        self.storage.wake()
        self.freezer.thaw()

    def _used(self) -> ResourceUsage:
        return processes.used((*self.session.processes(), *self.storage.processes))

    @property
    def _writes(self) -> bool:
        return workloads.get(self.plan.choice.workload).writes(self.plan.choice.options)

    def _write_back(self) -> float:
        """Writes the system's dirty data back. Otherwise, the kernel would write them back later, in another system's
        turn. Returns the seconds that this took."""
        if not self._writes:
            return 0.0
        began = time.perf_counter()
        for directory in set(self.session.directories().values()):
            if not copies.sync_from_outside(Path(directory)):
                self.unreached.add(directory)
        return time.perf_counter() - began

    def _request_checkpoint(self) -> None:
        """Requests a checkpoint if one is due. Checkpoints are requested at fixed intervals, which count only the time
        of this system's slices. If a checkpoint takes longer than the turn, it continues in the next turns."""
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
        """Interval between requested checkpoints, in seconds of this system's slices, or None if no checkpoints are
        requested."""
        if not self._at_turns.requests:
            return None
        return checkpoints.interval_s(self.setup.system, self.setup.choice, self.setup.cell.load)

    def _checkpointed(self) -> None:
        try:
            line = self.session.line()
            try:
                line.query(engines.get(self.session.engine).traits.dialect.checkpoint())
            finally:
                line.close()
        except IronbenchError:
            return  # not reported here: if the server died, the clients report it

    def finish_writes(self) -> None:
        """Finishes the writes that the turns left behind, and stores their time. The other systems are paused. Raises
        FailureError."""
        self.wake()
        self.storage.end()
        began, owed = time.perf_counter(), False
        if self._checkpoint is not None:
            owed = self._checkpoint.is_alive()
            self._checkpoint.join()
        if checkpoints.made(self.setup.system, self.plan.choice) and self.setup.system.dsn is None:
            self.session.query(engines.get(self.session.engine).traits.dialect.checkpoint())
            self._write_back()
            owed = True
        if owed:
            self.debt_s = time.perf_counter() - began
        self.rest()

    def finish(self) -> None:
        """Disconnects the system's clients and starts its checks. Called after all systems have finished their writes.
        Raises FailureError."""
        self.wake()
        self._progress.finish()

    def settle(self) -> None:
        """Waits for the system's checks to finish. Raises DriveEndedError if a check failed or there is no result."""
        self._join()
        self.settled = self._whole()
        if not self.settled:
            raise DriveEndedError(self)

    def _whole(self) -> bool:
        driven = self.driven
        if driven is None or driven.failure or not driven.alive or not driven.summary:
            return False
        ended = driven.summary["aborted"] or driven.summary["cut_short"] or not driven.summary["transactions"]
        return not ended and all(check.passed for check in driven.checks)

    def stop(self) -> None:
        """Stops the load immediately and keeps what was measured. A second call has no effect."""
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
        """Returns the metrics of the system's slices."""
        kept = self.kept
        found = of_slices.figures([one.rate(self.clients) for one in kept]) | {
            "slices_dropped": float(len(self.slices) - len(kept)),
            "slice_length_s": self.slices[0].length_s,
            "slice_cpu_taken_share": fmean(one.taken for one in kept),
            "slice_paid_s": sum(one.paid_s for one in kept),
            "slice_drain_s": sum(one.drain_s for one in kept),
            "frozen_cpu_s": self.frozen_used.cpu_s,
            "frozen_io_bytes": float(self.frozen_used.io_bytes + self.storage.frozen_io_bytes),
        }
        if self._writes:
            found |= {"slice_debt_s": self.debt_s, "slice_checkpoints": float(self.checkpoints)}
        if self.freezer is None:
            found = {name: value for name, value in found.items() if not name.startswith("frozen_")}
        return found
