"""Reads the output of `go-tpc tpcc run` (https://github.com/pingcap/go-tpc) of versions 1.0.0 to 1.0.12."""

from __future__ import annotations

import re

from ironbench.records.foreign.output import MOST_RESULTS, NUMBER, Output, Result, count, put

_SUMMARY = re.compile(
    rf"\[Summary\] ([A-Z][A-Z_]{{1,40}}) - Takes\(s\): {NUMBER}, Count: (\d{{1,15}}), TPM: {NUMBER}(.*)"
)
_TIME = re.compile(rf"(Sum|Avg|50th|90th|95th|99th|99\.9th|Max)\(ms\): {NUMBER}")
_SCORE = re.compile(rf"tpmC: {NUMBER}(?:, tpmTotal: {NUMBER})?(?:, efficiency: {NUMBER}%)?")
_WORKERS = re.compile(r"Finished: (\d{1,7}) OLTP workers")
_FAILED = "_ERR"
_TIMES = {
    "Avg": "response_time_mean_s",
    "50th": "response_time_p50_s",
    "90th": "response_time_p90_s",
    "95th": "response_time_p95_s",
    "99th": "response_time_p99_s",
    "99.9th": "response_time_p999_s",
    "Max": "response_time_max_s",
}


def read(output: Output) -> list[Result]:
    """Returns every result. For a version that prints no line `tpmC`, the values are taken from the lines
    `[Summary]`."""
    results: list[Result] = []
    totals = _Totals()
    for line in output.lines():
        line = line.lstrip("> ")
        if found := _WORKERS.search(line):
            totals = _end(results, totals)
            totals.workers = count(found[1])
        elif found := _SUMMARY.search(line):
            if totals.score is not None or found[1] in totals.parts:
                totals = _end(results, totals)
            totals.add(found[1], found[2], found[3], found[4], dict(_TIME.findall(found[5])))
        elif found := _SCORE.search(line):
            totals.score = found
            totals = _end(results, totals)
        if len(results) == MOST_RESULTS:
            break
    _end(results, totals)
    return results


class _Totals:
    """Totals from the lines `[Summary]` of a result."""

    def __init__(self) -> None:
        self.parts: dict[str, dict[str, float]] = {}
        self.sums: dict[str, float] = {}
        self.takes_s = 0.0
        self.workers: int | None = None
        self.score: re.Match[str] | None = None

    def add(self, name: str, takes: str, counted: str, per_min: str, times: dict[str, str]) -> None:
        part = self.parts.setdefault(name, {})
        sums: dict[str, float] = {}
        put(part, "transactions", counted)
        put(part, "transactions_per_min", per_min)
        put(sums, "s", times.get("Sum", ""), 1e-3)
        put(sums, "takes_s", takes)
        self.sums[name] = sums.get("s", 0.0)
        self.takes_s = max(self.takes_s, sums.get("takes_s", 0.0))
        for key, metric in _TIMES.items():
            put(part, metric, times.get(key, ""))
            if metric in part:
                part[metric] *= 1e-3


def _end(results: list[Result], totals: _Totals) -> _Totals:
    """Adds a result with these totals if they contain New-Order transactions. Returns empty totals for the next
    result."""
    if "NEW_ORDER" not in totals.parts:
        return _Totals()
    result = Result(clients=totals.workers, elapsed_s=totals.takes_s or None, complete=True)
    good = {name: part for name, part in totals.parts.items() if not name.endswith(_FAILED)}
    for name, part in good.items():
        failed = totals.parts.get(name + _FAILED, {}).get("transactions", 0.0)
        words = "-".join(word.capitalize() for word in name.split("_"))
        result.part(words, {**part, "failed": failed} if failed else part)
    transactions = sum(part.get("transactions", 0.0) for part in good.values())
    failed = sum(part.get("transactions", 0.0) for name, part in totals.parts.items() if name not in good)
    metrics = result.metrics
    metrics["new_orders_per_min"] = good["NEW_ORDER"].get("transactions_per_min", 0.0)
    metrics["transactions_per_min"] = sum(part.get("transactions_per_min", 0.0) for part in good.values())
    if totals.score is not None:
        put(metrics, "new_orders_per_min", totals.score[1])
        put(metrics, "transactions_per_min", totals.score[2] or "")
        result.facts |= {"efficiency": f"{totals.score[3]}%"} if totals.score[3] else {}
    metrics |= {"transactions": transactions, "failed": failed}
    if transactions:
        metrics["failed_fraction"] = failed / (transactions + failed)
        metrics["response_time_mean_s"] = sum(totals.sums[name] for name in good) / transactions
    if totals.takes_s:
        metrics["throughput"] = transactions / totals.takes_s
    result.facts["workload"] = "tpcc"
    results.append(result)
    return _Totals()
