"""Words for foreign records: what their programs count, what their output lacks, and their main figures.

The package does not load this module: trials need only the words for notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.words import counted

PROGRAMS = {"hammerdb": "HammerDB", "go-tpc": "go-tpc", "sysbench": "sysbench", "pgbench": "pgbench"}
_GAPS = {
    "machine": "the machine",
    "engine": "the version and the settings of the database",
    "repeats": "how much results vary between repeats",
    "work": "the workload",
    "data": "the size of the data",
    "clients": "the number of clients",
    "duration": "the measured time",
    "warmup": "the warm-up",
    "failures": "failed transactions",
    "response_times": "response times",
    "distribution": "the distribution of response times",
    "seconds": "values over time",
    "started": "the date",
    "checks": "whether the data were correct afterwards",
}
"""Gap (`ironbench.study.foreign`) → words."""
_COUNTING = {
    "hammerdb": "HammerDB reads New-Orders (NOPM) from its tables, and transactions per minute from the server's "
    "counter, which includes rolled-back transactions and other connections.",
    "go-tpc": "go-tpc counts New-Orders at the client; its percentiles are bounds of coarse buckets.",
    "sysbench": "sysbench measures a transaction from its first statement to its commit; its percentiles are bounds of "
    "buckets of about 2%. Ignored errors count as failed.",
    "pgbench": "pgbench leaves the time for the first connections out of its throughput.",
}
_DERIVED = {
    "hammerdb": "Derived from TPC-C: not comparable with published TPC-C results.",
    "go-tpc": "Derived from TPC-C: not comparable with published TPC-C results.",
}


def no_verdict() -> str:
    """`No verdict and no rank: what a foreign record does not say may explain any difference. …`"""
    return (
        "No verdict and no rank: what a foreign record does not say may explain any difference. For a verdict, measure "
        "both sides with ironbench in one lab."
    )


def missing(facts: Sequence[str]) -> str:
    """`The output does not say: the machine, the warm-up.`"""
    return f"The output does not say: {', '.join(_GAPS.get(fact, fact) for fact in facts)}."


def counting(program: str) -> str:
    """Explains what a program counts: `pgbench leaves the time for the first connections out of its throughput.`"""
    return _COUNTING[program]


def derived(program: str) -> str:
    """Returns the sentence that must accompany a program's results; empty if none is required: `Derived from TPC-C: not
    comparable with published TPC-C results.`"""
    return _DERIVED.get(program, "")


def failed_users(users: int) -> str:
    """`2 virtual users failed: the result is of fewer users than configured.`"""
    return f"{counted(users, 'virtual user')} failed: the result is of fewer users than configured."


def headline(figures: Sequence[str], failed: str, clients: int | None) -> str:
    """`Throughput 940/s, 99th-percentile response time 12 ms, 0.2% failed with 8 clients.`"""
    text = ", ".join([*figures, *([f"{failed} failed"] if failed else [])]) or "no figures"
    load = f" with {counted(clients, 'client')}" if clients else ""
    return f"{text[:1].upper()}{text[1:]}{load}."


def median_of_trials(figure: str, clients: int, trials: int) -> str:
    """`throughput 940/s with 8 clients, median of 3 trials.` `figure`: empty if the sides have none in common."""
    words = figure or "no figures in common"
    return f"{words} with {counted(clients, 'client')}, median of {counted(trials, 'trial')}."


def scope(foreign: int) -> str:
    """`A foreign record beside trials.`"""
    return "A foreign record beside trials." if foreign == 1 else "Two foreign records."


def origin(id: str, file: str) -> str:
    """`Foreign record pgbench-3fa9, imported from result.txt.`"""
    return f"Foreign record {id}, imported from {file}."
