"""Words for foreign records: the main figures of a record, what its program counts, and which facts its output does not
contain."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.words import counted, upper_first

PROGRAMS = {"hammerdb": "HammerDB", "go-tpc": "go-tpc", "sysbench": "sysbench", "pgbench": "pgbench"}
_GAPS = {
    "machine": "the machine",
    "engine": "the version and the settings of the database",
    "repeats": "the variation between repeats",
    "work": "the workload",
    "data": "the data size",
    "clients": "the number of clients",
    "throughput": "the throughput of the whole test",
    "duration": "the duration of the measurement",
    "warmup": "the warm-up time",
    "failures": "failed transactions",
    "response_times": "response times",
    "distribution": "the distribution of response times",
    "seconds": "how the values changed over time",
    "started": "the date",
    "checks": "whether the data were correct after the run",
}
"""Names of facts that a foreign record may not contain (`ironbench.study.foreign`)."""
_COUNTING = {
    "hammerdb": (
        "HammerDB counts New-Orders (NOPM) in its tables. It reads transactions per minute from the server's "
        "counter, which includes rolled-back transactions and transactions of other connections."
    ),
    "go-tpc": (
        "go-tpc counts New-Orders at the client. The percentiles that go-tpc reports are bounds of coarse "
        "histogram buckets."
    ),
    "sysbench": (
        "sysbench measures a transaction from its first statement to its commit; the percentiles that sysbench "
        "reports are bounds of histogram buckets about 2% wide. Errors that sysbench ignored count as failed "
        "transactions."
    ),
    "pgbench": "pgbench does not include the time to open the first connections in its throughput.",
}
_DERIVED = {
    "hammerdb": "Derived from TPC-C: not comparable with published TPC-C results.",
    "go-tpc": "Derived from TPC-C: not comparable with published TPC-C results.",
}


def no_verdict() -> str:
    """Example: `No verdict and no rank: facts that a foreign record does not contain may explain any difference. For a
    verdict, measure both sides with ironbench in one lab.`"""
    return (
        "No verdict and no rank: facts that a foreign record does not contain may explain any difference. For a "
        "verdict, measure both sides with ironbench in one lab."
    )


def missing(facts: Sequence[str]) -> str:
    """Example with facts=('machine', 'warm-up'): `The output of the other program does not contain: the machine,
    warm-up.`"""
    return f"The output of the other program does not contain: {', '.join(_GAPS.get(fact, fact) for fact in facts)}."


def counting(program: str) -> str:
    """Explains what a program counts: `pgbench does not include the time to open the first connections in its
    throughput.`"""
    return _COUNTING[program]


def derived(program: str) -> str:
    """Returns the sentence that must accompany a program's results, or an empty text if none is required: `Derived from
    TPC-C: not comparable with published TPC-C results.`"""
    return _DERIVED.get(program, "")


def failed_users(users: int) -> str:
    """Example with users=2: `2 virtual users failed, so fewer users than configured produced the result.`"""
    return f"{counted(users, 'virtual user')} failed, so fewer users than configured produced the result."


def headline(figures: Sequence[str], failed: str, clients: int | None) -> str:
    """Example with figures=['throughput 940/s', '99th-percentile response time 12 ms'], failed='0.2%', clients=8:
    `Throughput 940/s, 99th-percentile response time 12 ms, 0.2% failed with 8 clients.`"""
    text = ", ".join([*figures, *([f"{failed} failed"] if failed else [])]) or "no figures for the whole test"
    load = f" with {counted(clients, 'client')}" if clients else ""
    return f"{upper_first(text)}{load}."


def median_of_trials(figure: str, clients: int, trials: int) -> str:
    """Example with figure='throughput 940/s', clients=8, trials=3: `throughput 940/s with 8 clients, median of 3
    trials.`

    `figure`: the main metric with its value, or an empty text if the trials have no metric that foreign records also
    contain.
    """
    if not figure:
        seen = f"{counted(trials, 'trial')} with {counted(clients, 'client')}"
        return f"no metric that the foreign record also contains ({seen})."
    return f"{figure} with {counted(clients, 'client')}, median of {counted(trials, 'trial')}."


def scope(foreign: int, measured: int) -> str:
    """Example with foreign=2, measured=1: `2 foreign records and ironbench trials side by side.`

    `measured`: the number of sides that ironbench measured.
    """
    return f"{counted(foreign, 'foreign record')}{' and ironbench trials' if measured else ''} side by side."


def origin(id: str, file: str) -> str:
    """Example with id='pgbench-3fa9', file='result.txt': `Foreign record pgbench-3fa9, imported from result.txt.`"""
    return f"Foreign record {id}, imported from {file}."
