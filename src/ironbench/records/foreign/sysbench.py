"""Reads the output of sysbench's database tests, versions 1.0 and 1.1: report, lines per interval, histogram."""

from __future__ import annotations

import re

from ironbench.model.sample import enough
from ironbench.records.foreign.output import MOST_RESULTS, NUMBER, Output, Result, count, number, put, safe

_BEGIN = re.compile(r"sysbench (\d[\w.-]{0,20})")
_THREADS = re.compile(r"Number of threads: (\d{1,7})")
_RATE = re.compile(r"Target transaction rate: (\d{1,12})/sec")
_INTERVAL = re.compile(
    rf"\[ {NUMBER}s \] thds: \d{{1,7}} tps: {NUMBER} qps: {NUMBER} .{{0,80}}?lat \(ms,(\d{{1,3}})%\): {NUMBER} "
    rf"err/s:? {NUMBER}"
)
_BUCKET = re.compile(rf" *{NUMBER} \|[* ]* (\d{{1,15}})")
_PER_SECOND = re.compile(rf" *(transactions|queries|ignored errors): +(\d{{1,15}}) +\({NUMBER} per sec\.\)")
_ELAPSED = re.compile(rf" *(?:total time|time elapsed): +{NUMBER}s")
_LATENCY = re.compile(rf" *(min|avg|max|(\d{{1,3}})th percentile): +{NUMBER}")
_SHARES = {"50": "p50", "90": "p90", "95": "p95", "99": "p99"}


def read(output: Output) -> list[Result]:
    """Returns every complete report. Raises InputError."""
    results: list[Result] = []
    now, buckets = Result(), list[tuple[float, int]]()
    for line in output.lines():
        if found := _BEGIN.match(line):
            _end(results, now, buckets)
            now, buckets = Result(version=safe(found[1])), []
        elif found := _THREADS.match(line):
            now.clients = count(found[1])
        elif found := _RATE.match(line):
            now.facts["rate"] = f"{found[1]}/s"
        elif found := _INTERVAL.match(line):
            _interval(now, found)
        elif found := _BUCKET.fullmatch(line):
            value = number(found[1])
            if value is not None:
                buckets.append((value * 1e-3, int(found[2])))
        elif found := _PER_SECOND.match(line):
            _counted(now, found[1], found[2], found[3])
        elif found := _ELAPSED.match(line):
            now.elapsed_s = number(found[1]) or None
        elif found := _LATENCY.fullmatch(line):
            _latency(now, found)
        if len(results) == MOST_RESULTS:
            return results
    _end(results, now, buckets)
    return results


def _interval(now: Result, found: re.Match[str]) -> None:
    row: dict[str, float] = {}
    put(row, "t_s", found[1])
    put(row, "throughput", found[2])
    if share := _SHARES.get(found[4]):
        put(row, f"response_time_{share}_s", found[5])
        if f"response_time_{share}_s" in row:
            row[f"response_time_{share}_s"] *= 1e-3
    errors = number(found[6])
    if errors is not None and "t_s" in row:
        row["failed"] = round(errors * (row["t_s"] - (now.rows[-1].get("t_s", 0.0) if now.rows else 0.0)))
    now.rows.append(row)


def _counted(now: Result, what: str, total: str, per_second: str) -> None:
    if what == "transactions":
        put(now.metrics, "transactions", total)
        put(now.metrics, "throughput", per_second)
    elif what == "queries":
        put(now.metrics, "queries_per_s", per_second)
    else:
        put(now.metrics, "failed", total)


def _latency(now: Result, found: re.Match[str]) -> None:
    name = {"min": "min", "avg": "mean", "max": "max"}.get(found[1]) or _SHARES.get(found[2])
    if name is not None:
        put(now.metrics, f"response_time_{name}_s", found[3], 1e-3)
    now.complete |= found[1] == "avg" and "transactions" in now.metrics


def _end(results: list[Result], now: Result, buckets: list[tuple[float, int]]) -> None:
    """Adds a report to the results if it is complete, with percentiles from its histogram."""
    if not now.complete:
        return
    total = sum(size for _, size in buckets)
    for share, name in ((0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p999")):
        metric, below = f"response_time_{name}_s", 0
        for value, size in buckets if metric not in now.metrics and enough(share, total) else ():
            below += size
            if below >= share * total:
                now.metrics[metric] = value
                break
    failed = now.metrics.get("failed", 0.0)
    if all_of_them := now.metrics["transactions"] + failed:
        now.metrics["failed_fraction"] = failed / all_of_them
    results.append(now)
