"""Reads pgbench's report with its progress lines; its logs are read by `pgbench_log`.

Supports pgbench 9.6 to 18 (https://www.postgresql.org/docs/current/pgbench.html).
"""

from __future__ import annotations

import re

from ironbench.records.foreign import pgbench_log
from ironbench.records.foreign.output import MOST_RESULTS, NUMBER, Output, Result, count, number, put, safe

_BEGIN = re.compile(r"pgbench \((\d[\w.]{0,20})")
_TYPE = re.compile(r"transaction type: (.*)")
_FACTS = {
    "scale": re.compile(r"scaling factor: (\d{1,12})"),
    "protocol": re.compile(r"query mode: (\w{1,20})"),
    "threads": re.compile(r"number of threads: (\d{1,7})"),
    "max_tries": re.compile(r"maximum number of tries: (\d{1,12})"),
}
_CLIENTS = re.compile(r"number of clients: (\d{1,7})")
_DURATION = re.compile(r"duration: (\d{1,12}) s")
_DONE = re.compile(r"number of transactions actually processed: (\d{1,15})")
_FAILED = re.compile(r"number of failed transactions: (\d{1,15})")
_RETRIES = re.compile(r"total number of retries: (\d{1,15})")
_LATENCY = re.compile(rf"latency (average|stddev) = {NUMBER} ms")
_TPS = re.compile(rf"tps = {NUMBER} \((without|including|excluding)")
_PROGRESS = re.compile(
    rf"progress: {NUMBER} s, {NUMBER} tps, lat (?:{NUMBER}|NaN) ms stddev (?:{NUMBER}|NaN)(?:, (\d{{1,15}}) failed)?"
)
_SCRIPT = re.compile(r"SQL script \d{1,4}: (.*)")
_OF_SCRIPT = re.compile(rf" - (?:(\d{{1,15}}) transactions \(.{{0,40}}tps = {NUMBER}\)|latency average = {NUMBER} ms)")


def read(output: Output) -> list[Result]:
    """Returns every complete result. Raises InputError."""
    first = output.head.decode("utf-8", errors="replace").partition("\n")[0].rstrip("\r")
    if pgbench_log.AGGREGATED.fullmatch(first):
        return pgbench_log.aggregated(output)
    return pgbench_log.logged(output) if pgbench_log.LOGGED.fullmatch(first) else _reports(output)


def _reports(output: Output) -> list[Result]:
    results: list[Result] = []
    now, script = Result(), ""
    of_script: dict[str, float] = {}
    for line in output.lines():
        if found := _BEGIN.match(line) or (_TYPE.match(line) if "throughput" in now.metrics else None):
            now.part(script, of_script)
            _end(results, now)
            now, script, of_script = Result(), "", {}
            if found.re is _BEGIN:
                now.version = safe(found[1])
        if found := _TYPE.match(line):
            now.facts["workload"] = safe(found[1])
        elif found := _CLIENTS.match(line):
            now.clients = count(found[1])
        elif found := _DURATION.match(line):
            now.elapsed_s = number(found[1]) or None
        elif found := _DONE.match(line):
            put(now.metrics, "transactions", found[1])
        elif found := _FAILED.match(line):
            put(now.metrics, "failed", found[1])
        elif found := _RETRIES.match(line):
            put(now.metrics, "retries", found[1])
        elif found := _LATENCY.match(line):
            metric = "response_time_mean_s" if found[1] == "average" else "response_time_stddev_s"
            put(now.metrics, metric, found[2], 1e-3)
        elif found := _TPS.match(line):
            put(now.metrics, "throughput", found[1])
            now.complete = "transactions" in now.metrics and "throughput" in now.metrics
        elif found := _PROGRESS.match(line):
            _progress(now, found)
        elif found := _SCRIPT.match(line):
            now.part(script, of_script)
            script, of_script = safe(found[1]), {}
        elif script and (found := _OF_SCRIPT.match(line)):
            put(of_script, "transactions", found[1] or "")
            put(of_script, "throughput", found[2] or "")
            put(of_script, "response_time_mean_s", found[3] or "", 1e-3)
        else:
            for name, pattern in _FACTS.items():
                if found := pattern.match(line):
                    now.facts[name] = found[1]
        if len(results) == MOST_RESULTS:
            return results
    now.part(script, of_script)
    _end(results, now)
    return results


def _progress(now: Result, found: re.Match[str]) -> None:
    row: dict[str, float] = {}
    put(row, "t_s", found[1])
    put(row, "throughput", found[2])
    put(row, "response_time_mean_s", found[3] or "", 1e-3)
    put(row, "failed", found[5] or "")
    now.rows.append(row)


def _end(results: list[Result], now: Result) -> None:
    """Adds a report to the results if it is complete."""
    if not now.complete:
        return
    done, failed, per_second = now.metrics["transactions"], now.metrics.get("failed"), now.metrics["throughput"]
    if failed is not None and done + failed:
        now.metrics["failed_fraction"] = failed / (done + failed)
    if now.elapsed_s is None and per_second:  # the run was limited by transactions (-t)
        now.elapsed_s = done / per_second or None
    if now.rows and now.rows[0].get("t_s", 0.0) > 1e9:  # `--progress-timestamp`
        begin = now.rows[0]["t_s"]
        for row in now.rows:
            row["t_s"] = row.get("t_s", begin) - begin
    results.append(now)
