"""Maintenance operations on a database in use: backup, restore, index build, vacuum (docs/workloads/maintenance.md).

A trial consists of one such operation. A probe client is timed before and during the operation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ironbench.errors import InputError, written
from ironbench.model.note import note
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.workloads import probe_client
from ironbench.workloads.base import Dataset, Option, Workload
from ironbench.workloads.operations import Operation, carried_out
from ironbench.workloads.probe_client import CALM, PROBE, ProbeClient
from ironbench.workloads.wide_table import GB, ROW, TABLE, WideTable

USUAL_BYTES_PER_S = 100e6
"""Typical rate in bytes per second. The rate was measured on a small virtual machine, and only its order of magnitude
is meaningful."""


@dataclass(frozen=True, slots=True)
class OperationResult:
    """Result of a maintenance operation."""

    bytes: int
    """Size in bytes of the table, backup or index on which the operation worked."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadyOperation:
    """An operation that is ready to start."""

    operation: Operation
    done: Callable[[], OperationResult]
    """Returns the result. The function is called once, right after the operation. Raises FailureError."""


class Maintenance(Workload):
    """Base class of workloads that run one operation on the table of wide rows."""

    scores = ("maintenance_bytes_per_s", "throughput")
    needs = ("maintenance",)
    drives = True
    starts_from_copy = True
    honours = frozenset()
    usual_warmup_s = 0.0
    options: tuple[Option, ...] = (GB, ROW, PROBE, CALM)
    counts = ("operation", "operations")

    def leading(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return ("maintenance_elapsed_s", "maintenance_bytes_per_s")

    @contextmanager
    @abstractmethod
    def prepared(self, work: Work) -> Iterator[ReadyOperation]:
        """Prepares the operation. At the end of the block, removes everything that was created for it. Raises
        FailureError."""

    def usual_duration_s(self, options: Mapping[str, str]) -> float | None:
        return None

    def expected_s(self, engine: str, options: Mapping[str, str]) -> float:
        return float(options["calm"]) + table(options).stored_bytes(engine) / USUAL_BYTES_PER_S

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        return table(options).dataset(engine, loaded=True)

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        if load.duration_s is not None:
            raise InputError(
                written("load.duration"),
                f"has no effect on `{self.name}`, because a trial lasts as long as the {self.counts[0]}",
                "remove it",
            )

    def drive(self, work: Work) -> Outcome:
        one = ProbeClient(work, f"select amount from {TABLE} where id =", table(work.choice.options).rows)
        with self.prepared(work) as ready:
            baseline_s = float(work.choice.options["calm"])
            work.show(0.0, f"probe client only (baseline) for {baseline_s:g} s")
            baseline = one.baseline(baseline_s)
            with one.watching() as seen, work.window() as window:
                took_s = carried_out(
                    ready.operation, work.stopping, lambda s: work.show(0.5, f"{self.counts[0]}, {s:.0f} s")
                )
            if took_s is None:
                return Outcome(0)
            busy, done = seen(), ready.done()
        return self._outcome(took_s, baseline, busy, done, window.elapsed_s)

    def _outcome(
        self,
        took_s: float,
        baseline: probe_client.ProbeTimes,
        busy: probe_client.ProbeTimes,
        done: OperationResult,
        elapsed_s: float,
    ) -> Outcome:
        from ironbench._core import Histogram

        whole = Histogram()
        whole.record(round(took_s * 1e9))
        own = {
            "maintenance_elapsed_s": took_s,
            "maintenance_bytes": float(done.bytes),
            "maintenance_bytes_per_s": done.bytes / took_s,
        }
        return Outcome(
            transactions=1,
            errors=busy.errors,
            histograms={"response_time": whole, **probe_client.histograms(baseline, busy)},
            metrics={**own, **probe_client.metrics(baseline, busy), **done.metrics},
            checks=done.checks,
            facts=done.facts,
            cause=note("probe-connection-broke", error=busy.cause) if busy.cause else None,
        )

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        """Checks that the table still contains the loaded rows."""
        return () if summary["cut_short"] else table(options).checks(session)


def table(options: Mapping[str, str]) -> WideTable:
    return WideTable.of(options, "number")
