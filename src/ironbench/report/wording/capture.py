"""Words for notes about captures: what logs lack, and what a replay cannot do."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, agreed, count, names, number, percent, span, strings

REASONS = {
    "copy": "COPY, because logs do not contain its rows",
    "listen": "LISTEN and UNLISTEN, because notifications would arrive at any time",
    "two-phase": "two-phase commit",
    "server-wide": "statements about roles, databases and settings of the whole server",
    "other-sessions": "functions that affect other sessions or the server",
    "no-parameters": "the log lacks the values of parameters",
    "cut-parameters": "the log contains only the beginning of a parameter",
    "password": "the statement contains a password, which is not captured",
    "encoding": "the statement is not valid UTF-8",
    "fetch": "further rows of a cursor, which a replay gets at once",
    "begun-before": "the transaction began before the log",
    "utility": "utility statements, because statistics may contain their literals",
    "not-preparable": "the server cannot prepare the statement with parameters in place of all literals",
    "transaction": "another statement of the same transaction cannot be replayed",
}


def reason(code: str) -> str:
    return REASONS.get(code, code)


@wording("capture-not-replayable")
def not_replayable(reason: Strings, statements: Number, share: Number) -> str:
    """12 statements (1.2%) cannot be replayed: COPY, because logs do not contain its rows"""
    why = names([REASONS.get(one, one) for one in strings(reason)]) or "unknown reason"
    return f"{count(statements, 'statement')} ({percent(share)}) cannot be replayed: {why}"


@wording("capture-without-durations")
def without_durations() -> str:
    """the log contains no durations, so mode=think is not possible: set log_min_duration_statement = 0"""
    return (
        "the log contains no durations, so think times are unknown and mode=think is not possible: set "
        "log_min_duration_statement = 0"
    )


@wording("capture-few-durations")
def few_durations(share: Number) -> str:
    """the durations of 12% of the statements are unknown"""
    return f"the durations of {percent(share)} of the statements are unknown; failed statements never have one"


@wording("capture-slow-only")
def slow_only(least_s: Number) -> str:
    """the fastest statement took 100 ms, so the log probably contains only slow statements"""
    return (
        f"the fastest statement took {span(least_s)}, so the log probably contains only slow statements: set "
        "log_min_duration_statement = 0"
    )


@wording("capture-without-reads")
def without_reads() -> str:
    """the log contains no SELECT: set log_statement = all, or log_min_duration_statement = 0"""
    return "the log contains no SELECT: set log_statement = all, or log_min_duration_statement = 0"


@wording("capture-durations-alone")
def durations_alone(count: Number) -> str:
    """12 durations belong to statements that were not logged: set log_min_duration_statement = 0"""
    return (
        f"{number(count)} {agreed(count, 'duration belongs', 'durations belong')} to statements that were not logged: "
        "set log_min_duration_statement = 0 instead of log_duration"
    )


@wording("capture-cut-parameters")
def cut_parameters(length: Number) -> str:
    """the server cut parameters at 64 bytes: set log_parameter_max_length = -1"""
    return f"the server seems to have cut parameters at {count(length, 'byte')}: set log_parameter_max_length = -1"


@wording("capture-unreadable")
def unreadable(lines: Number) -> str:
    """12 lines are not part of an entry and were skipped"""
    return f"{count(lines, 'line')} could not be read as part of an entry"


@wording("capture-truncated")
def truncated(files: Number) -> str:
    """the last entry of 1 file is incomplete and was skipped"""
    return f"the last entry of {count(files, 'file')} is incomplete and was skipped"


@wording("capture-clock-steps")
def clock_steps(steps: Number) -> str:
    """the clock went back 1 time; the capture continues without the step"""
    return f"the clock went back {count(steps, 'time')}; in the capture, time continues without the step"


@wording("capture-repeated")
def repeated(entries: Number) -> str:
    """12 entries occur more than once and were read once"""
    return f"{count(entries, 'entry', 'entries')} occurred more than once; each counts once"


@wording("capture-unknown-zones")
def unknown_zones(zones: Strings) -> str:
    """unknown time zones were read as UTC: XYZT"""
    return f"unknown time zones were read as UTC: {names(zones) or 'unnamed'}"


@wording("capture-one-mark")
def one_mark() -> str:
    """the log contains only one mark, so the server's counters of the recording are unknown"""
    return "the log contains only one mark, so the server's counters of the recording are unknown: send one at each end"


@wording("capture-counters-reset")
def counters_reset() -> str:
    """the server's counters of the recording are unknown: they were reset, or the marks are of several databases"""
    return "the server's counters of the recording are unknown: they were reset, or the marks are of several databases"


@wording("capture-outside-marks")
def outside_marks(statements: Number) -> str:
    """12 statements before the first mark or after the last one are not in the capture"""
    verb = "is" if number(statements) == "1" else "are"
    return f"{count(statements, 'statement')} before the first mark or after the last one {verb} not in the capture"


@wording("capture-invented")
def invented(sessions: Number) -> str:
    """times, transactions and 12 sessions are invented: each call is a separate transaction"""
    return (
        f"times, transactions and {count(sessions, 'session')} are invented: calls start at random times with the "
        "measured rate, and each call is a separate transaction"
    )


@wording("capture-drawn")
def drawn(share: Number) -> str:
    """values of parameters are invented: 95% are drawn from the statistics of columns, the rest only has the right
    type"""
    return (
        f"values of parameters are invented: {percent(share)} are drawn from the statistics of columns, the rest only "
        "has the right type"
    )


@wording("capture-hidden")
def hidden(statements: Number) -> str:
    """12 statements of other roles are not in the capture, because the role may not read their texts"""
    return (
        f"{count(statements, 'statement')} of other roles are not in the capture, because the role may not read their "
        "texts"
    )


@wording("capture-not-replayed")
def not_replayed() -> str:
    """statements of this kind of log can be shown, but not replayed"""
    return "statements of this kind of log can be shown, but not replayed"


@wording("capture-whole-seconds")
def whole_seconds() -> str:
    """the log has times in whole seconds, and does not say in which time zone"""
    return "the log has times in whole seconds, read as UTC"


@wording("capture-durations-unknown")
def durations_unknown() -> str:
    """the log contains no durations, so think times are unknown"""
    return "the log contains no durations, so think times are unknown: use the slow log with long_query_time = 0"


@wording("capture-unknown-users")
def unknown_users(sessions: Number) -> str:
    """user and database of 12 sessions are unknown, because they began before the log"""
    return f"user and database of {count(sessions, 'session')} are unknown, because they began before the log"
