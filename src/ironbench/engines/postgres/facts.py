"""Facts about a server: version, build, all settings. The facts of a server are the same after every restart."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from ironbench.model.session import Row, Session

Query = Callable[[str], list[Row]]

_MAY_HOLD_SECRETS = (
    "archive_cleanup_command",
    "archive_command",
    "primary_conninfo",
    "recovery_end_command",
    "restore_command",
    "ssl_passphrase_command",
)
_INCIDENTAL = ("unix_socket_directories", "port", "external_pid_file")
"""Settings that contain the address of the server. If ironbench starts the server, the address is random and not a
property of the system."""

_NOT_CHOSEN = ("default", "override", "client", "session")
"""Values of pg_settings.source for settings that were not chosen for this server."""

_SETTINGS = f"""
    SELECT name, current_setting(name, true), source, pending_restart
      FROM pg_settings
     WHERE name <> ALL ('{{{",".join(_MAY_HOLD_SECRETS + _INCIDENTAL)}}}')
     ORDER BY name COLLATE "C"
"""
_BUILD = """
    SELECT json_build_object(
        'jit', pg_jit_available(),
        'icu', EXISTS (SELECT FROM pg_collation WHERE collname LIKE '%-x-icu'),
        'tls', coalesce(current_setting('ssl_library', true), '') <> '',
        'installed', (SELECT json_agg(extname || ' ' || extversion ORDER BY extname) FROM pg_extension),
        'available', (SELECT json_agg(name ORDER BY name) FROM pg_available_extensions),
        'every setting', pg_has_role('pg_read_all_settings', 'usage'),
        'enums', (SELECT json_object_agg(name, enumvals) FROM pg_settings
                   WHERE name IN ('wal_compression', 'default_toast_compression', 'io_method')))
"""


def read(query: Query) -> dict[str, Any]:
    """Returns version, settings with their sources, extensions of the database, configure flags, and missing build
    features. The result is JSON-compatible and contains no secrets.

    `settings_seen` in the result tells whether the role can see all settings. Only superusers and members of
    pg_read_all_settings can see all of pg_settings (PostgreSQL 18 documentation, 53.25).
    """
    rows = query(_SETTINGS)
    settings = {str(name): value or "" for name, value, _, _ in rows}
    sources = {str(name): str(source) for name, _, source, _ in rows if source not in _NOT_CHOSEN}
    build = json.loads(_one(query, _BUILD) or "{}")
    return {
        "engine": "postgres",
        "version": settings.get("server_version", ""),
        "server_version_num": int(settings.get("server_version_num", "0")),
        "version_text": _one(query, "SELECT version()"),
        "settings": settings,
        "settings_seen": "all" if build.get("every setting") else "those that every role may see",
        "changed": sources,
        "configure": _configure(query),
        "lacks": lacking(build),
        "extensions": build.get("installed") or [],
        "observable": {name: settings.get(name, "") for name in ("track_io_timing", "track_wal_io_timing")},
        "encoding": _one(
            query, "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()"
        ),
        "block_bytes": int(settings.get("block_size", "0")),
    }


BUILD_FEATURES = {"lz4": "default_toast_compression", "zstd": "wal_compression", "io_uring": "io_method"}
"""For each optional feature of a build, the setting that uses it (PostgreSQL 18 documentation, 17.3.3)."""


def lacking(build: dict[str, Any]) -> list[str]:
    """Returns the optional features that this build lacks although its version can have them. A comparison must mention
    them."""
    enums = build.get("enums") or {}
    missing = [name for key, name in (("tls", "TLS"), ("icu", "ICU"), ("jit", "JIT")) if not build.get(key)]
    for feature, setting in BUILD_FEATURES.items():
        # There are no values if this version lacks the setting, or if the setting is not an enum.
        values = enums.get(setting)
        if values and feature not in values:
            missing.append(feature)
    if "pg_stat_statements" not in (build.get("available") or []):
        missing.append("contrib")
    return missing


def _one(query: Query, sql: str) -> str:
    rows = query(sql)
    return (rows[0][0] or "") if rows else ""


def _configure(query: Query) -> str:
    """Returns the configure flags. Returns "" if the role may not see them. The role's privileges are checked first,
    because an error would be written to the server's log."""
    may = _one(
        query,
        "SELECT coalesce(has_table_privilege(to_regclass('pg_catalog.pg_config'), 'select'), false)"
        " AND coalesce(has_function_privilege(to_regprocedure('pg_catalog.pg_config()')::oid, 'execute'), false)",
    )
    return _one(query, "SELECT setting FROM pg_config WHERE name = 'CONFIGURE'") if may == "t" else ""


_DATABASE = {
    "commits": "xact_commit",
    "rollbacks": "xact_rollback",
    "blocks_read": "blks_read",
    "blocks_hit": "blks_hit",
    "rows_returned": "tup_returned",
    "rows_fetched": "tup_fetched",
    "rows_inserted": "tup_inserted",
    "rows_updated": "tup_updated",
    "rows_deleted": "tup_deleted",
    "temp_files": "temp_files",
    "temp_bytes": "temp_bytes",
    "deadlocks": "deadlocks",
    "sessions_killed": "sessions_killed",
}
_LOG = {"wal_records": "wal_records", "wal_full_page_images": "wal_fpi", "wal_bytes": "wal_bytes"}
_CHECKPOINTS = {
    "checkpoints_timed": "num_timed",
    "checkpoints_requested": "num_requested",
    "checkpoint_blocks": "buffers_written",
    "checkpoint_write_ms": "write_time",
    "checkpoint_sync_ms": "sync_time",
}
_CHECKPOINTS_BEFORE_17 = {
    "checkpoints_timed": "checkpoints_timed",
    "checkpoints_requested": "checkpoints_req",
    "checkpoint_blocks": "buffers_checkpoint",
    "checkpoint_write_ms": "checkpoint_write_time",
    "checkpoint_sync_ms": "checkpoint_sync_time",
}
_SOURCES = (
    ("pg_stat_database WHERE datname = current_database()", _DATABASE),
    ("pg_stat_wal", _LOG),
    ("pg_stat_checkpointer", _CHECKPOINTS),
    ("pg_stat_bgwriter", _CHECKPOINTS_BEFORE_17),
)


def read_counters(query: Query) -> dict[str, int]:
    """Returns the counters that this version has and this role can see. Commits and blocks are those of the current
    database."""
    counters: dict[str, int] = {}
    for source, names in _SOURCES:
        view, _, condition = source.partition(" ")
        # Older versions have fewer views. The role's privileges are checked first, because an error would be written to
        # the server's log.
        may = query(f"SELECT coalesce(has_table_privilege(to_regclass('pg_catalog.{view}'), 'select'), false)")
        if may != [("t",)]:
            continue
        rows = query(f"SELECT row_to_json(s) FROM {view} s {condition}")
        counters |= _counters(json.loads(rows[0][0] or "{}"), names) if rows else {}
    return counters


_FLUSH = "pg_stat_force_next_flush"
_FLUSHES: WeakKeyDictionary[Session, bool] = WeakKeyDictionary()
"""For each session, whether its server can be asked to report statistics at once."""
REPORTED_S = 0.6
"""Maximum delay of statistics in seconds if they cannot be requested. Before version 15, a backend reports after a
statement, but at most every 0.5 s (PGSTAT_STAT_INTERVAL)."""


def flush_counts(session: Session) -> None:
    """Makes the server's statistics include everything this session has done so far."""
    if session not in _FLUSHES:
        # The function is checked first, so that no error is written to the server's log.
        _FLUSHES[session] = session.query(f"select 1 from pg_proc where proname = '{_FLUSH}'") != []
    if _FLUSHES[session]:
        # The statement reads a table, because a backend reports its commits only together with the statistics of a
        # table.
        session.query(f"select {_FLUSH}() from (select from pg_database limit 1) scanned")
    else:
        time.sleep(REPORTED_S)
        session.query("select 1")


def _counters(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, int]:
    return {name: int(row[column]) for name, column in names.items() if row.get(column) is not None}
