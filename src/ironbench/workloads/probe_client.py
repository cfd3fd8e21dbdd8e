"""A probe client that uses the database during a maintenance operation, to measure what other users notice.

By default, the probe client does two things ten times a second: it opens and closes a connection, and it reads a row by
its key over another connection. The core measures both from their scheduled start
(crates/ironbench-core/src/drive/probe_client.rs): first during a baseline phase without the operation, then during the
operation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ironbench.errors import FailureError, IronbenchError
from ironbench.model.sample import quantiles
from ironbench.model.work import Work
from ironbench.workloads.base import Option

if TYPE_CHECKING:
    from ironbench._core import DriveResult, Histogram

KINDS = ("select", "connect")
PROBE = Option(
    "probe",
    "10",
    "number of connections that the probe client opens per second, which is also the number "
    "of rows that the probe client reads per second",
    lowest=1,
    highest=100,
)
CALM = Option(
    "calm",
    "5",
    "length of the baseline phase in s, in which only the probe client runs",
    lowest=1,
    highest=600,
    whole=False,
)
_BASELINE_PERCENTILES = {"p50": 0.50, "p99": 0.99}
"""Percentiles of the baseline phase that are recorded for comparison."""


@dataclass(slots=True)
class ProbeTimes:
    """Response times and errors of the probe client in one phase."""

    histograms: dict[str, Histogram] = field(default_factory=dict)
    failed: int = 0
    missed: int = 0
    """Number of scheduled probes that were left out, because an earlier probe took too long."""
    errors: dict[str, int] = field(default_factory=dict)
    cause: str = ""
    """Error that ended probing early. "" if there was none."""


class ProbeClient:
    """The probe client of one trial."""

    def __init__(self, work: Work, select: str, keys: int) -> None:
        """Creates the probe client. `select`: a query for one row. The query must end in `=`, because a number from 1
        to `keys` is appended."""
        self._work = work
        self._what = {"kind": "bystander", "select": select, "keys": keys}
        self._per_s = int(work.choice.options["probe"])

    def baseline(self, duration_s: float) -> ProbeTimes:
        """Measures the baseline phase, during which nothing else happens. Raises FailureError if the server is
        unreachable."""
        from ironbench import _core

        progress = _core.Progress()
        self._work.on_stop(progress.stop)
        return _probe_times(_core.drive(self._plan({"duration_s": duration_s}), progress))

    @contextmanager
    def watching(self) -> Iterator[Callable[[], ProbeTimes]]:
        """Probes while the block runs. The function that is yielded returns the result, and must be called after the
        block. This function raises FailureError if probing failed."""
        from ironbench import _core

        progress = _core.Progress()
        results: list[DriveResult] = []
        errors: list[IronbenchError] = []

        def watch() -> None:
            try:
                results.append(_core.drive(self._plan({"transactions": 1}), progress))
            except IronbenchError as error:
                errors.append(error)

        thread = threading.Thread(target=watch, name="bystander", daemon=True)
        thread.start()

        def response_times() -> ProbeTimes:
            if errors:
                raise FailureError("probe client", str(errors[0])) from errors[0]
            return _probe_times(results[0])

        try:
            yield response_times
        finally:
            progress.finish()
            thread.join()

    def _plan(self, stop: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode(
            {
                "engine": self._work.session.target(),
                "scripts": [],
                "work": self._what,
                "variables": [],
                "clients": len(KINDS),
                "threads": len(KINDS),
                "seed": self._work.load.seed,
                "schedule": {"kind": "open", "rate": self._per_s * len(KINDS), "arrivals": "fixed"},
                "stop": stop,
                "warmup_s": 0.0,
                "max_tries": 1,
                "observers": [],
            }
        )


def _probe_times(result: DriveResult) -> ProbeTimes:
    summary = msgspec.json.decode(result.summary, type=dict[str, Any])
    times = {kind: result.histograms[f"response_time{{script={kind}}}"] for kind in KINDS}
    return ProbeTimes(times, summary["failed"], summary["not_started"], summary["errors"], summary["cause"])


def metrics(baseline: ProbeTimes, busy: ProbeTimes) -> dict[str, float]:
    """Returns the metrics. The keys are names in the catalogue. Response times during the operation are not included,
    because they are computed from `histograms`."""
    by_name = {"bystander_failed": float(busy.failed), "bystander_missed": float(busy.missed)}
    for kind in KINDS:
        before, during = baseline.histograms[kind], busy.histograms[kind]
        if not before.count:
            continue
        for name, value_s in {"mean": before.mean_s, **quantiles(before, _BASELINE_PERCENTILES)}.items():
            by_name[f"bystander_{kind}_{name}_s{{phase=calm}}"] = value_s
        if during.count and before.mean_s > 0:
            by_name[f"bystander_{kind}_slowdown"] = during.mean_s / before.mean_s
    return by_name


def histograms(baseline: ProbeTimes, busy: ProbeTimes) -> dict[str, Histogram]:
    """Returns the histograms. The keys are the names of their metrics."""
    by_name = {f"bystander_{kind}": busy.histograms[kind] for kind in KINDS}
    return by_name | {f"bystander_{kind}{{phase=calm}}": baseline.histograms[kind] for kind in KINDS}
