"""The `igen-ram` workload: an in-memory lottery, and measurements of bandwidth and latency that explain its results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ironbench.errors import InputError, written
from ironbench.fields.sections import MEMORY
from ironbench.model.note import Note, note
from ironbench.model.system import Choice, Load, System
from ironbench.model.work import Outcome, Work
from ironbench.words import in_percent
from ironbench.workloads import free_memory, kernels
from ironbench.workloads.base import Option, Workload

_PROBE_S = 0.5
_PROBED_BYTES = 256 << 20
"""Minimum memory in bytes with which measurements exceed the CPU caches. This is several times the last-level cache of
common processors. The measurements use up to 256 MiB (latency) and 384 MiB (bandwidth)."""


class IgenRam(Workload):
    name = "igen-ram"
    doc = (
        "Uses only memory: each thread fills memory with a sorted array of lottery tickets, looks up "
        "random numbers in the array, and frees the memory. Each client is a thread, and a "
        "transaction (a lottery) consists of these three steps."
    )
    needs = ("bare machine",)
    counts = ("lottery", "lotteries")
    drives = True
    honours = kernels.HONOURS
    usual_warmup_s = 0.0
    options = (
        Option("memory", "1GiB", "memory per thread for the array of tickets"),
        Option("draws", "1000000", "number of lookups per lottery", lowest=1, highest=1e12),
        Option(
            "huge",
            "default",
            "use of huge pages; yes: request huge pages; no: do not use huge pages; default: the "
            "setting of the machine",
            ("default", "yes", "no"),
        ),
        Option(
            "probes",
            "yes",
            "yes: also measure memory bandwidth and latency before each trial",
            ("yes", "no"),
            incidental=True,
        ),
        kernels.PIN,
    )

    def validated(self, options: Mapping[str, str]) -> dict[str, str]:
        valid = super().validated(options)
        subject = written("workload.with", f"memory={valid['memory']}")
        if MEMORY.read(subject, valid["memory"]) < 1 << 20:
            raise InputError(subject, "is too little memory for the tickets of a lottery", "use 1MiB or more")
        return valid

    def accepts(self, system: System, load: Load, choice: Choice) -> None:
        super().accepts(system, load, choice)
        _require(load.clients, choice.options["memory"])

    def drive(self, work: Work) -> Outcome:
        options, draws = work.choice.options, int(work.choice.options["draws"])
        size = _require(work.load.clients, options["memory"])
        probe_s = _PROBE_S if options["probes"] == "yes" else 0.0
        kernel = {"kind": "lottery", "bytes": size, "huge": options["huge"], "draws": draws, "probe_s": probe_s}
        result = kernels.run_kernel(work, kernel)
        parts = {f"response_time{{phase={name}}}": times for name, times in result.histograms.items() if name}
        return Outcome(
            transactions=result.units,
            histograms={"response_time": result.histograms[""], **parts},
            metrics={
                "throughput": result.rate,
                "draws_per_s": result.rate * draws,
                **_phases(parts, work.load.clients, draws, size),
                **(_probed(result.reports) if probe_s else {}),
            },
            checks=(kernels.right("number of winning tickets, compared with a formula", result.reports, result.units),),
            facts={**result.facts, **_placed(result.reports, size)},
            warnings=(*result.warnings, *(_within_caches(size) if probe_s else ())),
            inside=True,
        )


def _require(threads: int, memory: str) -> int:
    """Returns the bytes for each thread. Raises InputError if they exceed the free memory."""
    size = int(MEMORY.read(written("workload.with", "memory"), memory))
    free_memory.require(written("workload.with", f"memory={memory}"), threads, size)
    return size


def _within_caches(size: int) -> tuple[Note, ...]:
    """Returns a warning if the measurements did not exceed the CPU caches. The measurements use only as much memory as
    one thread has, which may be too little."""
    if size >= _PROBED_BYTES:
        return ()
    return (note("probes-within-caches", probed_bytes=size, needed_bytes=_PROBED_BYTES),)


def _phases(parts: Mapping[str, Any], threads: int, draws: int, size: int) -> dict[str, float]:
    """Returns the metrics of each phase, for all threads together."""
    search, allocate = (parts.get(f"response_time{{phase={name}}}") for name in ("search", "allocate"))
    if search is None or allocate is None:
        return {}
    return {
        "draws_per_s{phase=search}": threads * draws / search.mean_s,
        "memory_fill_bytes_per_s": threads * size / allocate.mean_s,
        "response_time_mean_s{phase=search}": search.mean_s,
        "response_time_mean_s{phase=allocate}": allocate.mean_s,
    }


def _probed(reports: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Combines the results of the threads, which measure at the same time: bandwidths are added, latencies are
    averaged."""
    return {
        "memory_copy_bytes_per_s": sum(one["copy"] for one in reports),
        "memory_triad_bytes_per_s": sum(one["triad"] for one in reports),
        "memory_latency_s": statistics.fmean(one["latency_s"] for one in reports),
    }


def _placed(reports: Sequence[Mapping[str, Any]], size: int) -> dict[str, str]:
    """Returns facts about the memory that the kernel provided, which may differ from the requested memory."""
    known = [one["huge_bytes"] for one in reports if one["huge_bytes"] is not None]
    share = f"{in_percent(sum(known) / (len(known) * size))} of the memory" if known else "not visible here"
    nodes = [one["nodes"] for one in reports if one["nodes"]]
    placed = "; ".join(dict.fromkeys(_nodes(text) for text in nodes)) if nodes else "not visible here"
    return {"huge pages": share, "NUMA nodes": placed}


def _nodes(text: str) -> str:
    """Formats the number of pages on each NUMA node, such as `N0=262144`. The result for a single node is `node 0`.
    Several nodes are followed by their percentages."""
    pages = {name[1:]: int(count) for name, _, count in (word.partition("=") for word in text.split())}
    if len(pages) == 1:
        return f"node {next(iter(pages))}"
    whole = sum(pages.values())
    return ", ".join(f"node {node} {in_percent(count / whole)}" for node, count in pages.items())


WORKLOAD = IgenRam()
