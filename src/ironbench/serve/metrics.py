"""The page `/metrics`: metrics of running experiments in the OpenMetrics text format 1.0, for Prometheus and similar
programs.

Only the state of the current trial and the index of records are read, so that scraping takes little CPU time from the
trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ironbench._core import VERSION
from ironbench.errors import IronbenchError
from ironbench.model.record import Status
from ironbench.serve.results import NEWEST, Results
from ironbench.serve.running import Experiment

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_SUFFIXES = {"counter": "_total", "info": "_info"}
"""Suffixes that are appended to the family's name in the names of its samples, by type."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A metric family of OpenMetrics: a metric with its samples."""

    name: str
    """Name of the metric, which ends with the unit."""
    type: str
    help: str
    unit: str = ""
    samples: list[tuple[dict[str, str], float]] = field(default_factory=list)
    """Pairs of labels and value."""

    def add(self, value: float | None, **labels: str) -> None:
        """Adds a sample, unless the value is unknown."""
        if value is not None and math.isfinite(value):
            self.samples.append((labels, value))

    def lines(self) -> Iterator[str]:
        yield f"# TYPE {self.name} {self.type}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped(self.help)}"
        for labels, value in self.samples:
            listed = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            shown = f"{{{listed}}}" if listed else ""
            yield f"{self.name}{_SUFFIXES.get(self.type, '')}{shown} {float(value)!r}"


def document(results: Results, experiments: Sequence[Experiment]) -> str:
    """Returns all metrics of the results and of the running experiments."""
    return text([*_of_results(results, experiments), *_of_trials(experiments), *_of_records(results, experiments)])


def text(families: Iterable[MetricFamily]) -> str:
    """Returns the OpenMetrics text of the families. Families without samples are left out."""
    lines = [line for family in families if family.samples for line in family.lines()]
    return "".join(f"{line}\n" for line in [*lines, "# EOF"])


def _of_results(results: Results, experiments: Sequence[Experiment]) -> Iterator[MetricFamily]:
    program = MetricFamily("ironbench", "info", "The version of ironbench that runs this server.")
    program.add(1, version=VERSION)
    running = MetricFamily("ironbench_running_experiments", "gauge", "Running labs and runs.")
    running.add(len(experiments))
    records = MetricFamily("ironbench_records", "gauge", "Trials in these results, by status.")
    for status, count in _by_status(results, "1"):
        records.add(count, status=status)
    yield from (program, running, records)


def _of_trials(experiments: Sequence[Experiment]) -> Iterator[MetricFamily]:
    """Yields metrics of the current trial of each running experiment."""
    trial = MetricFamily("ironbench_trial", "info", "The current trial.")
    clients = MetricFamily("ironbench_trial_clients", "gauge", "Clients of the current trial.")
    elapsed = MetricFamily(
        "ironbench_trial_elapsed_seconds",
        "gauge",
        "Time since the measured time of the current trial began; negative during warm-up.",
        "seconds",
    )
    duration = MetricFamily(
        "ironbench_trial_duration_seconds", "gauge", "Planned measured time of the current trial.", "seconds"
    )
    transactions = MetricFamily(
        "ironbench_trial_transactions", "counter", "Finished transactions of the current trial and its warm-up."
    )
    failed = MetricFamily(
        "ironbench_trial_failed_transactions", "counter", "Failed transactions of the current trial and its warm-up."
    )
    rate = MetricFamily(
        "ironbench_trial_throughput_transactions_per_second",
        "gauge",
        "Throughput in the last complete second of the measured time.",
        "transactions_per_second",
    )
    mean = MetricFamily(
        "ironbench_trial_response_time_mean_seconds",
        "gauge",
        "Mean response time in the last complete second of the measured time.",
        "seconds",
    )
    stddev = MetricFamily(
        "ironbench_trial_response_time_stddev_seconds",
        "gauge",
        "Standard deviation of the response time in the last complete second of the measured time.",
        "seconds",
    )
    for one in experiments:
        if (state := one.state) is None:
            continue
        name = {"experiment": _name(one)}
        trial.add(
            1,
            **name,
            configuration=state.cell,
            block=str(state.block + 1),
            purpose=state.purpose,
            attempt=str(state.attempt),
            phase=state.phase,
        )
        clients.add(state.clients, **name)
        elapsed.add(state.elapsed_s, **name)
        duration.add(state.duration_s, **name)
        transactions.add(state.transactions, **name)
        failed.add(state.failed, **name)
        if state.seconds:
            width_s, finished, _, mean_s, stddev_s, _ = state.seconds[-1]
            rate.add(finished / width_s if width_s > 0 else None, **name)
            mean.add(mean_s, **name)
            stddev.add(stddev_s, **name)
    yield from (trial, clients, elapsed, duration, transactions, failed, rate, mean, stddev)


def _of_records(results: Results, experiments: Sequence[Experiment]) -> Iterator[MetricFamily]:
    """Yields metrics of the progress of each experiment, and of its last finished trial."""
    planned = MetricFamily("ironbench_experiment_planned_trials", "gauge", "Trials that a lab plans.")
    records = MetricFamily("ironbench_experiment_records", "gauge", "Finished trials of an experiment, by status.")
    rate = MetricFamily(
        "ironbench_finished_trial_throughput_transactions_per_second",
        "gauge",
        "Throughput of the last finished trial of a running experiment.",
        "transactions_per_second",
    )
    p99 = MetricFamily(
        "ironbench_finished_trial_response_time_p99_seconds",
        "gauge",
        "99th percentile of the response times of the last finished trial of a running experiment.",
        "seconds",
    )
    for one in experiments:
        if one.elsewhere:  # the records are in another results directory
            continue
        name, where = _name(one), ("lab = ?" if one.lab else "lab = '' and series = ?")
        if one.lab:
            planned.add(_planned(results, one.lab), experiment=name)
        for status, count in _by_status(results, where, name):
            records.add(count, experiment=name, status=status)
        for _, row in results.index().rows(f"{where} {NEWEST} limit 1", name):
            rate.add(row.throughput, experiment=name)
            p99.add(row.response_time_p99_s, experiment=name)
    yield from (planned, records, rate, p99)


def _name(one: Experiment) -> str:
    """Returns a name that is unique among the running experiments."""
    return one.lab or one.series or f"{one.elsewhere} (process {one.process.pid})"


def _planned(results: Results, lab: str) -> int | None:
    """Returns the number of planned trials. Returns None if the plan cannot be read, for example while it is being
    written."""
    try:
        return len(results.lab(lab).lab().trials)
    except IronbenchError:
        return None


def _by_status(results: Results, where: str, *values: str) -> list[tuple[str, int]]:
    """Counts the records that satisfy an SQL condition. Returns a pair for each status: the status and the number of
    records with this status."""
    found = dict(results.index().query(f"select status, count(*) from record where {where} group by status", *values))
    return [(status.word, found.get(status.value, 0)) for status in Status]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
