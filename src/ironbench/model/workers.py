"""What each worker of a trial did, where several drove it, and how many connections one loads by."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CONNECTIONS = 16
"""Of one process that loads. More gain nothing even on large arrays: a published load of a 100 GB table was 10 % slower
by 32 than by 16."""


@dataclass(frozen=True, slots=True)
class WorkerPart:
    """Its part of one trial. No time of it was taken with two clocks."""

    number: int
    """From 1."""
    host: str
    clients: int
    transactions: int
    failed: int
    elapsed_s: float
    threads_cpu_share: float
    """CPU time of its driving threads over their number and the measured time."""
    machine_cpu_share: float | None = None
    """Share of its machine's CPU time that was used, by whatever; None: not seen."""
    response_time_p50_s: float | None = None
    response_time_p99_s: float | None = None
    start_s: float = 0.0
    """Its start after that of the first."""
    clock_error_s: float = 0.0
    """Its clock is known this well."""
    clock_offset_s: float = 0.0
    """Its clock less that of the machine that ironbench ran on; 0 where they share one."""
    here: bool = True
    """It ran on the machine that ironbench ran on."""
    machine: str = ""
    """Content key of the machine's fingerprint in the store."""
