"""Reads HammerDB's console output, the JSON of `jobs JOBID`, `jobs JOBID result` and `jobs JOBID timing`, the report of
the time profile (`hdbxtprofile.log`), and the log of the transaction counter (`hammerdb_counter.py`).

Supports HammerDB 2.23 to 5.0 (https://www.hammerdb.com/document.html), and only results of TPROC-C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from ironbench.records.foreign import hammerdb_counter
from ironbench.records.foreign.output import MOST_RESULTS, NUMBER, Output, Result, count, put, safe

_MOST_JSON_BYTES = 32 << 20
_RESULT = re.compile(r"System achieved (\d{1,12}) NOPM from (\d{1,12}) (.{1,40}?) TPM")
_FORMER = re.compile(r"System achieved (\d{1,12}) (.{1,40}?) TPM at (\d{1,12}) NOPM")
_VERSION = re.compile(r"HammerDB(?: CLI)? v(\d[\w.]{0,20})")
_RAMPUP = re.compile(r"Beginning rampup time of (\d{1,6}) minute")
_PERIOD = re.compile(r"Timing test period of (\d{1,6}) in minutes")
_USERS = re.compile(r"(\d{1,7}) Active Virtual Users configured")
_FAILED = re.compile(r"Vuser \d{1,7}:FINISHED FAILED")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_PROFILE = re.compile(r"(.{0,40}?) ?Hammerdb Time Profile Report @")
"""First line of a report in `hdbxtprofile.log` (modules/xtprof-1.0.tm in the sources of HammerDB 5.0)."""
_ALL_USERS = re.compile(r">>>>> (?:SUMMARY OF (\d{1,7}) ACTIVE VIRTUAL USERS|COMBINED METRICS)")
_ONE_USER = re.compile(r">>>>> VIRTUAL USER")
_PROCEDURE = re.compile(r">>>>> PROC: (\w{1,40})")
_FIGURE = re.compile(rf"\b(CALLS|MIN|AVG|MAX|P99|P95|P50): *{NUMBER}")
_NAMES = {
    "NEWORD": "New-Order",
    "PAYMENT": "Payment",
    "OSTAT": "Order-Status",
    "DELIVERY": "Delivery",
    "SLEV": "Stock-Level",
}
_FIGURES = {
    "calls": ("transactions", 1.0),
    "min": ("response_time_min_s", 1e-3),
    "avg": ("response_time_mean_s", 1e-3),
    "p50": ("response_time_p50_s", 1e-3),
    "p95": ("response_time_p95_s", 1e-3),
    "p99": ("response_time_p99_s", 1e-3),
    "max": ("response_time_max_s", 1e-3),
}
"""Metrics in HammerDB's time profile. For each of HammerDB's names: the name of the metric, and the factor that
converts HammerDB's unit to the base unit."""


def read(output: Output) -> list[Result]:
    """Returns every result in the output. Raises InputError."""
    if output.head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{"):
        try:
            document = msgspec.json.decode(output.text(_MOST_JSON_BYTES))
        except (msgspec.DecodeError, RecursionError):
            raise output.refused("is not complete JSON", "copy the whole output of the jobs command") from None
        texts = list(_texts(document))
        results = _results(texts)
        if results:
            for name, figures in _timed(document):
                _part(results[-1], name, figures)
        return results
    if output.head.startswith(hammerdb_counter.START.encode()):
        return hammerdb_counter.read(output)
    return _results(output.lines())


def merged(parts: Sequence[tuple[Output, Result]]) -> Result:
    """Returns the result of one run from the results of its separate files: the log, the time profile and the log of
    the transaction counter. Raises InputError if the files cannot belong to the same run."""
    separate = "import each file with its own `ironbench record import`"
    _, whole = parts[0]
    whole = replace(whole, facts=dict(whole.facts), parts=list(whole.parts), rows=list(whole.rows))
    for output, one in parts[1:]:
        for what, ours, theirs in (
            ("NOPM", whole.metrics, one.metrics),
            ("response times", whole.parts, one.parts),
            ("a transaction counter", whole.rows, one.rows),
        ):
            if ours and theirs:
                raise output.refused(f"contains {what}, like a file before it", separate)
        for name in ("workload", "database"):
            ours_text, theirs_text = whole.facts.get(name, ""), one.facts.get(name, "")
            if ours_text and theirs_text and ours_text.casefold() != theirs_text.casefold():
                raise output.refused(f"is for {theirs_text}, but a file before it is for {ours_text}", separate)
        if whole.clients and one.clients and whole.clients != one.clients:
            cause = f"has {one.clients} virtual users, but a file before it has {whole.clients}"
            raise output.refused(cause, separate)
        if whole.started_at and one.started_at and whole.started_at[:10] != one.started_at[:10]:
            cause = f"starts on {one.started_at[:10]}, but a file before it on {whole.started_at[:10]}"
            raise output.refused(cause, separate)
        whole = replace(
            whole,
            version=whole.version or one.version,
            started_at=whole.started_at or one.started_at,
            elapsed_s=whole.elapsed_s or one.elapsed_s,
            clients=whole.clients or one.clients,
            facts=one.facts | whole.facts,
            metrics=whole.metrics | one.metrics,
            parts=whole.parts + one.parts,
            rows=whole.rows + one.rows,
            failed_users=whole.failed_users + one.failed_users,
        )
    return whole


def _results(lines: Iterable[str]) -> list[Result]:
    results: list[Result] = []
    now, version, moment, failed = Result(), "", "", 0
    summary, procedure, is_profile = False, "", False
    figures: dict[str, str] = {}
    for line in lines:
        if found := _VERSION.search(line):
            version = safe(found[1])
        elif _MOMENT.fullmatch(line):
            moment = line
        elif _FAILED.search(line):
            failed += 1
        elif found := _RAMPUP.search(line):
            now = Result(facts={"warmup": f"{found[1]} min"})
        elif found := _PERIOD.search(line):
            now = Result(facts=now.facts) if not now.complete else Result()
            now.elapsed_s = 60.0 * int(found[1]) or None
        elif found := _USERS.search(line):
            now = Result() if now.complete else now
            now.clients = count(found[1])
        elif found := _PROFILE.match(line):
            now = Result(facts={"workload": "TPROC-C"} | ({"database": safe(found[1])} if found[1] else {}))
            is_profile = True
        elif (found := _ALL_USERS.search(line)) or _ONE_USER.search(line):
            summary = bool(found)
            if found and found[1] and is_profile:
                now.clients = count(found[1])
        elif found := _PROCEDURE.search(line):
            procedure, figures = found[1] if summary else "", {}
        elif procedure and (values := _FIGURE.findall(line)):
            figures |= {name.lower(): value for name, value in values}
            if "p50" in figures:  # this line completes the procedure
                _part(now, procedure, figures)
                procedure = ""
                if is_profile and not now.complete:
                    now.complete = True
                    results.append(now)
        elif found := _RESULT.search(line) or _FORMER.search(line):
            now = Result() if now.complete else now
            former = found.re is _FORMER
            put(now.metrics, "new_orders_per_min", found[3 if former else 1])
            put(now.metrics, "transactions_per_min", found[1 if former else 2])
            now.facts |= {"workload": "TPROC-C", "database": safe(found[2 if former else 3])}
            now.complete = True
            results.append(now)
        if len(results) > MOST_RESULTS:
            results.pop()
            break
    for one in results:
        one.version, one.started_at = version, moment
    if len(results) == 1:
        results[0].failed_users = failed
    return results


def _part(result: Result, procedure: str, figures: dict[str, str]) -> None:
    metrics: dict[str, float] = {}
    for name, (metric, factor) in _FIGURES.items():
        put(metrics, metric, figures.get(name, ""), factor)
    result.part(_NAMES.get(procedure, procedure), metrics)


def _texts(document: Any) -> Iterator[str]:
    """Yields the lines of all strings in a JSON document, in order."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield from one.splitlines()
        elif isinstance(one, list):
            waiting.extend(reversed(one))
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))


def _timed(document: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the procedures in the output of `jobs JOBID timing` with their values."""
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(reversed(one))
        elif isinstance(one, dict):
            for name, inner in one.items():
                if isinstance(inner, dict) and "avg_ms" in inner:
                    yield safe(name), {key.removesuffix("_ms"): str(value) for key, value in inner.items()}
                else:
                    waiting.append(inner)
