"""What a server is: version, build, every setting. The same server gives the same facts at every start."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ironbench.model.session import Row

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
"""Where a server of ours happens to listen this time says nothing about the system."""

_NOT_CHOSEN = ("default", "override", "client", "session")
"""Sources of values that nobody chose for this server."""

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
    """Version, settings with their sources, extensions of the database, configure flags, what the build lacks.

    JSON-able, without secrets. `settings_seen` says whether the role may see every setting: pg_settings leaves out
    those that are for superusers and members of pg_read_all_settings (PostgreSQL 18 documentation, 53.25).
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


def lacking(build: dict[str, Any]) -> list[str]:
    """What this build cannot do that a full one can; a reader must know it before comparing."""
    enums = build.get("enums") or {}
    missing = [name for key, name in (("tls", "TLS"), ("icu", "ICU"), ("jit", "JIT")) if not build.get(key)]
    if "lz4" not in (enums.get("default_toast_compression") or []):
        missing.append("lz4")
    if "zstd" not in (enums.get("wal_compression") or []):
        missing.append("zstd")
    if "io_uring" not in (enums.get("io_method") or []):
        missing.append("io_uring")
    if "pg_stat_statements" not in (build.get("available") or []):
        missing.append("contrib")
    return missing


def _one(query: Query, sql: str) -> str:
    rows = query(sql)
    return (rows[0][0] or "") if rows else ""


def _configure(query: Query) -> str:
    """Configure flags, which only some roles may see: asked first, so that no refusal stands in the server's log."""
    may = _one(
        query,
        "SELECT coalesce(has_table_privilege(to_regclass('pg_catalog.pg_config'), 'select'), false)"
        " AND coalesce(has_function_privilege(to_regprocedure('pg_catalog.pg_config()')::oid, 'execute'), false)",
    )
    return _one(query, "SELECT setting FROM pg_config WHERE name = 'CONFIGURE'") if may == "t" else ""
