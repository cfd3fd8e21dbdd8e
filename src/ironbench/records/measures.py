"""Makes metrics, by their catalogue names, of the core's summary and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ironbench.catalogue import PER_UNIT, base_name
from ironbench.model import sample
from ironbench.model.driven import Driven, scheduled
from ironbench.model.record import ANSWERS, PERCENTILES, Statement
from ironbench.model.redact import redacted_sql
from ironbench.words import cut
from ironbench.workloads.base import SCRIPT_FIGURES

if TYPE_CHECKING:
    from ironbench._core import Histogram

_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MOST_SCRIPTS = 12
"""As many scripts have figures of their own in a record (at most 8 KB): those that ran most."""
_PLAIN = (
    "failed",
    "retries",
    "not_started",
    "unfinished",
    "unfinished_s",
    "longest_wait_s",
    "carried_s",
    "client_cpu_per_transaction_s",
    "observer_cpu_s",
)
_IF_ANY = ("censored", "cut_off", "cut_off_s", "receive_rearms", "connections_lost", "clients_lost")
"""Counts that only a record has where they are not zero."""
_OWN_DELAY = ("loop_delay", "replies_per_wait")
"""Histograms of the drive loop itself: `_own_delay` makes their metrics."""
_LAG = "_lag"
"""Ends the names of histograms of which the workload itself says what is kept."""
_LATENESS = ("lateness_mean_s", "lateness_p99_s", "lateness_max_s")


def metrics(driven: Driven, of_scripts: Sequence[str] = SCRIPT_FIGURES) -> dict[str, float]:
    """Throughput, response and service time, some of it per script (`of_scripts`), errors, client CPU, lateness."""
    summary = driven.summary
    if not summary:
        return {}
    elapsed_s = summary["elapsed_s"]
    if elapsed_s <= 0:
        # The trial ended before its window: counters that never ran are not zero, they are unknown.
        return dict(driven.metrics)
    values = {
        "transactions": float(summary["transactions"]),
        "throughput": summary["transactions"] / elapsed_s,
        "failed_fraction": _share(summary["failed"], summary["transactions"] + summary["failed"]),
        "errors": float(sum(summary["errors"].values())),
    }
    if (moved := scheduled(summary)) != summary["transactions"]:
        values["scheduled_throughput"] = moved / elapsed_s
    values |= {name: float(summary[name]) for name in _PLAIN if summary.get(name) is not None}
    values |= {name: float(summary[name]) for name in _IF_ANY if summary.get(name)}
    if summary.get("due") is not None:
        values["due"] = float(summary["due"])
    values |= _own_delay(driven)
    if summary.get("lateness_max_s"):  # 0 where the loop has no schedule: a closed one without think time
        values |= {name: float(summary[name]) for name in _LATENESS}
    if summary.get("reconnects"):
        values["reconnects"] = float(summary["reconnects"])
        values["reconnect_mean_s"] = summary["reconnects_s"] / summary["reconnects"]
    if summary.get("aborted") and not summary["failed"]:
        # What ended the trial also ended transactions, and these are in no count of failures.
        for name in ("failed", "failed_fraction", "errors"):
            del values[name]
    for name, histogram in driven.histograms.items():
        if "{" not in name and not name.endswith(_LAG) and name not in _OWN_DELAY:
            values |= _latency(name, histogram)
    if len(summary.get("scripts", [])) > 1:
        for script in _busiest(summary["scripts"]):
            found = _script(script, elapsed_s, driven.histograms)
            values |= {name: value for name, value in found.items() if base_name(name) in of_scripts}
    return values | dict(driven.metrics)


def _own_delay(driven: Driven) -> dict[str, float]:
    """How long the drive loop worked between two waits for the engine, and on how many replies; empty where threads
    block."""
    delay, replies = (driven.histograms.get(name) for name in _OWN_DELAY)
    if delay is None or replies is None or not delay.count:
        return {}
    values = {
        "loop_delay_p99_s": delay.quantiles([0.99])[0],
        "loop_delay_max_s": delay.max_s,
        "replies_per_wait_mean": replies.mean_s * 1e9,
        "replies_per_wait_max": replies.max_s * 1e9,
    }
    if (share := own_delay_share(driven)) is not None:
        values["loop_delay_share"] = share
    return values


def own_delay_share(driven: Driven) -> float | None:
    """Share of the service time in which a reply had arrived and waited for the loop, which worked on others. On
    average a reply waits for half of the time that its batch takes."""
    served = driven.histograms.get("service_time")
    if served is None or not served.count or "loop_wait_s" not in driven.summary:
        return None
    return float(driven.summary["loop_wait_s"]) / (served.count * served.mean_s)


MOST_STATEMENTS = 12
"""As many statements are in a record, those that took most time together; a file of its evidence has all."""
_MOST_TEXT = 48


def timed(driven: Driven) -> list[dict[str, Any]]:
    """The core's rows of SQL commands, each with those percentiles that it has answers enough for."""
    rows = []
    for row in driven.summary.get("statements", []):
        answers = driven.histograms.get(ANSWERS.format(row["script"], row["command"]))
        rows.append({**row, **(sample.quantiles(answers, PERCENTILES) if answers is not None else {})})
    return rows


def statements(driven: Driven) -> tuple[Statement, ...]:
    """Times of SQL commands in the order written; empty without `--report-per-statement`."""
    rows = timed(driven)
    longest = sorted(rows, key=lambda row: -row["count"] * row["mean_s"])[:MOST_STATEMENTS]
    return tuple(
        Statement(
            row["script"],
            row["line"],
            row["command"],
            cut(redacted_sql(row["text"]), _MOST_TEXT),
            row["count"],
            row["failed"],
            float(f"{row['mean_s']:.4g}"),
            float(f"{row['stdev_s']:.4g}"),
            **{name: _short(row[name]) for name in PERCENTILES if name in row},
        )
        for row in rows
        if row in longest
    )


def concise(metrics: Mapping[str, float]) -> dict[str, float]:
    """The same with seven digits where there is a fraction: no two trials agree in as many, and a record stays small.

    What is not a number was not measured, and is left out.
    """
    finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
    return {name: value if value.is_integer() else float(f"{value:.7g}") for name, value in finite.items()}


def of_no_unit(metrics: Mapping[str, float]) -> dict[str, float]:
    """Without those per unit."""
    return {name: value for name, value in metrics.items() if PER_UNIT not in name}


def _busiest(scripts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(scripts, key=lambda script: -script["transactions"])[:MOST_SCRIPTS]


def _script(script: Mapping[str, Any], elapsed_s: float, histograms: Mapping[str, Histogram]) -> dict[str, float]:
    """The main figures only, to keep records small; the histograms hold the rest."""
    tag = f"{{script={script['name']}}}"
    values = {f"throughput{tag}": float(f"{script['transactions'] / elapsed_s:.6g}")}
    if script["failed"]:
        values[f"failed{tag}"] = float(script["failed"])
    histogram = histograms.get(f"response_time{tag}")
    if histogram is not None and histogram.count:
        p50, p90, p99 = histogram.quantiles([0.50, 0.90, 0.99])
        values |= {
            f"response_time_mean_s{tag}": float(f"{histogram.mean_s:.4g}"),
            f"response_time_p50_s{tag}": _short(p50),
            f"response_time_p90_s{tag}": _short(p90),
            f"response_time_p99_s{tag}": _short(p99),
        }
    return values


def _short(value_s: float) -> float:
    """Percentiles of a histogram have three digits."""
    return float(f"{value_s:.3g}")


def _latency(name: str, histogram: Histogram) -> dict[str, float]:
    if histogram.count == 0:
        return {}
    # Those of transactions are kept whatever their number: trials are pooled, and tables know how many there were.
    pooled = sample.percentile(f"{name}_p50_s") is not None
    values = sample.quantiles(histogram, _QUANTILES, least=1 if pooled else None)
    values |= {"mean": histogram.mean_s, "max": histogram.max_s, "stdev": histogram.stdev_s}
    return {f"{name}_{statistic}_s": value for statistic, value in values.items()}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
