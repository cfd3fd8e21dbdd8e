"""Words for bottlenecks, and for where the time of transactions goes."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.model.note import Note
from ironbench.model.observer import CONCURRENCY, OTHER_PROGRAMS, SERVER_CPU
from ironbench.report.wording.registry import text, wording
from ironbench.report.wording.values import Strings, names, percent, strings
from ironbench.words import counted, listed

_HOLDERS = {
    "server": "the server",
    "client": "the client",
    "observers": "our observers",
    "emulation": "device emulation",
    "kernel": "the kernel",
    "other": "other programs",
    "steal": "other virtual machines",
}
"""Part of the CPU budget → its name in a sentence."""
_RESOURCES = {
    SERVER_CPU: "the server's CPU",
    OTHER_PROGRAMS: "other programs on the machine",
    CONCURRENCY: "concurrency",
    "data-reads": "reading data",
    "data-writes": "writing data",
    "wal": "WAL",
    "temp-files": "I/O of temporary files",
    "locks": "waiting for locks",
    "internal-locks": "waiting for the engine's internal locks (LWLocks, latches)",
    "client": "the client",
}


def resource_name(resource: str) -> str:
    """`reading data`"""
    return _RESOURCES.get(resource, resource)


def _cpu_time(cpu: Sequence[tuple[str, float]]) -> str:
    """`of the CPU time other programs had 40% and the server had 30%`"""
    return f"of the CPU time {listed([f'{_HOLDERS.get(part, part)} had {percent(share)}' for part, share in cpu])}"


def _measure_again(cpu: Sequence[tuple[str, float]]) -> str:
    words = f" {_cpu_time(cpu)}." if cpu else ""
    return f".{words[:2].upper()}{words[2:]} Measure when the machine is quiet"


@wording("rival")
def rival(resource: str, share: float, computing: float | None = None, waiting: float | None = None) -> str:
    """reading data takes 30% of the time"""
    verb = "take" if resource == OTHER_PROGRAMS else "takes"
    apart = ""
    if computing is not None and waiting is not None:
        apart = f" ({percent(computing)} computing, {percent(waiting)} waiting for a core)"
    return f"{resource_name(resource)} {verb} {percent(share)} of the time{apart}"


@wording("limit-unknown")
def limit_unknown(rivals: Sequence[Note], unknown: float = 0.0, cpu: Sequence[tuple[str, float]] = ()) -> str:
    """what limits is inconclusive: reading data takes 30% of the time and WAL takes 28% of the time"""
    known = f"; {percent(unknown)} is in no known part" if unknown else ""
    return f"what limits is inconclusive: {' and '.join(map(text, rivals))}{known}{_measure_again(cpu) if cpu else ''}"


@wording("limit-unknown-own-cpu")
def limit_unknown_own_cpu(share: float) -> str:
    """what limits is inconclusive: 60% of the time goes to the server's CPU, but client and observers took much …"""
    return (
        f"what limits is inconclusive: {percent(share)} of the time goes to the server's CPU, but client and observers "
        "took much of the CPU themselves; give them cores of their own (client_cpus, server_cpus)"
    )


@wording("limit-other-programs")
def limit_other_programs(waiting: float, computing: float, cpu: Sequence[tuple[str, float]]) -> str:
    """the limit is other programs on the machine: 60% of the time is spent waiting for a core, 20% computing. …"""
    spent = f"{percent(waiting)} of the time is spent waiting for a core, {percent(computing)} computing"
    return f"the limit is {resource_name(OTHER_PROGRAMS)}: {spent}{_measure_again(cpu)}"


@wording("limit-clients")
def limit_clients(computing: float, idle: float, clients: int) -> str:
    """the limit is concurrency: 90% of the time is spent computing, with hardly any wait for a core, and 50% of …"""
    return (
        f"the limit is {resource_name(CONCURRENCY)}: {percent(computing)} of the time is spent computing, with hardly "
        f"any wait for a core, and {percent(idle)} of the CPU time was idle: {counted(clients, 'client')} cannot use "
        "the cores, more would"
    )


@wording("limit-none")
def limit_none(resource: str, share: float, evidence: Sequence[Note] = ()) -> str:
    """nothing limits: the rate was kept. Most of the service time goes to WAL: 60% of the time is spent there"""
    goes = f"most of the service time goes to {resource_name(resource)}: {_evidence(share, evidence)}"
    return f"nothing limits: the rate was kept. {goes[:1].upper()}{goes[1:]}"


@wording("limit")
def limit(resource: str, share: float, evidence: Sequence[Note] = ()) -> str:
    """the limit is the server's CPU: 70% of the time is spent there, 60% waiting for a core: more cores would help …"""
    return f"the limit is {resource_name(resource)}: {_evidence(share, evidence)}"


def _evidence(share: float, evidence: Sequence[Note]) -> str:
    return "".join((f"{percent(share)} of the time is spent there", *map(text, evidence)))


# Evidence: read after "60% of the time is spent there".


@wording("locks-of-table")
def locks_of_table(table: str) -> str:
    """, waiting for rows of branches or the table itself"""
    return f", waiting for rows of {table} or the table itself"


@wording("locks-root")
def locks_root(event: str, does: str, share: float) -> str:
    """; at the root of the chain the holder waits for its client (40% of looks)"""
    return f"; at the root of the chain the holder {does or f'waits for {event}'} ({percent(share)} of looks)"


@wording("cpu-or-run-queue")
def cpu_or_run_queue() -> str:
    """, computing or waiting for a core: which of the two is unknown"""
    return ", computing or waiting for a core: which of the two is unknown"


@wording("cpu-computing")
def cpu_computing(share: float) -> str:
    """, 60% computing: faster cores or less work per transaction would help"""
    return f", {percent(share)} computing: faster cores or less work per transaction would help"


@wording("cpu-waiting")
def cpu_waiting(share: float, more_cores: bool, cpu: Sequence[tuple[str, float]] = ()) -> str:
    """, 60% waiting for a core: more cores would help before faster ones"""
    waiting = f", {percent(share)} waiting for a core"
    if more_cores:
        return f"{waiting}: more cores would help before faster ones"
    return f"{waiting}; {_cpu_time(cpu)}" if cpu else waiting


@wording("client-thinks")
def client_thinks() -> str:
    """, think time included: the server is not driven to its limit"""
    return ", think time included: the server is not driven to its limit"


@wording("client-busy")
def client_busy() -> str:
    """: its threads were busy all the time"""
    return ": its threads were busy all the time"


@wording("client-waited-for")
def client_waited_for() -> str:
    """, the way to it included: the server waits to be asked"""
    return ", the way to it included: the server waits to be asked"


# Warnings.


@wording("waits-not-counted")
def waits_not_counted(trials: Strings) -> str:
    """2 trials left out, whose wait for a core was not counted: s-b1, s-b2"""
    if not strings(trials):
        return "trials left out, whose wait for a core was not counted"
    count = counted(len(strings(trials)), "trial")
    return f"{count} left out, whose wait for a core was not counted: {names(trials)}"


@wording("run-queue-unknown")
def run_queue_unknown() -> str:
    """run queue and CPU cannot be distinguished: the server's processes are out of sight"""
    return "run queue and CPU cannot be distinguished: the server's processes are out of sight"


@wording("time-in-no-part")
def time_in_no_part() -> str:
    """more than a fifth of the time is in no known part"""
    return "more than a fifth of the time is in no known part"
