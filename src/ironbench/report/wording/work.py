"""Words for notes that occur only with certain workloads."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.report.wording.load import changed
from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, agreed, count, names, number, percent, span, strings
from ironbench.words import some


@wording("script-caution", "log-left-out", "capture-left-out")
def of_scripts(text: Strings) -> str:
    """Example with text='a.sql: variable :x is not defined': `a.sql: variable :x is not defined`."""
    return names(text) or "the script may contain a mistake"


@wording("capture-ends-early")
def capture_ends_early(transactions: Number, rate: Number, duration_s: Number, ends_s: Number) -> str:
    """Example with transactions=2000, rate=400, duration_s=60, ends_s=5: `the capture contains only 2,000 transactions,
    so at 400/s a trial ends after 5 s instead of 60 s`."""
    return (
        f"the capture contains only {count(transactions, 'transaction')}, so at {number(rate)}/s a trial ends after "
        f"{span(ends_s)} instead of {span(duration_s)}"
    )


@wording("capture-without-data")
def capture_without_data() -> str:
    """Example: `without a dump, template or setup files, the statements run on the data that the database contains, and
    ironbench does not undo their changes`."""
    return (
        "without a dump, template or setup files, the statements run on the data that the database contains, and "
        "ironbench does not undo their changes"
    )


@wording("capture-masked")
def capture_masked() -> str:
    """Example: `the literals of the capture are masked, so statements of the replay find other rows or no rows, and may
    fail`."""
    return (
        "the literals of the capture are masked, so statements of the replay find other rows or no rows, and may fail"
    )


@wording("searches-empty")
def searches_empty(share: Number) -> str:
    """Example with share=0.12: `12% of the searches returned no entry`."""
    return f"{percent(share)} of the searches returned no entry"


@wording("compares-false")
def compares_false(share: Number) -> str:
    """Example with share=0.12: `12% of the compare operations returned false`."""
    return f"{percent(share)} of the compare operations returned false"


@wording("others-changed")
def others_changed(changes: Number) -> str:
    """Example with changes=12: `clients other than ironbench changed 12 entries of this directory during the trial`."""
    return (
        f"clients other than ironbench changed {count(changes, 'entry', 'entries')} of this directory during the trial"
    )


@wording("over-limit")
def over_limit(queries: Strings) -> str:
    """Example with queries=('q09', 'q21'): `cancelled at the time limit: q09, q21. Metrics that need the times of all
    queries are left out`."""
    cancelled = ", ".join(strings(queries)) or "queries"
    return f"cancelled at the time limit: {cancelled}. Metrics that need the times of all queries are left out"


@wording("query-failed")
def query_failed(queries: Sequence[Sequence[str]]) -> str:
    """Example with queries=[('q09', 'out of memory')]: `failed in the database: q09 (out of memory). Metrics that need
    the times of all queries are left out`."""
    refused = some([f"{name} ({error})" for name, error in queries]) or "queries"
    return f"failed in the database: {refused}. Metrics that need the times of all queries are left out"


_UNCHECKED = {
    "refreshed data": "refresh functions changed the data before the answers were checked",
    "unknown scale factor": "the correct answers for this scale factor are unknown",
    "drawn parameters": (
        "the correct answers for random parameters are unknown; to compare with the answers of another engine, "
        "use `--with expected=DIR` (`workload.with` in a lab)"
    ),
    "not requested": "the check was turned off (`check=no`)",
    "written to files": "the answers were only written to files",
}


@wording("answers-unchecked")
def answers_unchecked(reason: Strings, written: Number = 0) -> str:
    """Example with reason='unknown scale factor': `the query answers were not checked: the correct answers for this
    scale factor are unknown`."""
    why = names([_UNCHECKED.get(one, one) for one in strings(reason)])
    return f"the query answers were not checked{f': {why}' if why else ''}"


_EARLIER = {
    "same data": "checked in an earlier trial on the same data",
    "before refresh": "checked in an earlier trial, before refresh functions changed the data",
}


@wording("answers-checked")
def answers_checked(
    right: Number,
    of: Number,
    slow: Strings = (),
    limit_s: Number = 0.0,
    refused: Sequence[Sequence[str]] = (),
    earlier: Strings = "",
) -> str:
    """Example with right=20, of=22, slow=('q09', 'q21'), limit_s=60.0, earlier='same data': `query answers checked: 20
    of 22 correct; q09, q21 did not finish within 60 s; checked in an earlier trial on the same data`."""
    parts = [f"query answers checked: {number(right)} of {number(of)} correct"]
    if strings(slow):
        parts.append(f"{', '.join(strings(slow))} did not finish within {span(limit_s)}")
    parts += [f"{name} failed ({error})" for name, error in refused]
    parts += [_EARLIER.get(one, one) for one in strings(earlier)]
    return "; ".join(parts)


@wording("mix-missed")
def mix_missed(script: Strings, share: Number, specified: Number, transactions: Number) -> str:
    """Example with script='trade_order', share=0.08, specified=0.1, transactions=4000: `the transaction mix is wrong:
    trade_order makes up 8% instead of 10% of 4,000 transactions`."""
    return (
        f"the transaction mix is wrong: {names(script) or 'a transaction'} makes up {percent(share)} instead of "
        f"{percent(specified)} of {count(transactions, 'transaction')}"
    )


@wording("response-limit-missed")
def response_limit(
    script: Strings, limit_s: Number, p90_s: Number | None = None, longest_s: Number | None = None
) -> str:
    """Example with script='trade_order', limit_s=3, p90_s=4: `the 90th percentile of response times of trade_order is 4
    s, above the limit of 3 s`."""
    if longest_s is not None:
        return f"{names(script) or 'a transaction'} took {span(longest_s)}, longer than the limit of {span(limit_s)}"
    whose = f" of {names(script)}" if strings(script) else ""
    return f"the 90th percentile of response times{whose} is {span(p90_s or 0.0)}, above the limit of {span(limit_s)}"


@wording("no-steady-state")
def no_steady_state(
    least_s: Number | None = None, rate: Strings = "", change: Number = 0.0, after_s: Number | None = None
) -> str:
    """Example with rate='market', change=-0.2, after_s=12.0: `the trial had no steady state: the rate of the market's
    transactions fell by 20% after 12 s and stayed at that level`."""
    if least_s is not None:
        return f"the trial was too short to confirm a steady state: use a duration of at least {span(least_s)}"
    what = "the rate of the market's transactions" if "market" in strings(rate) else "throughput"
    return f"the trial had no steady state: {what} {changed(change, after_s)}"


@wording("market-gave-up")
def given_up(given_up: Number) -> str:
    """Example with given_up=2: `the market emulator gave up 2 results or feeds after 20 attempts each, so the affected
    trades stay in progress`."""
    what = "result or feed" if number(given_up) == "1" else "results or feeds"
    return (
        f"the market emulator gave up {number(given_up)} {what} after 20 attempts each, so the affected trades "
        "stay in progress"
    )


@wording("no-score")
def no_score() -> str:
    """Example: `there is no score, because one client ran all roles one after another and each transaction advanced the
    simulated time`."""
    return (
        "there is no score, because one client ran all roles one after another and each transaction advanced the "
        "simulated time"
    )


@wording("replay-skipped")
def skipped(statements: Number, share: Number) -> str:
    """Example with statements=12, share=0.012: `12 statements (1.2%) were skipped, because an earlier statement of the
    same transaction failed, although it succeeded in the recording`."""
    return (
        f"{count(statements, 'statement')} ({percent(share)}) {agreed(statements)} skipped, because an earlier "
        "statement of the same transaction failed, although it succeeded in the recording"
    )


MEASURES = {
    "statements": "statements",
    "mix": "mix of statement types",
    "failed_statements": "failed statements",
    "rows": "rows returned or changed",
    "rows_inserted": "rows inserted",
    "rows_updated": "rows updated",
    "rows_deleted": "rows deleted",
    "wal_bytes": "WAL",
    "wal_records": "WAL records",
    "wal_full_page_images": "full-page images in WAL",
    "blocks_hit": "buffer cache hits",
    "blocks_read": "blocks read into the buffer cache",
    "log_bytes": "redo log",
    "pages_hit": "read requests to the buffer pool",
    "pages_read": "pages read into the buffer pool",
}
"""Names of the metrics by which a replay is compared with the recording."""


@wording("replay-late")
def replay_late(late_s: Number, schedule_s: Number) -> str:
    """Example with late_s=0.67, schedule_s=4.02: `the replay ended 670 ms after its schedule of 4 s, so the system
    does not sustain the pace of the replay, and response times depend on the length of the replay`."""
    return (
        f"the replay ended {span(late_s)} after its schedule of {span(schedule_s)}, so the system does not sustain the "
        "pace of the replay, and response times depend on the length of the replay"
    )


@wording("replay-differs", "replay-unfaithful")
def replay_differs(measures: Strings, most: Number) -> str:
    """Example with measures=('wal', 'rows'), most=0.12: `the replay differs from the recording by up to 12% in: wal,
    rows returned or changed`."""
    what = names([MEASURES.get(one, one) for one in strings(measures)]) or "its work"
    return f"the replay differs from the recording by up to {percent(most)} in: {what}"
