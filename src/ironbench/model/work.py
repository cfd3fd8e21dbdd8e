"""Work that is not made of scripts: what a workload that drives itself is given for one trial, and what it gives back.

How to write one (`workloads/storage` is an example):

- set `drives = True`, `needs` (("bare machine",) where no database is used) and `honours`, the fields of `Load` that
  mean something to it: all others are refused before anything starts;
- in `drive(work)` prepare whatever is not to be measured, then open `work.window()` once and do the work inside it;
  observers sample from its start to its end, and CPU time of this process and of children it waited for is counted;
- measure each unit of work (a query, a batch, an I/O) into histograms: from Python with `workloads.tally.Tally`, from
  Rust directly; figures of its own go into `Outcome.metrics` by their names in catalogue/metrics.toml, those of parts
  as `name{query=q1}`, `name{profile=rnd4k-q32t1-read}`;
- end soon when `work.stopping()` turns true (Ctrl-C); code that cannot ask registers with `work.on_stop`;
- raise FailureError for what broke; give `Outcome.cause` when it ended early by itself and the trial is void.

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
    """The measured time of a trial."""

    @property
    def elapsed_s(self) -> float:
        """Since it began; stands still after its end."""
        ...


@dataclass(frozen=True, slots=True)
class Work:
    """One trial."""

    session: Session
    system: System
    choice: Choice
    load: Load
    """Its seed is this trial's own."""
    folder: str
    """A directory of this trial's own for what it must keep meanwhile; gone afterwards."""
    show: Callable[[float, str], None]
    """Progress: the share that is done, and a few words. Cheap, but not for every unit of work."""
    stopping: Callable[[], bool]
    """Whether somebody wants the trial to end. It then is cut short, and what was measured is kept."""
    on_stop: Callable[[Callable[[], None]], None]
    """Registers what is called, once, when somebody does: in a signal handler, so it must only set something."""
    window: Callable[[], AbstractContextManager[Window]]
    """Opens the measured window; once in a trial."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to. `throughput` and the latencies of all work follow from it."""

    transactions: int
    """Units of work that ended well inside the window."""
    failed: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    """How often each error came, by SQLSTATE or another short name."""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """`response_time` of all units, and of parts, e.g. `response_time{query=q1}`."""
    timeline: Mapping[str, bytes] = field(default_factory=dict)
    """As `DriveResult.timeline`; empty where units are too long or too unlike for a rate to mean anything."""
    seconds: Mapping[str, bytes] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Its own, by catalogue name; they win over those of the same name that are computed for every trial."""
    series: tuple[Series, ...] = ()
    """Over the window, e.g. one point per pass."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Evidence that is no number, kept in the record's folder under these names, e.g. {"plans.txt": …}."""
    checks: tuple[Check, ...] = ()
    """Beside those of `Workload.check`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What was found or chosen at run time and must be in the record, e.g. {"io": "io_uring"}."""
    warnings: tuple[Note, ...] = ()
    inside: bool = False
    """The system works in our own threads or children: their CPU time is the system's, not a client's."""
    answers: Note | None = None
    """How the answers of queries were checked."""
    cause: Note | None = None
    """Why it ended early by itself: the trial is void."""
