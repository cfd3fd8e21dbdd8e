"""The results of each worker of a trial, and the maximum number of connections for loading data."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CONNECTIONS = 16
"""Maximum number of connections of one process that loads data. More connections do not help even on large arrays: in a
published test, loading a 100 GB table was 10% slower with 32 connections than with 16."""


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """Results of one worker in one trial. A duration was measured with the clock of a single machine."""

    number: int
    """1-based number of the worker."""
    host: str
    clients: int
    transactions: int
    failed: int
    elapsed_s: float
    threads_cpu_share: float
    """CPU utilisation of the worker's client threads: their CPU time divided by the number of threads and by the
    measured time."""
    machine_cpu_share: float | None = None
    """Fraction of the machine's CPU time that all programs used, or None if it is not visible."""
    response_time_p50_s: float | None = None
    response_time_p99_s: float | None = None
    start_s: float = 0.0
    """Seconds from the first worker's start to this worker's start."""
    clock_error_s: float = 0.0
    """Uncertainty of `clock_offset_s`."""
    clock_offset_s: float = 0.0
    """Clock of the worker's machine minus clock of the machine that ran ironbench, in seconds. 0 if both are the same
    machine."""
    here: bool = True
    """Whether the worker ran on the same machine as ironbench."""
    machine: str = ""
    """Content key of the machine's fingerprint in the store."""
