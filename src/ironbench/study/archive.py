"""Stored evidence that a study reads in addition to records. Evidence is found by the id of a trial or the key of a
fingerprint. The record store implements `Archive`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ironbench.model.inside import NOTHING, ServerStatistics
from ironbench.model.observation import Counted
from ironbench.model.profile import SampledStack
from ironbench.model.record import Statement
from ironbench.model.workers import WorkerPart

T = TypeVar("T")
Columns = Mapping[str, Any]
"""For each column name, the array of values. The arrays have the same length."""


class Archive(Protocol):
    """Stored evidence of trials. Missing evidence is an empty value and never an error, because old or imported trials
    may lack it."""

    def seconds(self, id: str) -> Columns:
        """Returns the time series with one row per second: `t_s`, `transactions`, `errors`, `response_p50_s`,
        `response_p99_s` …"""
        ...

    def observed(self, id: str) -> Mapping[str, Columns]:
        """Returns the observed series by name, each with the columns `t_s` and `value`."""
        ...

    def counted(self, id: str) -> Sequence[Counted]:
        """Returns histograms of I/O sizes and latencies, one of each kind for each role."""
        ...

    def profile(self, id: str) -> Sequence[SampledStack]:
        """Returns the sampled stacks. Returns nothing if the trial was not profiled."""
        ...

    def histograms(self, id: str) -> Mapping[str, Any]:
        """Returns histograms by name (`response_time`, `service_time` and parts), each with `count`, `quantiles`,
        `merge`."""
        ...

    def text(self, id: str, name: str) -> str:
        """Returns a text file that the workload wrote, such as `plans.txt`. Returns an empty text if there is no such
        file."""
        ...

    def inside(self, id: str) -> ServerStatistics:
        """Returns statistics from inside the database server."""
        ...

    def timed(self, id: str) -> Sequence[Statement]:
        """Returns the times of each command in the trial's scripts. Returns nothing if the run did not record them."""
        ...

    def workers(self, id: str) -> Sequence[WorkerPart]:
        """Returns the results of each worker. Returns nothing if the trial had no workers."""
        ...

    def machine(self, key: str) -> Mapping[str, Any]: ...

    def engine(self, key: str) -> Mapping[str, Any]: ...

    def script(self, key: str) -> str: ...


class Archives:
    """Combines several archives into one. Ids and keys are derived from contents, so entries with equal ids or keys are
    equal. Each entry is read from the first archive that contains it."""

    def __init__(self, archives: Sequence[Archive]) -> None:
        self._archives = archives

    def _first(self, ask: Callable[[Archive], T], nothing: T) -> T:
        answers = (ask(one) for one in self._archives)
        return next((found for found in answers if found), nothing)

    def seconds(self, id: str) -> Columns:
        return self._first(lambda one: one.seconds(id), {})

    def observed(self, id: str) -> Mapping[str, Columns]:
        return self._first(lambda one: one.observed(id), {})

    def counted(self, id: str) -> Sequence[Counted]:
        return self._first(lambda one: one.counted(id), ())

    def profile(self, id: str) -> Sequence[SampledStack]:
        return self._first(lambda one: one.profile(id), ())

    def histograms(self, id: str) -> Mapping[str, Any]:
        return self._first(lambda one: one.histograms(id), {})

    def text(self, id: str, name: str) -> str:
        return self._first(lambda one: one.text(id, name), "")

    def inside(self, id: str) -> ServerStatistics:
        return self._first(lambda one: one.inside(id), NOTHING)

    def timed(self, id: str) -> Sequence[Statement]:
        return self._first(lambda one: one.timed(id), ())

    def workers(self, id: str) -> Sequence[WorkerPart]:
        return self._first(lambda one: one.workers(id), ())

    def machine(self, key: str) -> Mapping[str, Any]:
        return self._first(lambda one: one.machine(key), {})

    def engine(self, key: str) -> Mapping[str, Any]:
        return self._first(lambda one: one.engine(key), {})

    def script(self, key: str) -> str:
        return self._first(lambda one: one.script(key), "")


EMPTY = Archives(())
"""An archive without any evidence."""
