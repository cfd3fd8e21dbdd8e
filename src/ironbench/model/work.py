"""Interface for workloads that run their own code instead of scripts: the input of one trial, and its result.

How to write one (`workloads/storage` is an example):

- set `drives = True`, `needs` (("bare machine",) if no database is used) and `honours`, the fields of `Load` that the
  workload supports: all others are rejected before anything starts;
- in `drive(work)`, prepare what must not be measured, then open `work.window()` once and do the work inside it;
  observers sample from its start to its end, and CPU time of this process and of children it waited for is counted;
- measure each unit of work (a query, a batch, an I/O) into histograms: in Python with `workloads.tally.Tally`, in Rust
  directly; put additional results into `Outcome.metrics` by their names in catalogue/metrics.toml, and results of parts
  as `name{query=q1}`, `name{profile=rnd4k-q32t1-read}`;
- end soon after `work.stopping()` becomes true (Ctrl-C); code that cannot poll registers a callback with
  `work.on_stop`;
- raise FailureError for failures; set `Outcome.cause` if the workload ended early by itself and the trial is invalid.

Repeats, observers, status, records, labs, comparisons and reports then work as they do for scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from ironbench.model.note import Note
from ironbench.model.observation import Series
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System

if TYPE_CHECKING:
    from ironbench._core import Histogram


class Window(Protocol):
    """The measured window of a trial."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the window opened. The value stays constant after the window has closed."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """The input of one trial."""

    session: Session
    system: System
    choice: Choice
    load: Load
    """The load of the trial, with a seed that is specific to the trial."""
    folder: str
    """A directory for the trial's temporary files, removed after the trial."""
    show: Callable[[float, str], None]
    """Reports progress: the fraction done, and a short text. A call is cheap, but should not be made for every unit of
    work."""
    stopping: Callable[[], bool]
    """Returns whether the user wants the trial to end. ironbench then marks the trial as aborted and stores the results
    so far."""
    on_stop: Callable[[Callable[[], None]], None]
    """Registers a callback that is called once when the user wants the trial to end. The call happens in a signal
    handler, so the callback must only set a flag."""
    window: Callable[[], AbstractContextManager[Window]]
    """Opens the measured window; must be called once per trial."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial. ironbench computes `throughput` and the latencies of all work from it."""

    transactions: int
    """Number of units of work that completed successfully inside the window."""
    failed: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """Number of errors for each SQLSTATE, or for each short name of another kind of error."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """Histograms: `response_time` of all units, and of parts, such as `response_time{query=q1}`."""
    timeline: Mapping[str, bytes] = field(default_factory=dict)
    """Time line as in `DriveResult.timeline`. Empty if units are too long or too different for a rate to be
    meaningful."""
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The workload's own metrics by catalogue name. These metrics replace metrics of the same name that are computed
    for every trial."""
    series: tuple[Series, ...] = ()
    """Time series over the window, such as one point per pass."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files with other evidence, by name, such as {"plans.txt": …}. The files are stored in the record's directory."""
    checks: tuple[Check, ...] = ()
    """Checks in addition to those of `Workload.check`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """Facts detected or chosen at run time that belong in the record, such as {"io": "io_uring"}."""
    warnings: tuple[Note, ...] = ()
    inside: bool = False
    """Whether the system runs in ironbench's own threads or child processes. If so, the CPU time of these threads and
    processes counts as CPU time of the system."""
    answers: Note | None = None
    """How the answers of queries were checked."""
    cause: Note | None = None
    """Why the workload ended early by itself, which makes the trial invalid."""
