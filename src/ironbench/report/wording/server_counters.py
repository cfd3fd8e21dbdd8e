"""Words for what a server's statement statistics do not contain."""

from __future__ import annotations

from ironbench.report.wording.registry import wording
from ironbench.report.wording.values import Number, Strings, agreed, names
from ironbench.report.wording.values import count as counted


@wording("statements-since-restart")
def since_restart() -> str:
    """Example: `the server was restarted during the trial, so its statement statistics start at the restart`."""
    return "the server was restarted during the trial, so its statement statistics start at the restart"


@wording("statements-since-reset")
def since_reset(by: Strings) -> str:
    """Example with by='pg_stat_statements': `pg_stat_statements was reset during the trial, so its values start at the
    reset`."""
    return f"{names(by) or 'a server view'} was reset during the trial, so its values start at the reset"


@wording("statements-evicted")
def evicted(by: Strings, setting: Strings) -> str:
    """Example with by='pg_stat_statements', setting='pg_stat_statements.max': `pg_stat_statements evicted rare
    statements during the trial (increase pg_stat_statements.max): some values in this view are too low or missing`."""
    more = f" (increase {names(setting)})" if names(setting) else ""
    lacks = "some values in this view are too low or missing"
    return f"{names(by) or 'the server'} evicted rare statements during the trial{more}: {lacks}"


@wording("statements-not-counted")
def not_counted(count: Number, by: Strings, setting: Strings) -> str:
    """Example with count=12, by='performance_schema', setting='performance_schema_digests_size': `performance_schema
    had no space for 12 statements, which are missing (increase performance_schema_digests_size)`."""
    more = f" (increase {names(setting)})" if names(setting) else ""
    missing = f"{counted(count, 'statement')}, which {agreed(count, 'is', 'are')} missing"
    return f"{names(by) or 'the server'} had no space for {missing}{more}"
