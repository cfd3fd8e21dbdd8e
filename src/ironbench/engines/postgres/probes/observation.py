"""Probes of what can be observed on the server, and what observing costs."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings
from ironbench.engines.postgres.probes import LOADED, STATEMENTS, changed, probe
from ironbench.model.diagnosis import note, ok, severe, warning
from ironbench.model.session import Row

_STATE = f"""
    select {LOADED}, exists (select from pg_extension where extname = '{STATEMENTS}'),
           exists (select from pg_available_extensions where name = '{STATEMENTS}'),
           (select setting from pg_settings where name = 'shared_preload_libraries')
"""


@probe("observation", "statements", _STATE)
def statements(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether the server counts the cost of each statement (pg_stat_statements)."""
    loaded, made, there = (value == "t" for value in rows[0][:3])
    if loaded and made:
        return ok("counted")
    if not there:
        return note(
            f"{STATEMENTS} is not installed",
            "The server does not record which statements take the time.",
            "install the server's contrib modules (Debian: part of postgresql-NN)",
        )
    make = f"CREATE EXTENSION {STATEMENTS}"
    if loaded:
        return note(
            f"{STATEMENTS} is loaded, but not created in this database",
            "Statement statistics are collected, but cannot be read from this database.",
            make,
        )
    return note(
        f"{STATEMENTS} is not loaded",
        "The server does not record which statements take the time.",
        f"{_preloaded(rows[0][3])}; then {make}",
    )


def _preloaded(libraries: str | None) -> str:
    """Returns how to load pg_stat_statements in addition to the libraries that are loaded now. `libraries`: the
    libraries that are loaded now. With None, the role may not see them."""
    if libraries is None:
        return "append it to shared_preload_libraries, and restart the server"
    names = [name.strip().strip('"') for name in libraries.split(",") if name.strip()]
    # Every name is quoted separately, because PostgreSQL takes 'a, b' for the name of one library.
    return changed("shared_preload_libraries", "', '".join([*names, STATEMENTS]), restart=True)


@probe("observation", "I/O times", "show track_io_timing")
def io_times(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether the server measures how long its reads and writes take."""
    if rows[0][0] == "on":
        return ok("measured")
    return note(
        "track_io_timing is off",
        "Records, plans and pg_stat_statements contain no I/O times.",
        f"{changed('track_io_timing', 'on')}; measure the overhead with pg_test_timing",
    )


@probe("observation", "activity", "show track_activities")
def activity(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether sessions show what they are doing."""
    if rows[0][0] == "on":
        return ok("shown")
    return warning(
        "track_activities is off",
        "The server does not show wait events, so the bottleneck cannot be identified.",
        changed("track_activities", "on"),
    )


_LOGGED = """
    select name || ' = ' || setting from pg_settings
     where (name = 'log_statement' and setting = 'all') or (name = 'log_duration' and setting = 'on')
        or (name in ('log_min_duration_statement', 'auto_explain.log_min_duration') and setting = '0')
        or (name in ('log_executor_stats', 'log_parser_stats', 'log_planner_stats', 'log_statement_stats',
                     'auto_explain.log_analyze') and setting = 'on')
"""


@probe("observation", "messages", _LOGGED)
def messages(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Settings with which every statement is written to the server's log."""
    names = [str(name) for (name,) in rows]
    if not names:
        return ok("only some statements are logged, or none")
    return warning(
        ", ".join(names),
        "Every statement writes a log message or is timed step by step, which slows short statements considerably; "
        "the messages may also fill the disk.",
        "log only slow statements, e.g. " + changed("log_min_duration_statement", "1s"),
    )


@probe("observation", "build", "show debug_assertions")
def build(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether the server is a production or a debug build."""
    if rows[0][0] == "off":
        return ok("without assertions")
    return severe(
        "built with assertions",
        "With assertions, statements take several times as long.",
        "use a build without assertions",
    )


@probe("observation", "pending restart", "select name from pg_settings where pending_restart order by name")
def pending(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Settings that were changed and require a restart to take effect."""
    if not rows:
        return ok("none")
    return note(
        ", ".join(str(name) for (name,) in rows),
        "The running server does not use the configured values yet, so results will change after the next restart.",
        "restart the server before you measure",
    )
