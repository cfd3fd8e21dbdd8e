"""Reads the logs of `pgbench -l` and of `pgbench -l --aggregate-interval`.

Supports pgbench 9.6 to 18 (https://www.postgresql.org/docs/current/pgbench.html, "Per-Transaction Logging" and
"Aggregated Logging").
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from statistics import mode
from typing import TYPE_CHECKING, Any

from ironbench.model.foreign import MOST_PARTS, MOST_SECONDS
from ironbench.model.sample import enough
from ironbench.records.foreign.output import Output, Result

if TYPE_CHECKING:
    import numpy as np

LOGGED = re.compile(
    r"(\d{1,7}) \d{1,15} (?:(\d{1,12})|failed|skipped|serialization|deadlock) (\d{1,5}) (\d{9,11}) (\d{1,6})"
    r"(?: \d{1,15}){0,2}"
)
"""Columns of a transaction log: client_id transaction_no time script_no time_epoch time_us [schedule_lag] [retries];
times in µs."""
AGGREGATED = re.compile(r"\d{9,11}(?: \d{1,20}){5,16}")
"""Columns of an aggregated log: start of the interval, number of transactions, and four values of the latency in µs
(sum, sum of squares, minimum, maximum).

Depending on version and options, further columns follow: the same four values of the schedule lag, and the numbers of
skipped transactions, retried transactions, retries, serialization failures, and deadlocks.
"""
_FAILURES = slice(13, 15)
"""Columns with serialization failures and deadlocks."""
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_LONGEST_S = 10 * 365 * 86_400


def _lines(output: Output, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yields the lines of a log. Leaves out a last line without a line end, because it may have been cut off. Raises
    InputError for any other invalid line."""
    for number, line in enumerate(output.lines(complete=True), 1):
        found = pattern.fullmatch(line)
        if found is None:
            raise output.refused(f"line {number} is not a line of pgbench's log", "import the log of one run")
        yield found


def logged(output: Output) -> list[Result]:
    """Returns the result of a transaction log. Logs of several threads may be joined in any order. Raises
    InputError."""
    import numpy as np

    ends, latencies, scripts = array("d"), array("d"), array("H")
    clients: set[str] = set()
    for found in _lines(output, LOGGED):
        # pgbench skips transactions that are too late. Their client did nothing.
        if " skipped " in found[0]:
            continue
        client, latency, script, second, micro = found.groups()
        clients.add(client)
        ends.append(int(second) + int(micro) / 1e6)
        latencies.append(int(latency) / 1e6 if latency is not None else np.nan)
        scripts.append(min(int(script), MOST_PARTS))
    if not ends:
        return []
    end_s, time_s = np.frombuffer(ends), np.frombuffer(latencies)
    begin_s, good = float((end_s - np.nan_to_num(time_s)).min()), np.isfinite(time_s)
    elapsed_s = float(end_s.max()) - begin_s
    if elapsed_s > _LONGEST_S or not good.any() or elapsed_s <= 0:
        raise output.refused("contains impossible times", "import the log of one run")
    result = Result(elapsed_s=elapsed_s, clients=len(clients), started_at=_moment(begin_s), complete=True)
    failed = int((~good).sum())
    result.metrics = {
        "transactions": float(good.sum()),
        "throughput": float(good.sum()) / elapsed_s,
        "failed": float(failed),
        "failed_fraction": failed / len(end_s),
        **_times(time_s[good]),
    }
    of_script = np.frombuffer(scripts, dtype=np.uint16)
    if (numbers := np.unique(of_script)).size > 1:
        for number in numbers:
            chosen = time_s[good & (of_script == number)]
            result.part(f"script {number}", {"transactions": float(chosen.size), **_times(chosen)})
    if elapsed_s < MOST_SECONDS:
        order = np.argsort(end_s, kind="stable")
        whole = (end_s[order] - begin_s).astype(int)
        bounds = np.searchsorted(whole, np.arange(int(elapsed_s) + 1))
        for second, (first, last) in enumerate(pairwise(bounds)):
            times = time_s[order[first:last]]
            good_times = times[np.isfinite(times)]
            shown = {name: value for name, value in _times(good_times).items() if name in _OVER_TIME}
            counts = {"throughput": float(good_times.size), "failed": float(times.size - good_times.size)}
            result.rows.append({"t_s": second + 1.0, **counts, **shown})
    return [result]


_OVER_TIME = ("response_time_mean_s", "response_time_p50_s", "response_time_p99_s")


def _times(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """Returns mean, percentiles and maximum of response times. Leaves out percentiles of too few transactions."""
    import numpy as np

    if not values.size:
        return {}
    shares = {name: share for name, share in _SHARES.items() if enough(share, values.size)}
    known = np.quantile(values, list(shares.values()), method="inverted_cdf") if shares else ()
    percentiles = {f"response_time_{name}_s": float(value) for name, value in zip(shares, known, strict=True)}
    return {
        "response_time_mean_s": float(values.mean()),
        **percentiles,
        "response_time_max_s": float(values.max()),
    }


def aggregated(output: Output) -> list[Result]:
    """Returns the result of an aggregated log. Raises InputError."""
    rows: dict[int, list[int]] = {}
    for found in _lines(output, AGGREGATED):
        begin, *values = map(int, found[0].split())
        known = rows.setdefault(begin, values)
        if known is not values:  # another thread's log contains the same interval
            raise output.refused(f"contains the interval {begin} twice", "import the log of one thread (pgbench -j 1)")
        if len(rows) > MOST_SECONDS:
            raise output.refused("has too many intervals", "use a longer --aggregate-interval")
    begins = sorted(rows)
    if len(begins) < 2:
        return []
    width_s = mode(after - before for before, after in pairwise(begins))
    # The first and the last interval are incomplete.
    inner = begins[1:-1] or begins
    result = Result(elapsed_s=float(width_s * len(inner)), started_at=_moment(float(inner[0])), complete=True)
    totals = [sum(column) for column in zip(*(rows[begin][:2] for begin in inner), strict=True)]
    failed = sum(sum(rows[begin][_FAILURES.start - 1 : _FAILURES.stop - 1]) for begin in inner)
    result.metrics = {"transactions": float(totals[0]), "throughput": totals[0] / (width_s * len(inner))}
    if len(rows[begins[0]]) >= _FAILURES.stop - 1:
        result.metrics |= {"failed": float(failed)}
        result.metrics |= {"failed_fraction": failed / (totals[0] + failed)} if totals[0] + failed else {}
    if totals[0]:
        result.metrics["response_time_mean_s"] = totals[1] / totals[0] / 1e6
        result.metrics["response_time_max_s"] = max(rows[begin][4] for begin in inner) / 1e6
    for begin in inner:
        done, sum_us, *_ = rows[begin]
        row = {"t_s": float(begin + width_s - inner[0]), "throughput": done / width_s}
        if done:
            row["response_time_mean_s"] = sum_us / done / 1e6
        if "failed" in result.metrics:
            row["failed"] = float(sum(rows[begin][_FAILURES.start - 1 : _FAILURES.stop - 1]))
        result.rows.append(row)
    return [result]


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds")
