"""Words for notes about captures: what a log does not contain, and what a replay cannot do."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, agreed, count, names, number, percent, span, strings

REASONS = {
    "copy": "COPY or LOAD DATA, because the capture does not contain the copied rows",
    "listen": "LISTEN and UNLISTEN, because notifications would arrive at any time",
    "two-phase": "two-phase commit",
    "server-wide": "statements that affect roles, databases or settings of the whole server",
    "other-sessions": "calls of functions that affect other sessions or the whole server",
    "no-parameters": "the parameter values are not known: set `log_parameter_max_length = -1`",
    "cut-parameters": "the log contains only the beginning of a parameter value",
    "password": "the statement contains a password, which is not captured",
    "encoding": "the statement is not valid UTF-8",
    "fetch": "fetches of further rows from a cursor, because a replay fetches all rows at once",
    "begun-before": "the transaction began before the start of the log",
    "long-text": "the statement or its parameters are longer than a proxy stores (1 MiB)",
    "binary-parameters": "a parameter has a type whose binary format ironbench does not know",
    "gap": "the transaction is incomplete, because statements could not be stored in time",
    "function-call": "a call of a function without SQL, such as those for large objects",
    "use": "USE, because a replay runs all statements in one database",
    "other-database": "a table in the statement has the name of its database, which the replay's data do not have",
    "utility": "utility statements, because their text in the server's statistics may contain literals",
    "not-preparable": "the server cannot prepare the statement if parameters replace all its literals",
    "cut-digest": "the server's statistics contain only the beginning of the statement",
    "several-statements": "the statement was sent together with others, whose texts the server's statistics mix up",
    "unknown-arguments": "the server's statistics do not contain how many literals are in a list",
    "object-parameter": "a parameter is the name of a table, sequence or other object, which the statistics lack",
    "transaction": "another statement of the same transaction cannot be replayed",
}


_DURATIONS = "log_min_duration_statement = 0"
"""The setting that notes of earlier versions mean."""


def reason(code: str) -> str:
    return REASONS.get(code, code)


@wording("capture-not-replayable")
def not_replayable(reason: Strings, statements: Number, share: Number) -> str:
    """Example with reason='copy', statements=12, share=0.012: `12 statements (1.2%) cannot be replayed: COPY or LOAD
    DATA, because the capture does not contain the copied rows`."""
    why = names([REASONS.get(one, one) for one in strings(reason)]) or "unknown reason"
    return f"{count(statements, 'statement')} ({percent(share)}) cannot be replayed: {why}"


@wording("capture-without-durations")
def without_durations(setting: str = _DURATIONS) -> str:
    """Example with setting='long_query_time = 0': `the log contains no statement durations, so think times are unknown
    and `mode=think` is not possible: set `long_query_time = 0``."""
    return (
        "the log contains no statement durations, so think times are unknown and `mode=think` is not possible: set "
        f"`{setting}`"
    )


@wording("capture-few-durations")
def few_durations(share: Number) -> str:
    """Example with share=0.12: `the durations of 12% of the statements are unknown; the server never logs a duration
    for a failed statement`."""
    return (
        f"the durations of {percent(share)} of the statements are unknown; the server never logs a duration for a "
        "failed statement"
    )


@wording("capture-slow-only")
def slow_only(least_s: Number, setting: str = _DURATIONS) -> str:
    """Example with least_s=0.1, setting='long_query_time = 0': `the fastest logged statement took 100 ms, so the log
    probably contains only slow statements: set `long_query_time = 0``."""
    return (
        f"the fastest logged statement took {span(least_s)}, so the log probably contains only slow statements: "
        f"set `{setting}`"
    )


@wording("capture-without-reads")
def without_reads(setting: str = _DURATIONS) -> str:
    """Example with setting='long_query_time = 0': `the log contains no SELECT: set `long_query_time = 0``."""
    return f"the log contains no SELECT: set `{setting}`"


@wording("capture-durations-alone")
def durations_alone(count: Number) -> str:
    """Example with count=12: `12 durations belong to statements whose text was not logged: set
    `log_min_duration_statement = 0` instead of `log_duration``."""
    return (
        f"{number(count)} {agreed(count, 'duration belongs', 'durations belong')} to statements whose text was "
        "not logged: set `log_min_duration_statement = 0` instead of `log_duration`"
    )


@wording("capture-cut-parameters")
def cut_parameters(length: Number) -> str:
    """Example with length=64: `the server seems to have truncated parameter values to 64 bytes: set
    `log_parameter_max_length = -1``."""
    return (
        f"the server seems to have truncated parameter values to {count(length, 'byte')}: set "
        "`log_parameter_max_length = -1`"
    )


@wording("capture-unreadable")
def unreadable(lines: Number, files: Strings = ()) -> str:
    """Example with lines=12, files='server.log': `12 lines of server.log could not be parsed`."""
    return f"{count(lines, 'line')} of {names(files) or 'the log'} could not be parsed"


@wording("capture-truncated")
def truncated(files: Number) -> str:
    """Example with files=1: `the last log entry of 1 file is incomplete and was skipped`."""
    return f"the last log entry of {count(files, 'file')} is incomplete and was skipped"


@wording("capture-truncated-archives")
def truncated_archives(files: Strings) -> str:
    """Example with files='server.csv.gz': `the compressed data of server.csv.gz are truncated; the log entries after
    this point are missing`."""
    these = names(files) or "unknown files"
    return f"the compressed data of {these} are truncated; the log entries after this point are missing"


@wording("capture-clock-steps")
def clock_steps(steps: Number) -> str:
    """Example with steps=1: `the clock was set back 1 time while the log was written; the capture corrects its
    timestamps`."""
    return (
        f"the clock was set back {count(steps, 'time')} while the log was written; the capture corrects its timestamps"
    )


@wording("capture-repeated")
def repeated(entries: Number) -> str:
    """Example with entries=12: `12 log entries occurred more than once; each is counted only once`."""
    return f"{count(entries, 'log entry', 'log entries')} occurred more than once; each is counted only once"


@wording("capture-unknown-zones")
def unknown_zones(zones: Strings) -> str:
    """Example with zones='XYZT': `unknown time zones in the log were read as UTC: XYZT`."""
    return f"unknown time zones in the log were read as UTC: {names(zones) or 'unnamed'}"


@wording("capture-one-mark")
def one_mark() -> str:
    """Example: `the log contains only one mark, so the changes of the server's counters during the recording are
    unknown: run `ironbench capture --mark` both at the start and at the end of the recording`."""
    return (
        "the log contains only one mark, so the changes of the server's counters during the recording are unknown: run "
        "`ironbench capture --mark` both at the start and at the end of the recording"
    )


@wording("capture-counters-reset")
def counters_reset() -> str:
    """Example: `the changes of the server's counters during the recording are unknown, because the counters were reset,
    or because the marks come from different databases`."""
    return (
        "the changes of the server's counters during the recording are unknown, because the counters were reset, or "
        "because the marks come from different databases"
    )


@wording("capture-outside-marks")
def outside_marks(statements: Number) -> str:
    """Example with statements=12: `12 statements before the first mark or after the last mark are not in the
    capture`."""
    verb = "is" if number(statements) == "1" else "are"
    return f"{count(statements, 'statement')} before the first mark or after the last mark {verb} not in the capture"


@wording("capture-invented")
def invented(sessions: Number) -> str:
    """Example with sessions=12: `start times, transactions and 12 sessions are simulated: statements start at random
    times at the measured rate, and each statement is a separate transaction`."""
    return (
        f"start times, transactions and {count(sessions, 'session')} are simulated: statements start at random "
        "times at the measured rate, and each statement is a separate transaction"
    )


@wording("capture-drawn")
def drawn(share: Number) -> str:
    """Example with share=0.95: `parameter values are simulated: 95% are drawn from column statistics, and the others
    are arbitrary values of the right type`."""
    return (
        f"parameter values are simulated: {percent(share)} are drawn from column statistics, and the others are "
        "arbitrary values of the right type"
    )


@wording("capture-hidden")
def hidden(statements: Number) -> str:
    """Example with statements=12: `12 statements of other roles are not in the capture, because the role that made the
    capture lacks the privilege to read their text`."""
    verb = agreed(statements, "is", "are")
    return (
        f"{count(statements, 'statement')} of other roles {verb} not in the capture, because the role that made the "
        "capture lacks the privilege to read their text"
    )


@wording("capture-prepared-unseen")
def prepared_unseen(statements: Number) -> str:
    """Example with statements=12: `12 executions of prepared statements on the whole server are not in the capture,
    because performance_schema does not contain their text: capture them with a proxy`."""
    verb = agreed(statements, "is", "are")
    return (
        f"{count(statements, 'execution')} of prepared statements on the whole server {verb} not in the capture, "
        "because performance_schema does not contain their text: capture them with a proxy"
    )


@wording("capture-not-replayed")
def not_replayed() -> str:
    """Example: `an earlier version of ironbench made this capture; it can be shown, but not replayed: capture again`.

    Only captures of earlier versions contain this note."""
    return "an earlier version of ironbench made this capture; it can be shown, but not replayed: capture again"


@wording("capture-whole-seconds")
def whole_seconds() -> str:
    """Example: `the log's timestamps are whole seconds and were read as UTC; statements are distributed evenly within
    each second`."""
    return (
        "the log's timestamps are whole seconds and were read as UTC; statements are distributed evenly within each "
        "second"
    )


@wording("capture-unknown-users")
def unknown_users(sessions: Number) -> str:
    """Example with sessions=12: `the user and database of 12 sessions are unknown, because the sessions began before
    the start of the log`."""
    return (
        f"the user and database of {count(sessions, 'session')} are unknown, because the sessions began before "
        "the start of the log"
    )


@wording("capture-trigger-statements")
def trigger_statements(statements: Number) -> str:
    """Example with statements=12: `12 log entries are statements of triggers and were left out; statements of triggers
    that do not contain NEW or OLD cannot be recognised, so use the slow query log or a proxy`."""
    verbs = agreed(statements, "is a statement of a trigger and was", "are statements of triggers and were")
    return (
        f"{count(statements, 'log entry', 'log entries')} {verbs} left out; statements of triggers that do not contain "
        "NEW or OLD cannot be recognised, so use the slow query log or a proxy"
    )


@wording("capture-lost")
def lost(statements: Number, share: Number) -> str:
    """Example with statements=1200, share=0.012: `1,200 statements (1.2%) are missing, because the disk was full or too
    slow; the application was not delayed`."""
    return (
        f"{count(statements, 'statement')} ({percent(share)}) {agreed(statements, 'is', 'are')} missing, because the "
        "disk was full or too slow; the application was not delayed"
    )


@wording("capture-unfollowed")
def unfollowed(connections: Number) -> str:
    """Example with connections=2: `2 connections were passed on, but the statements were not captured, for example
    because of replication`."""
    verb = agreed(connections, "was", "were")
    return (
        f"{count(connections, 'connection')} {verb} passed on, but the statements were not captured, for example "
        "because of replication"
    )


@wording("capture-needs-roles")
def needs_roles(roles: Strings) -> str:
    """Example with roles=('keeper', 'web'): `before data are loaded, ironbench checks that the user in the DSN may set
    these roles, which captured statements set: keeper, web`."""
    return (
        "before data are loaded, ironbench checks that the user in the DSN may set these roles, which captured "
        f"statements set: {names(roles) or 'unknown'}"
    )
