"""Computes metrics, by their catalogue names, from the core's summary and histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ironbench.catalogue import PER_UNIT, base_name
from ironbench.model import sample
from ironbench.model.driven import Driven, scheduled
from ironbench.model.profile import CPU, SampledProfile
from ironbench.model.record import ANSWERS, PERCENTILES, Statement
from ironbench.model.redact import redacted_sql
from ironbench.words import cut
from ironbench.workloads.base import SCRIPT_FIGURES

if TYPE_CHECKING:
    from ironbench._core import Histogram

_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p999": 0.999}
MOST_SCRIPTS = 12
"""Maximum number of scripts that have metrics in a record. These are the scripts that ran most often. The metrics of
these scripts take at most 8 KB."""
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
"""Names of counts that are in a record only if they are not zero."""
_PER_CLIENT = ("transactions_mean", "transactions_stdev", "busy_mean_s", "busy_stdev_s")
"""Names of the values in `per_client` of the core's summary. Their metrics have the prefix `client_`."""
_OWN_DELAY = ("loop_delay", "replies_per_wait")
"""Histograms of the drive loop's own work, whose metrics are computed by `_own_delay`."""
_LAG = "_lag"
"""Suffix in the names of those histograms whose metrics are computed by the workload."""
_LATENESS = ("lateness_mean_s", "lateness_p99_s", "lateness_max_s")


def metrics(driven: Driven, of_scripts: Sequence[str] = SCRIPT_FIGURES) -> dict[str, float]:
    """Returns the metrics of throughput, response and service times, errors, client CPU time and lateness.
    `of_scripts`: names of metrics that are also computed for each script."""
    summary = driven.summary
    if not summary:
        return {}
    elapsed_s = summary["elapsed_s"]
    if elapsed_s <= 0:
        # The trial ended before its window began. The core's counters are then unknown and not zero, so they are left
        # out.
        return dict(driven.metrics)
    ended = summary["transactions"] + summary["failed"]
    values = {
        "transactions": float(summary["transactions"]),
        "throughput": summary["transactions"] / elapsed_s,
        "failed_fraction": summary["failed"] / ended if ended else 0.0,
        "errors": float(sum(summary["errors"].values())),
    }
    if (moved := scheduled(summary)) != summary["transactions"]:
        values["scheduled_throughput"] = moved / elapsed_s
    values |= {name: float(summary[name]) for name in _PLAIN if summary.get(name) is not None}
    values |= {name: float(summary[name]) for name in _IF_ANY if summary.get(name)}
    if (each := summary.get("per_client")) and each["clients"] > 1:
        values |= {f"client_{name}": float(each[name]) for name in _PER_CLIENT}
    if summary.get("due") is not None:
        values["due"] = float(summary["due"])
    values |= _own_delay(driven)
    values |= _profile(driven)
    # Without a schedule, as in a closed loop without think time, the value is 0.
    if summary.get("lateness_max_s"):
        values |= {name: float(summary[name]) for name in _LATENESS}
    if summary.get("reconnects"):
        values["reconnects"] = float(summary["reconnects"])
        values["reconnect_mean_s"] = summary["reconnects_s"] / summary["reconnects"]
    if summary.get("aborted") and not summary["failed"]:
        # The error that ended the trial ended transactions too. These are not counted as failed, so the counts would be
        # wrong.
        for name in ("failed", "failed_fraction", "errors"):
            del values[name]
    for name, histogram in driven.histograms.items():
        if "{" not in name and not name.endswith(_LAG) and name not in _OWN_DELAY:
            values |= _latency(name, histogram)
    if len(summary.get("scripts", [])) > 1:
        for script in sorted(summary["scripts"], key=lambda one: -one["transactions"])[:MOST_SCRIPTS]:
            found = _script(script, elapsed_s, driven.histograms)
            values |= {name: value for name, value in found.items() if base_name(name) in of_scripts}
    return values | dict(driven.metrics)


def _own_delay(driven: Driven) -> dict[str, float]:
    """Returns metrics of the drive loop: how long it worked between two waits for the engine, and how many replies it
    handled in that time. Returns an empty dict if there is no drive loop, because each client has a thread that waits
    for its replies."""
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


def _profile(driven: Driven) -> dict[str, float]:
    """Returns metrics of the sampler of stacks. Returns an empty dict if no stacks were requested."""
    if (profile := driven.profile) is None:
        return {}
    return {
        "profile_samples": float(profile.samples),
        "profile_lost_share": profile_lost_share(profile),
        "profile_cpu_s": profile.cpu_s,
    }


def profile_lost_share(profile: SampledProfile) -> float:
    """Returns the fraction of the CPU samples that were lost because the kernel's buffers were full. Waits are not
    lost: a window in which switches are recorded ends before the buffers are full."""
    taken = sum(one.samples for one in profile.stacks if one.kind == CPU)
    return profile.lost / (taken + profile.lost) if profile.lost else 0.0


def own_delay_share(driven: Driven) -> float | None:
    """Returns the fraction of the service time in which a reply had arrived but was not handled yet, because the drive
    loop was handling other replies. On average, a reply waits for half of the time that its batch takes."""
    served = driven.histograms.get("service_time")
    if served is None or not served.count or "loop_wait_s" not in driven.summary:
        return None
    return float(driven.summary["loop_wait_s"]) / (served.count * served.mean_s)


MOST_STATEMENTS = 12
"""Maximum number of statements in a record: those with the highest total time. A file of the evidence contains all
statements."""
_MOST_TEXT = 48


def timed(driven: Driven) -> list[dict[str, Any]]:
    """Returns the core's rows of SQL commands. A row contains only those percentiles for which the command has enough
    answers."""
    rows = []
    for row in driven.summary.get("statements", []):
        answers = driven.histograms.get(ANSWERS.format(row["script"], row["command"]))
        rows.append({**row, **(sample.quantiles(answers, PERCENTILES) if answers is not None else {})})
    return rows


def statements(driven: Driven) -> tuple[Statement, ...]:
    """Returns the times of SQL commands in the order of the script. Returns an empty tuple without
    `--report-per-statement`."""
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
    """Returns the metrics rounded to seven digits unless they are whole numbers. This keeps records small; measurements
    vary by more.

    Leaves out values that are not finite, because they were not measured.
    """
    finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
    return {name: value if value.is_integer() else float(f"{value:.7g}") for name, value in finite.items()}


def of_no_unit(metrics: Mapping[str, float]) -> dict[str, float]:
    """Returns all metrics except those that are given per unit of work."""
    return {name: value for name, value in metrics.items() if PER_UNIT not in name}


def _script(script: Mapping[str, Any], elapsed_s: float, histograms: Mapping[str, Histogram]) -> dict[str, float]:
    """Returns the metrics of a script, of which `metrics` keeps those that the workload names."""
    tag = f"{{script={script['name']}}}"
    values = {f"throughput{tag}": float(f"{script['transactions'] / elapsed_s:.6g}")}
    if script["failed"]:
        values[f"failed{tag}"] = float(script["failed"])
    histogram = histograms.get(f"response_time{tag}")
    if histogram is not None and histogram.count:
        values[f"response_time_mean_s{tag}"] = float(f"{histogram.mean_s:.4g}")
        percentiles = sample.quantiles(histogram, _QUANTILES, least=1)
        values |= {f"response_time_{name}_s{tag}": _short(value) for name, value in percentiles.items()}
    return values


def _short(value_s: float) -> float:
    """Rounds a percentile to three digits, the precision of a histogram."""
    return float(f"{value_s:.3g}")


def _latency(name: str, histogram: Histogram) -> dict[str, float]:
    if histogram.count == 0:
        return {}
    # Percentiles of transactions are kept even if there were too few transactions. Reports pool several trials, and
    # check whether the pooled trials have enough transactions.
    pooled = sample.percentile(f"{name}_p50_s") is not None
    values = sample.quantiles(histogram, _QUANTILES, least=1 if pooled else None)
    values |= {"mean": histogram.mean_s, "max": histogram.max_s, "stdev": histogram.stdev_s}
    return {f"{name}_{statistic}_s": value for statistic, value in values.items()}
