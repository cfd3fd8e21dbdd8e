"""Words for bottlenecks, and for how transactions spend their time."""

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
    "observers": "observers",
    "emulation": "device emulation",
    "relay": "the latency relay",
    "kernel": "the kernel",
    "other": "other programs",
    "steal": "other virtual machines",
}
"""Names of the programs that use CPU time, as sentences use them."""
_RESOURCES = {
    SERVER_CPU: "the server's CPU",
    OTHER_PROGRAMS: "other programs on the machine",
    CONCURRENCY: "the number of clients",
    "data-reads": "data reads",
    "data-writes": "data writes",
    "wal": "WAL",
    "temp-files": "temporary files",
    "locks": "lock waits",
    "internal-locks": "LWLocks or latches",
    "client": "the client",
}


_PLURAL = (OTHER_PROGRAMS, "data-reads", "data-writes", "temp-files", "locks", "internal-locks")


def resource_name(resource: str) -> str:
    """Example with resource='data-reads': `data reads`."""
    return _RESOURCES.get(resource, resource)


def _cpu_time(cpu: Sequence[tuple[str, float]]) -> str:
    """Example: `CPU time was used by other programs (40%) and the server (30%)`."""
    return f"CPU time was used by {listed([f'{_HOLDERS.get(part, part)} ({percent(share)})' for part, share in cpu])}"


def _measure_again(cpu: Sequence[tuple[str, float]]) -> str:
    words = f" {_cpu_time(cpu)}." if cpu else ""
    return f".{words} Measure again while no other programs use the machine"


@wording("rival")
def rival(resource: str, share: float, computing: float | None = None, waiting: float | None = None) -> str:
    """Example with resource='data-reads', share=0.3: `data reads take 30% of transaction time`."""
    verb = "take" if resource in _PLURAL else "takes"
    apart = ""
    if computing is not None and waiting is not None:
        apart = f" ({percent(computing)} spent computing, {percent(waiting)} spent waiting for a CPU core)"
    return f"{resource_name(resource)} {verb} {percent(share)} of transaction time{apart}"


@wording("limit-unknown")
def limit_unknown(rivals: Sequence[Note], unknown: float = 0.0, cpu: Sequence[tuple[str, float]] = ()) -> str:
    """Example with rivals=[note('rival', resource='data-reads', share=0.3), note('rival', resource='wal', share=0.28)]:
    `the bottleneck analysis is inconclusive: data reads take 30% of transaction time and WAL takes 28% of transaction
    time`."""
    known = f"; {percent(unknown)} of transaction time belongs to no known wait class" if unknown else ""
    again = _measure_again(cpu) if cpu else ""
    return f"the bottleneck analysis is inconclusive: {' and '.join(map(text, rivals))}{known}{again}"


@wording("limit-unknown-own-cpu")
def limit_unknown_own_cpu(share: float) -> str:
    """Example with share=0.6: `the bottleneck analysis is inconclusive: the server's CPU takes 60% of transaction time,
    but the load client and ironbench's observers used much of the CPU time; pin client and server to separate cores
    (`client_cpus`, `server_cpus`)`."""
    return (
        f"the bottleneck analysis is inconclusive: the server's CPU takes {percent(share)} of transaction time, "
        "but the load client and ironbench's observers used much of the CPU time; pin client and server to "
        "separate cores (`client_cpus`, `server_cpus`)"
    )


@wording("limit-other-programs")
def limit_other_programs(waiting: float, computing: float, cpu: Sequence[tuple[str, float]]) -> str:
    """Example with waiting=0.6, computing=0.2, cpu=[('other', 0.5), ('server', 0.3)]: `the bottleneck is other programs
    on the machine: transactions spent 60% of their time waiting for a CPU core and 20% computing. CPU time was used by
    other programs (50%) and the server (30%). Measure again while no other programs use the machine`."""
    spent = (
        f"transactions spent {percent(waiting)} of their time waiting for a CPU core and {percent(computing)} computing"
    )
    return f"the bottleneck is {resource_name(OTHER_PROGRAMS)}: {spent}{_measure_again(cpu)}"


@wording("limit-clients")
def limit_clients(computing: float, idle: float, clients: int) -> str:
    """Example with computing=0.6, idle=0.3, clients=2: `the bottleneck is the number of clients: 60% of transaction
    time is spent computing, with hardly any CPU scheduling wait, and 30% of CPU time was idle. 2 clients cannot use all
    cores, so add clients`."""
    return (
        f"the bottleneck is {resource_name(CONCURRENCY)}: {percent(computing)} of transaction time is spent computing, "
        f"with hardly any CPU scheduling wait, and {percent(idle)} of CPU time was idle. "
        f"{counted(clients, 'client')} cannot use all cores, so add clients"
    )


@wording("limit-none")
def limit_none(resource: str, share: float, evidence: Sequence[Note] = ()) -> str:
    """Example with resource='wal', share=0.6: `no bottleneck: the target rate was sustained. The largest part of the
    service time is WAL, which takes 60% of transaction time`."""
    largest = f"The largest part of the service time is {_time_taken(resource, share, evidence)}"
    return f"no bottleneck: the target rate was sustained. {largest}"


@wording("limit")
def limit(resource: str, share: float, evidence: Sequence[Note] = ()) -> str:
    """Example with resource='server-cpu', share=0.7, evidence=[note('cpu-waiting', share=0.6, more_cores=True)]: `the
    bottleneck is the server's CPU, which takes 70% of transaction time; 60% of transaction time is spent waiting for a
    CPU core, so more cores would help more than faster cores`."""
    return f"the bottleneck is {_time_taken(resource, share, evidence)}"


def _time_taken(resource: str, share: float, evidence: Sequence[Note]) -> str:
    verb = "take" if resource in _PLURAL else "takes"
    taken = f"{resource_name(resource)}, which {verb} {percent(share)} of transaction time"
    return "".join((taken, *map(text, evidence)))


# Evidence for a bottleneck. Each text continues a sentence after "which takes 60% of transaction time".


@wording("locks-of-table")
def locks_of_table(table: str) -> str:
    """Example with table='branches': `, mostly for locks on the table branches or on its rows`."""
    return f", mostly for locks on the table {table} or on its rows"


@wording("locks-root")
def locks_root(event: str, does: str, share: float) -> str:
    """Example with event='', does='waits for its client', share=0.4: `; in 40% of samples, the session at the root of
    the lock chain waits for its client`."""
    return f"; in {percent(share)} of samples, the session at the root of the lock chain {does or f'waits for {event}'}"


@wording("cpu-or-run-queue")
def cpu_or_run_queue() -> str:
    """Example: `, for computing or for waiting for a CPU core (not measured separately)`."""
    return ", for computing or for waiting for a CPU core (not measured separately)"


@wording("cpu-computing")
def cpu_computing(share: float) -> str:
    """Example with share=0.6: `; 60% of transaction time is spent computing, so faster cores or less work per
    transaction would help`."""
    computing = f"; {percent(share)} of transaction time is spent computing"
    return f"{computing}, so faster cores or less work per transaction would help"


@wording("cpu-waiting")
def cpu_waiting(share: float, more_cores: bool, cpu: Sequence[tuple[str, float]] = ()) -> str:
    """Example with share=0.6, more_cores=True: `; 60% of transaction time is spent waiting for a CPU core, so more
    cores would help more than faster cores`."""
    waiting = f"; {percent(share)} of transaction time is spent waiting for a CPU core"
    if more_cores:
        return f"{waiting}, so more cores would help more than faster cores"
    return f"{waiting}. {_cpu_time(cpu)}" if cpu else waiting


@wording("client-thinks")
def client_thinks() -> str:
    """Example: `, including think time; the server is not fully loaded`."""
    return ", including think time; the server is not fully loaded"


@wording("client-busy")
def client_busy() -> str:
    """Example: `; the client's threads were busy all the time`."""
    return "; the client's threads were busy all the time"


@wording("client-waited-for")
def client_waited_for() -> str:
    """Example: `, including the network; the server waits for the client's requests`."""
    return ", including the network; the server waits for the client's requests"


# Warnings.


@wording("waits-not-counted")
def waits_not_counted(trials: Strings) -> str:
    """Example with trials=('s-b1', 's-b2'): `the bottleneck analysis excludes 2 trials in which CPU scheduling wait was
    not measured: s-b1, s-b2`."""
    if not strings(trials):
        return "the bottleneck analysis excludes trials in which CPU scheduling wait was not measured"
    return (
        f"the bottleneck analysis excludes {counted(len(strings(trials)), 'trial')} in which CPU scheduling wait was "
        f"not measured: {names(trials)}"
    )


@wording("run-queue-unknown")
def run_queue_unknown() -> str:
    """Example: `CPU scheduling wait cannot be separated from CPU time, because ironbench cannot see the server's
    processes`."""
    return "CPU scheduling wait cannot be separated from CPU time, because ironbench cannot see the server's processes"


@wording("time-in-no-part")
def time_in_no_part() -> str:
    """Example: `more than 20% of transaction time belongs to no known wait class`."""
    return "more than 20% of transaction time belongs to no known wait class"


@wording("limit-functions")
def limit_functions(resource: str, functions: Sequence[tuple[str, float]]) -> str:
    """Example with resource='wal', functions=[('XLogFlush', 0.41), ('XLogInsertRecord', 0.12)]: `according to the
    profile, the functions with most of this time are XLogFlush (41% of transaction time) and XLogInsertRecord
    (12%)`."""
    (first, share), *more = functions
    others = [f"{name} ({percent(part)})" for name, part in more]
    names = listed([f"{first} ({percent(share)} of transaction time)", *others])
    verb = "function" if not more else "functions"
    return f"according to the profile, the {verb} with most of this time {'is' if not more else 'are'} {names}"
