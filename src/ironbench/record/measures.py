"""From the core's summary and histograms to metrics by their catalogue names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ironbench.model.driven import Driven

if TYPE_CHECKING:
    from ironbench._core import Histogram

_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_PLAIN = (
    "failed",
    "retries",
    "not_started",
    "unfinished",
    "client_cpu_per_transaction_s",
    "lateness_mean_s",
    "lateness_p99_s",
    "lateness_max_s",
    "observer_cpu_s",
)


def metrics(driven: Driven) -> dict[str, float]:
    """Throughput, response and service time as a whole and per script, errors, client CPU, lateness."""
    summary = driven.summary
    if not summary:
        return {}
    elapsed_s = summary["elapsed_s"]
    found = {"transactions": float(summary["transactions"])}
    if elapsed_s > 0:
        found["throughput"] = summary["transactions"] / elapsed_s
        found["failed_fraction"] = _share(summary["failed"], summary["transactions"] + summary["failed"])
    found |= {name: float(summary[name]) for name in _PLAIN if summary.get(name) is not None}
    found["errors"] = float(sum(summary["errors"].values()))
    for tagged, histogram in driven.histograms.items():
        found |= _latency(tagged, histogram)
    scripts = summary.get("scripts", [])
    if len(scripts) > 1 and elapsed_s > 0:
        for script in scripts:
            found[f"throughput{{script={script['name']}}}"] = script["transactions"] / elapsed_s
    return found


def _latency(tagged: str, histogram: Histogram) -> dict[str, float]:
    if histogram.count == 0:
        return {}
    name, brace, tag = tagged.partition("{")
    suffix = brace + tag
    if suffix:  # a record stays small: per script the figures most asked for; the histograms hold the rest
        values = dict(zip(("p50", "p99"), histogram.quantiles([0.50, 0.99]), strict=True))
        return {f"{name}_mean_s{suffix}": histogram.mean_s} | {f"{name}_{q}_s{suffix}": v for q, v in values.items()}
    values = dict(zip(_QUANTILES, histogram.quantiles(list(_QUANTILES.values())), strict=True))
    values |= {"mean": histogram.mean_s, "max": histogram.max_s, "stdev": histogram.stdev_s}
    return {f"{name}_{statistic}_s": value for statistic, value in values.items()}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def summary_cpu_s(summary: Mapping[str, Any]) -> float:
    """CPU seconds of the driving threads inside the measured window."""
    cpu = summary.get("client_cpu_s") or {}
    return float(cpu.get("user", 0.0)) + float(cpu.get("system", 0.0))
