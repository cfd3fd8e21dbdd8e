"""Probes of settings: durability, memory, redo log, and costs on every statement."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.engines.examination import ExaminedServer, Readings, connections_reading
from ironbench.engines.mariadb.probes import PROCESS, changed, of_status, probe
from ironbench.model.diagnosis import note, ok, severe, warning
from ironbench.model.session import Row
from ironbench.units import memory, span, stored
from ironbench.words import counted

_DEFAULT_POOL = 128 << 20
_LEAST_SHARE, _MOST_SHARE = 0.25, 0.85
_HOUR_S = 3600.0


@probe("durability", "commits", "select @@global.innodb_flush_log_at_trx_commit")
def commits(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether a commit waits until the redo log is durable."""
    value = rows[0][0]
    if value in ("1", "3"):
        return ok(f"innodb_flush_log_at_trx_commit is {value}")
    return warning(
        f"innodb_flush_log_at_trx_commit is {value}",
        "An operating system crash loses the commits of the last second, and commits do not wait for the disk: "
        "throughput is not comparable with a fully durable server.",
        changed("innodb_flush_log_at_trx_commit", "1"),
    )


@probe("durability", "doublewrite", "select @@global.innodb_doublewrite")
def doublewrite(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether partially written (torn) pages can be restored."""
    if rows[0][0] not in ("0", "OFF"):
        return ok("on")
    return severe(
        "innodb_doublewrite is off",
        "A crash during a write can leave torn pages, unless the device writes pages atomically. The server writes "
        "half as many pages as a safe server, so it looks faster.",
        "innodb_doublewrite = ON in the server's configuration; restart the server",
    )


@probe("durability", "binary log", "select @@global.log_bin, @@global.sync_binlog")
def binary_log(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether the binary log contains everything that was committed."""
    kept, sync = rows[0]
    if kept in ("0", "OFF"):
        return ok("off")
    if sync == "1":
        return ok("synced at every commit")
    return note(
        f"sync_binlog is {sync}",
        "After an operating system crash, replicas may have different data than this server. Commits skip one sync.",
        changed("sync_binlog", "1"),
    )


_POOL = """
    select @@global.innodb_buffer_pool_size, sum(data_length + index_length)
      from information_schema.tables where engine = 'InnoDB'
"""


@probe("memory", "buffer pool", _POOL)
def buffer_pool(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Size of the buffer pool, compared with the data and the machine's memory."""
    pool, data = (float(value or 0) for value in rows[0])
    seen = f"innodb_buffer_pool_size is {memory(pool)}, the InnoDB tables {stored(data)}"
    if data <= pool:
        return ok(f"{seen}: all data fit")
    small = (
        "InnoDB reads data from disk that memory could cache, because InnoDB bypasses the page cache and uses "
        "only this pool."
    )
    if server.memory_bytes is None:
        if pool > _DEFAULT_POOL:
            return ok(seen)
        return note(f"{seen} (the default)", small, "set it to half to three quarters of the server's memory")
    share, seen = pool / server.memory_bytes, f"{seen}, the machine's memory {memory(server.memory_bytes)}"
    better = changed("innodb_buffer_pool_size", str(server.memory_bytes // 2 >> 20 << 20))
    if share < _LEAST_SHARE:
        return warning(seen, small, better)
    if share > _MOST_SHARE:
        return warning(
            seen, "Little memory is left for connections and sorts, so the server may swap or be killed.", better
        )
    return ok(seen)


_SPILLS = """
    select variable_name, variable_value from {status}
     where variable_name in ('CREATED_TMP_TABLES', 'CREATED_TMP_DISK_TABLES', 'UPTIME')
"""


@probe("memory", "temporary tables", of_status(_SPILLS))
def spills(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Temporary tables that did not fit into memory."""
    known = {str(name).upper(): float(value or 0) for name, value in rows}
    disk, every = known.get("CREATED_TMP_DISK_TABLES", 0.0), known.get("CREATED_TMP_TABLES", 0.0)
    seen = (
        f"{counted(disk, 'table')} of {counted(every, 'temporary table')} were written to disk in "
        f"{span(known.get('UPTIME', 0.0))}"
    )
    if disk < 100 or disk < 0.25 * every:
        return ok(seen)
    return note(
        seen,
        "Statements write temporary tables to disk, although the tables could fit into memory.",
        "raise both tmp_table_size and max_heap_table_size, or let statements sort fewer and shorter columns",
    )


_LOG = """
    select variable_name, variable_value from {status}
     where variable_name in ('INNODB_OS_LOG_WRITTEN', 'INNODB_REDO_LOG_CAPACITY_RESIZED', 'UPTIME')
    union all select variable_name, variable_value from {variables}
     where variable_name in ('INNODB_LOG_FILE_SIZE', 'INNODB_LOG_FILES_IN_GROUP')
"""


@probe("writing", "redo log size", of_status(_LOG))
def room(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """How long the server can write until the redo log is full."""
    known = {str(name).upper(): float(value or 0) for name, value in rows}
    # Since MySQL 8.0.30, one setting for the total size of the redo log replaces the older settings (MySQL manual,
    # "Redo Log").
    capacity = known.get("INNODB_REDO_LOG_CAPACITY_RESIZED")
    files = known.get("INNODB_LOG_FILES_IN_GROUP", 1.0)  # MariaDB's redo log is one file
    size = files * known.get("INNODB_LOG_FILE_SIZE", 0.0) if capacity is None else capacity
    rate = known.get("INNODB_OS_LOG_WRITTEN", 0.0) / max(known.get("UPTIME", 0.0), 1.0)
    if not rate:
        return ok("nothing has been written so far")
    lasts_s = size / rate
    seen = f"the redo log size is {memory(size)}, enough for {span(lasts_s)} at the average {stored(rate)}/s"
    if lasts_s >= _HOUR_S / 2:
        return ok(seen)
    wanted = int(rate * _HOUR_S / (1 if capacity is not None else files)) >> 20
    way = f"innodb_log_file_size = {wanted}M in the server's configuration"
    if capacity is not None:
        way = changed("innodb_redo_log_capacity", str(wanted << 20))
    return warning(
        seen,
        "When the redo log is nearly full, InnoDB flushes dirty pages as fast as it can, and all writers wait for it.",
        f"{way} (enough for an hour)",
    )


@probe("observation", "messages", "select @@global.general_log, @@global.slow_query_log, @@global.long_query_time")
def messages(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Settings with which every statement is written to a log file."""
    general, slow, from_s = rows[0]
    if general in ("1", "ON"):
        seen, better = "general_log is on", changed("general_log", "OFF")
    elif slow in ("1", "ON") and float(from_s or 0) == 0:
        seen, better = "the slow query log records every statement", changed("long_query_time", "1")
    else:
        return ok("only some statements are logged, or none")
    return warning(seen, "Every statement writes a log line, which slows short statements considerably.", better)


_CACHE = "show global variables like 'query_cache_type'"


@probe("memory", "query cache", _CACHE)
def query_cache(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Whether results are cached by the text of their statement."""
    if not rows or rows[0][1] in ("OFF", "0"):
        return ok("off")
    return warning(
        "query_cache_type is on",
        "Every statement takes the query cache's global lock, and a trial whose queries are answered from the cache "
        "measures only the cache.",
        changed("query_cache_type", "OFF"),
    )


_CONNECTIONS = """
    select variable_value, @@global.max_connections from {status}
     where variable_name = 'THREADS_CONNECTED'
"""


@probe("sessions", "connections", of_status(_CONNECTIONS))
def connections(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Number of connections, compared with the maximum."""
    used, most = (int(value or 0) for value in rows[0])
    return connections_reading(used, most, changed("max_connections", str(2 * most)))


_LONG = """
    select trx_mysql_thread_id, timestampdiff(second, trx_started, now()), trx_query is null
      from information_schema.innodb_trx where trx_started < now() - interval 1 minute order by trx_started
"""


@probe("sessions", "long transactions", _LONG, PROCESS)
def long(rows: Sequence[Row], server: ExaminedServer) -> Readings:
    """Transactions that have been open for a minute or longer."""
    if not rows:
        return ok("none longer than a minute")
    thread, age, idle = rows[0]
    doing = "idle" if idle == "1" else "running"
    reading = severe if idle == "1" and float(age or 0) >= _HOUR_S else warning
    return reading(
        f"{counted(len(rows), 'transaction')}, the oldest open for {span(float(age or 0))} (thread {thread}, {doing})",
        "InnoDB keeps old row versions for such a transaction: the undo history grows, and reads of changed rows "
        "become slower.",
        f"end the transaction, or KILL {thread}",
    )
