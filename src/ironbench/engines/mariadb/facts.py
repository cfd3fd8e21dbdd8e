"""Facts about a server: version, settings with their origin, durability. The facts of a server are the same after every
restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironbench.model.session import Row

Query = Callable[[str], list[Row]]

_INCIDENTAL = frozenset(
    {
        *("socket", "pid_file", "hostname", "server_uid", "timestamp", "pseudo_thread_id", "last_insert_id"),
        *("rand_seed1", "rand_seed2", "identity", "insert_id", "warning_count", "error_count", "last_gtid"),
        *("gtid_binlog_pos", "gtid_binlog_state", "gtid_current_pos", "gtid_slave_pos", "in_transaction"),
        "innodb_buffer_pool_load_now",
    }
)
"""Variables that differ between starts of the same server, or change with every statement."""
_MAY_HOLD_SECRETS = frozenset({"init_connect", "wsrep_sst_auth", "wsrep_sst_receive_address"})
_NOT_CHOSEN = ("COMPILE-TIME", "AUTO", "ENVIRONMENT")
DURABILITY = (
    *("innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method", "sync_binlog", "log_bin"),
    *("innodb_checksum_algorithm",),
)
_COUNTERS = {
    "commits": "COM_COMMIT",
    "rollbacks": "COM_ROLLBACK",
    "rows_read": "INNODB_ROWS_READ",
    "rows_inserted": "HANDLER_WRITE",  # of all storage engines; newer versions do not count InnoDB's rows
    "rows_updated": "HANDLER_UPDATE",
    "rows_deleted": "HANDLER_DELETE",
    "pages_hit": "INNODB_BUFFER_POOL_READ_REQUESTS",
    "pages_read": "INNODB_BUFFER_POOL_READS",
    "log_bytes": "INNODB_OS_LOG_WRITTEN",
    "log_writes": "INNODB_LOG_WRITES",
    "data_reads": "INNODB_DATA_READS",
    "data_writes": "INNODB_DATA_WRITES",
    "data_syncs": "INNODB_DATA_FSYNCS",
    "temp_files": "CREATED_TMP_FILES",
    "temp_disk_tables": "CREATED_TMP_DISK_TABLES",
    "lock_waits": "INNODB_ROW_LOCK_WAITS",
    "deadlocks": "INNODB_DEADLOCKS",
}


def read(query: Query) -> dict[str, Any]:
    """Returns version, settings with their origin, and durability settings. The result is JSON-compatible and contains
    no secrets."""
    settings = {
        str(name).lower(): value or ""
        for name, value in query("show global variables")
        if str(name).lower() not in _INCIDENTAL | _MAY_HOLD_SECRETS
    }
    return {
        "engine": "mariadb",
        "version": settings.get("version", ""),
        "version_text": f"{settings.get('version', '')} {settings.get('version_comment', '')}".strip(),
        "settings": settings,
        "changed": _changed(query) if "MariaDB" in settings.get("version", "") else {},
        "durability": {name: settings[name] for name in DURABILITY if name in settings},
        "isolation": settings.get("tx_isolation") or settings.get("transaction_isolation", ""),
        "block_bytes": int(settings.get("innodb_page_size", "0")),
    }


def _changed(query: Query) -> dict[str, str]:
    """Returns the origin of each setting that was configured. Not called for MySQL, where only some roles can read the
    origin."""
    rows = query(
        "select lower(variable_name), lower(global_value_origin) from information_schema.system_variables "
        f"where global_value_origin not in ({', '.join(repr(one) for one in _NOT_CHOSEN)})"
    )
    return {str(name): str(origin) for name, origin in rows if name not in _INCIDENTAL}


def status(query: Query) -> dict[str, str]:
    """Returns every global status variable by its name in upper case."""
    return {str(name).upper(): value or "" for name, value in query("show global status")}


def read_counters(query: Query) -> dict[str, int]:
    """Returns the counters that this version has. `commits` and `rollbacks` count statements, not transactions."""
    known = status(query)
    return {name: int(known[variable]) for name, variable in _COUNTERS.items() if known.get(variable, "").isdigit()}
