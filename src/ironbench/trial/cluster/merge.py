"""Merges the results of all workers into the result of the trial, with the results of each worker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench.model.driven import Driven, client_cpu_s, driving_cpu_s
from ironbench.model.system import Load
from ironbench.model.trial_notes import TrialNotes
from ironbench.model.workers import WorkerPart
from ironbench.trial.observe.cpu import parse_stat
from ironbench.units import span
from ironbench.words import counted

Second = tuple[float, int, int, float, float, int]
"""One second of a trial. The values are: its length in seconds, because the last one may be shorter; the number of
transactions; the number of failed transactions; the mean and the standard deviation of the response time; and the
number of committed transactions of the first script."""


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """Everything that one worker returned."""

    number: int
    hello: Mapping[str, Any]
    """Description of the worker and its machine, which the worker sends when it starts (`Worker.hello`)."""
    clock: Mapping[str, Any]
    stat: Mapping[str, str]
    """/proc/stat of the worker's machine at both ends of the window."""
    data: bytes
    """Result of the worker's drive loop, as the core encodes it."""


def driven(results: Sequence[WorkerResult], load: Load, seen: Mapping[str, Any], began_ns: int, lost: str) -> Driven:
    """Merges the results of all workers that returned a result. `seen`: samples of observers on this machine. `lost`:
    why the other workers returned no result."""
    from ironbench import _core

    whole = _core.DriveResult.merged([result.data for result in results])
    singles = [(result, _core.DriveResult.from_bytes(result.data)) for result in results]
    summaries = [(result, msgspec.json.decode(one.summary, type=dict[str, Any]), one) for result, one in singles]
    starts = [_start_s(result, summary) for result, summary, _ in summaries]
    workers = tuple(
        _worker(result, summary, one.histograms.get("response_time"), start_s - min(starts))
        for (result, summary, one), start_s in zip(summaries, starts, strict=True)
    )
    summary = {
        **msgspec.json.decode(whole.summary, type=dict[str, Any]),
        **{name: value for name, value in seen.items() if name != "samples"},
        "client_cpu_here_s": sum(client_cpu_s(one) for result, one, _ in summaries if result.hello["here"]),
    }
    if began_ns:
        summary["started_unix_s"] = began_ns / 1e9 + load.warmup_s
    if lost:
        summary |= {"aborted": True, "cause": lost}
    return Driven(
        summary=summary,
        timeline=whole.timeline,
        seconds=whole.seconds,
        histograms=whole.histograms,
        samples=seen["samples"],
        metrics=metrics(workers),
        workers=workers,
        fingerprints={result.number: result.hello["machine"] for result in results},
        prepared=TrialNotes({"workers": in_words(workers, load)}),
    )


def metrics(workers: Sequence[WorkerPart]) -> dict[str, float]:
    return {
        "workers": float(len(workers)),
        "start_spread_s": max(one.start_s for one in workers),
        "worker_clock_error_s": max(one.clock_error_s for one in workers),
    }


def in_words(workers: Sequence[WorkerPart], load: Load) -> str:
    hosts = list(dict.fromkeys(one.host for one in workers))
    named = ", ".join(hosts[:4]) + (", …" if len(hosts) > 4 else "")
    spread = span(max(one.start_s for one in workers))
    place = f"on the Ray cluster {load.cluster}" if load.cluster else "on one machine"
    many = counted(load.workers, "worker")
    if len(workers) < load.workers:
        many = f"{len(workers)} of {many}"
    return f"{many} {place} ({named}), started within {spread}"


def second(each: Sequence[Second]) -> Second:
    """Merges the same second of all workers. Returns the second for all workers together. The variance of all response
    times is the mean of the variances within the workers, plus the variance of the workers' means."""
    done = sum(one[1] for one in each)
    some = [one for one in each if one[1]]
    mean = sum(one[1] * one[3] for one in some) / done if done else math.nan
    squares = sum(one[1] * (one[4] ** 2 + (one[3] - mean) ** 2) for one in some)
    stdev = math.sqrt(squares / done) if done else math.nan
    failed, committed = sum(one[2] for one in each), sum(one[5] for one in each)
    return max(one[0] for one in each), done, failed, mean, stdev, committed


def _worker(result: WorkerResult, summary: Mapping[str, Any], response: Any, start_s: float) -> WorkerPart:
    elapsed_s = float(summary["elapsed_s"])
    available_s = elapsed_s * summary["threads"]
    p50, p99 = response.quantiles([0.50, 0.99]) if response is not None and response.count else (None, None)
    return WorkerPart(
        number=result.number + 1,
        host=result.hello["host"],
        clients=summary["clients"],
        transactions=summary["transactions"],
        failed=summary["failed"],
        elapsed_s=elapsed_s,
        threads_cpu_share=driving_cpu_s(summary) / available_s if available_s else 0.0,
        machine_cpu_share=_used(result.stat),
        response_time_p50_s=p50,
        response_time_p99_s=p99,
        start_s=start_s,
        clock_error_s=0.0 if result.clock["same"] else result.clock["error_ns"] / 1e9,
        clock_offset_s=0.0 if result.clock["same"] else result.clock["offset_ns"] / 1e9,
        here=result.hello["here"],
    )


def _start_s(result: WorkerResult, summary: Mapping[str, Any]) -> float:
    """Returns the start of a worker's window by this machine's clock. If the worker uses the same clock, because it
    runs on the same kernel, the start is exact."""
    offset_ns = 0 if result.clock["same"] else result.clock["offset_ns"]
    return float(summary["started_unix_s"]) - offset_ns / 1e9


def _used(stat: Mapping[str, str]) -> float | None:
    if not {"began", "ended"} <= stat.keys():
        return None
    before, after = (_ticks(parse_stat(stat[when])) for when in ("began", "ended"))
    total = after[0] - before[0]
    return 1.0 - (after[1] - before[1]) / total if total > 0 else None


def _ticks(values: Mapping[str, float]) -> tuple[float, float]:
    """Returns total and idle ticks of all CPUs together."""
    whole = {name: ticks for name, ticks in values.items() if name.startswith("cpu.")}
    return sum(whole.values()), whole.get("cpu.idle", 0.0) + whole.get("cpu.iowait", 0.0)
