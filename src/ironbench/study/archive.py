"""What a study reads besides records, by the id of a trial or the key of a fingerprint. The record store is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ironbench.model.inside import NOTHING, Inside
from ironbench.model.observation import Counted
from ironbench.model.record import Statement
from ironbench.model.workers import WorkerPart

T = TypeVar("T")
Columns = Mapping[str, Any]
"""Column name → array of values, all of one length."""


class Archive(Protocol):
    """Missing evidence is an empty mapping, never an error: old or imported trials may lack it."""

    def seconds(self, id: str) -> Columns:
        """`t_s`, `transactions`, `errors`, `response_p50_s`, `response_p99_s` …, a row per second."""
        ...

    def observed(self, id: str) -> Mapping[str, Columns]:
        """Series name → its columns `t_s` and `value`."""
        ...

    def counted(self, id: str) -> Sequence[Counted]:
        """Sizes and latencies of I/Os, by role."""
        ...

    def histograms(self, id: str) -> Mapping[str, Any]:
        """`response_time`, `service_time` and their parts, each with `count`, `quantiles`, `merge` and bytes."""
        ...

    def text(self, id: str, name: str) -> str:
        """A file of the workload's own, such as `plans.txt`; empty where there is none."""
        ...

    def inside(self, id: str) -> Inside:
        """What the server said of it."""
        ...

    def timed(self, id: str) -> Sequence[Statement]:
        """Times of the commands of its scripts, where they were asked for."""
        ...

    def workers(self, id: str) -> Sequence[WorkerPart]:
        """What each did, where several drove it."""
        ...

    def machine(self, key: str) -> Mapping[str, Any]: ...

    def engine(self, key: str) -> Mapping[str, Any]: ...

    def script(self, key: str) -> str: ...


class Archives:
    """Several archives as one: ids and keys are made of what they stand for, so the first that knows one will do."""

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

    def histograms(self, id: str) -> Mapping[str, Any]:
        return self._first(lambda one: one.histograms(id), {})

    def text(self, id: str, name: str) -> str:
        return self._first(lambda one: one.text(id, name), "")

    def inside(self, id: str) -> Inside:
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
"""Holds nothing."""
