"""Operations on a running PostgreSQL before, during and after a trial, and its counters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from ironbench.engines.administration import (
    MARK,
    REQUEST,
    Administration,
    CommitCount,
    MarkedObjects,
    ServerLocation,
    WriteCounters,
)
from ironbench.engines.dialect import listed
from ironbench.engines.examination import Examination
from ironbench.engines.postgres import copies, existing_server, facts
from ironbench.engines.postgres.dialect import CHECKPOINT
from ironbench.engines.postgres.insight import PostgresInsight
from ironbench.engines.postgres.maintenance import PostgresMaintaining
from ironbench.errors import FailureError
from ironbench.host.tree import Tree
from ironbench.model.digest import Digests, Wait
from ironbench.model.observation import Source
from ironbench.model.session import CommitCounter, Session
from ironbench.words import in_percent

SHORTEST_TIMEOUT_S = 30.0
"""Minimum of checkpoint_timeout in seconds (PostgreSQL 18 documentation, 19.5.2)."""
_RESET = "select pg_stat_reset(), (select count(pg_stat_reset_shared(name)) from unnest(array[{names}]) name)"
_SHARED = ("bgwriter", "archiver", "wal")
_CLIENTS = (
    "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' "
    "and pid <> pg_backend_pid() and application_name in (current_setting('application_name'), 'ironbench observer')"
)
_INDEXES = """
    select c.oid::regclass, i.indexrelid::regclass, i.indisprimary,
           (select string_agg(pg_get_indexdef(i.indexrelid, k, true), ', ' order by k)
              from generate_series(1, i.indnkeyatts) k),
           coalesce(pg_get_expr(i.indpred, i.indrelid), 'true')
      from pg_class c
      left join (pg_index i join pg_class x on x.oid = i.indexrelid
                        and x.relam = (select oid from pg_am where amname = 'btree'))
        on i.indrelid = c.oid and i.indisvalid
     where c.relkind = 'r' and {which}
     order by c.oid, i.indisprimary desc, i.indexrelid
"""
_IN_INDEX_ORDER = (
    "set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off; "
    "set local enable_incremental_sort = off; set local max_parallel_workers_per_gather = 0; "
)
"""Settings that force index scans, so that a whole table is read into the cache.

Sequential scans are unsuitable. A table that is larger than a quarter of shared_buffers is scanned through a ring
buffer of 256 kB, so a second scan finds almost nothing of it in the cache (PostgreSQL:
src/backend/storage/buffer/README, "Buffer Ring Replacement Strategy"). Index scans use no ring buffer.
"""
_ROUTINE = re.compile(r"create or replace (?:function|procedure) (\w+)", re.IGNORECASE)
_TABLES = f"""
    select c.oid::regclass, pg_total_relation_size(c.oid)
           + coalesce((select sum(pg_total_relation_size(i.inhrelid)) from pg_inherits i where i.inhparent = c.oid), 0)
      from pg_class c
      join pg_description d on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = 0
     where c.relkind in ('r', 'p') and d.description = '{MARK}'
     order by c.oid
"""
_ROUTINES = f"""
    select p.oid::regprocedure
      from pg_proc p
      join pg_description d on d.objoid = p.oid and d.classoid = 'pg_proc'::regclass
     where d.description = '{MARK}'
     order by p.oid
"""
_FOREIGN = f"""
    select p.oid::regprocedure from pg_proc p
     where p.proname in ({{names}}) and p.pronamespace = current_schema()::regnamespace
       and obj_description(p.oid, 'pg_proc') is distinct from '{MARK}'
     order by p.oid
"""
_LEAVING_S = 3.0
_BUSY = """
    select datname, pid from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and application_name like 'ironbench%'
"""


class PostgresAdministration(Administration):
    maintaining = PostgresMaintaining()
    marks = True
    insight = PostgresInsight()

    @property
    def digests(self) -> Callable[[Session, float, bool, Wait], Digests]:
        from ironbench.engines.postgres.digests import watch

        return watch

    @property
    def examination(self) -> Examination:
        from ironbench.engines.postgres.probes import EXAMINATION

        return EXAMINATION

    def mark(self, session: Session, tables: Sequence[str]) -> None:
        if tables:
            session.query("; ".join(f"comment on table {name} is '{MARK}'" for name in tables))

    def marked(self, statement: str) -> str:
        routines = _ROUTINE.findall(statement)
        return "; ".join([statement, *(f"comment on routine {name} is '{MARK}'" for name in routines)])

    def unmarked_routines(self, session: Session, statements: Sequence[str]) -> Sequence[str]:
        names = [name for statement in statements for name in _ROUTINE.findall(statement)]
        return [row[0] or "" for row in session.query(_FOREIGN.format(names=listed(names)))] if names else []

    def made(self, session: Session) -> MarkedObjects:
        ((database, started),) = session.query("select current_database(), pg_postmaster_start_time()")
        databases = copies.made(session)
        return MarkedObjects(
            database or "",
            {name or "": int(size or 0) for name, size in session.query(_TABLES)},
            tuple(row[0] or "" for row in session.query(_ROUTINES)),
            started or "",
            {name: size for name, (size, _) in databases.items()},
            {name: key for name, (_, key) in databases.items() if key},
        )

    def remove_made(self, session: Session) -> MarkedObjects:
        made = self.made(session)
        # The backend of a session may continue to exist for a short time after the session has ended.
        deadline = time.monotonic() + _LEAVING_S
        while (busy := _using(session, made.databases)) and time.monotonic() < deadline:
            time.sleep(0.1)
        for name, process in busy:
            raise FailureError(
                f"database {name}",
                f"in use by another ironbench process (server process {process})",
                "wait until it has finished",
            )
        # CASCADE is not used, because it would also drop the user's objects that depend on these tables. Statements
        # that are sent together form one transaction (PostgreSQL 18 documentation, 54.2.2.1).
        drops = [f"drop table {', '.join(made.tables)}"] if made.tables else []
        drops += [f"drop routine {', '.join(made.routines)}"] if made.routines else []
        if drops:
            session.query("; ".join(drops))
        for name in made.databases:
            session.query(f"drop database {name}")
        return made

    def require_rights(self, session: Session, needs: Collection[tuple[str, str]]) -> None:
        existing_server.require_rights(session, needs)

    def locate(self, session: Session, machine: Tree) -> ServerLocation:
        return existing_server.locate(session, machine)

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        return f"{_warm_by_index(session, tables)} indexes read in key order"

    def hits(self, session: Session) -> Mapping[str, int]:
        facts.flush_counts(session)  # otherwise, the last reads of this session would be missing
        sql = "select sum(blks_hit), sum(blks_read) from pg_stat_database where datname = current_database()"
        hit, read = session.query(sql)[0]
        return {"hit": int(hit or 0), "read": int(read or 0)}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """Resets the statistics counters (PostgreSQL 18 documentation, 27.2.27)."""
        version = _version(session)
        names = [*_SHARED, *(["io"] if version >= 160000 else []), *(["checkpointer"] if version >= 170000 else [])]
        session.query(_RESET.format(names=", ".join(f"'{name}'" for name in names)))
        return {"statistics": "reset"}

    def vacuum_dead_tuples(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """Vacuums before the trial, because autovacuum checks tables only once a minute (`autovacuum_naptime`, 19.10).
        That is too late for a short trial, and it disturbs the measurement of a longer one. For the same reason,
        pgbench vacuums before every run (option `-n`)."""
        try:
            vacuumed = _with_dead_tuples(session, tables, most)
            for table in vacuumed:
                session.query(f"vacuum {table}")
        except FailureError as error:
            # A trial with dead tuples is valid, so the trial continues. If the engine has died, the trial will report
            # it.
            return {"garbage": f"not vacuumed: {error.cause}"}
        return {"garbage": f"vacuumed {', '.join(vacuumed)}" if vacuumed else f"below {in_percent(most)}"}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool, by_clock: bool = True
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Arranges for checkpoints at a fixed interval. For long intervals, the timer of a server that ironbench
        started is used, because the server then spreads the writes over the interval. Otherwise, checkpoints are
        requested with CHECKPOINT, which writes at full speed (PostgreSQL 18 documentation)."""
        if own and by_clock and interval_s >= SHORTEST_TIMEOUT_S:
            session.query(f"alter system set checkpoint_timeout = '{round(interval_s)}s'")
            session.query("select pg_reload_conf()")
            session.query(CHECKPOINT)  # the first interval starts with this checkpoint
            return (), {"checkpoints": f"every {round(interval_s)} s (checkpoint_timeout)"}
        if own:
            session.query(CHECKPOINT)
        how = f"one checkpoint requested every {interval_s:.3g} s (CHECKPOINT, at full speed)"
        return (Source(REQUEST, "request", CHECKPOINT, interval_s),), {"checkpoints": how}

    checkpoint_setting = "checkpoint_timeout"

    def commits(self, session: Session) -> CommitCount | None:
        """Returns the number of commits. An autovacuum worker reports each table as soon as it is processed, but
        reports its commits only when it exits. Tables of workers that are still running are therefore counted as
        `unreported`."""
        facts.flush_counts(session)
        assert isinstance(session, CommitCounter)
        own = session.commits
        (row,) = session.query(
            "select xact_commit, "
            "(select coalesce(sum(autovacuum_count + autoanalyze_count), 0) from pg_stat_all_tables), "
            "(select setting from pg_settings where name = 'autovacuum_naptime'), "
            "(select count(*) filter (where last_autovacuum >= began) + "
            "count(*) filter (where last_autoanalyze >= began) from pg_stat_all_tables, "
            "(select min(backend_start) as began from pg_stat_activity "
            "where backend_type = 'autovacuum worker' and datname = current_database()) as running) "
            "from pg_stat_database where datname = current_database()"
        )
        committed, maintained, rest_s, unreported = (int(value or 0) for value in row)
        return CommitCount(committed, own, maintained, unreported, float(max(1, rest_s)))

    def clients(self, session: Session) -> int:
        return int(session.query(_CLIENTS)[0][0] or 0)

    def written(self, session: Session) -> WriteCounters | None:
        """Returns the write counters (PostgreSQL 18 documentation, 27.2). Since version 17, checkpoints have a separate
        view. Since version 18, pg_stat_io counts WAL flushes."""
        version = _version(session)
        flushes = "(select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal')"
        if version < 180000:
            flushes = "(select wal_sync from pg_stat_wal)"
        done, pages, view = "num_done", "buffers_written", "pg_stat_checkpointer"
        if version < 180000:
            done = "num_timed + num_requested"
        if version < 170000:
            done, pages, view = "checkpoints_timed + checkpoints_req", "buffers_checkpoint", "pg_stat_bgwriter"
        log = session.query("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        sql = f"select {flushes}, {done}, {pages} * current_setting('block_size')::bigint from {view}"
        flushed, checkpoints, written = (int(value or 0) for value in session.query(sql)[0])
        return WriteCounters(int(log[0][0] or 0), flushed, checkpoints, written)

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        sql = f"select {log_bytes} - (redo_lsn - '0/0'::pg_lsn) from pg_control_checkpoint()"
        return int(session.query(sql)[0][0] or 0)


def _using(session: Session, databases: Mapping[str, int]) -> Sequence[tuple[str | None, ...]]:
    """Returns other sessions that use the objects to be removed, each with its database and process id. These are
    ironbench's sessions in the current database, sessions of any client in `databases`, and sessions of ironbench
    processes that may start copying one of these databases at any time (`copies.KEEPER`)."""
    users = session.query(_BUSY)
    if not databases:
        return users
    return users + session.query(
        f"select datname, pid from pg_stat_activity where application_name = '{copies.KEEPER}' "
        f"or datname in ({listed(list(databases))}) and backend_type = 'client backend'"
    )


def _version(session: Session) -> int:
    return int(session.query("show server_version_num")[0][0] or 0)


def _with_dead_tuples(session: Session, tables: Sequence[str], most: float) -> list[str]:
    names = ", ".join("'" + table.replace("'", "''") + "'" for table in tables)
    rows = session.query(
        "select relname from pg_stat_user_tables "
        f"where relname in ({names}) and pg_table_is_visible(relid) and n_dead_tup > {most} * n_live_tup"
    )
    return sorted(row[0] for row in rows if row[0])


def _warm_by_index(session: Session, tables: tuple[str, ...]) -> int:
    """Reads the tables (default: all) in the order of each index. Returns the number of indexes. Raises
    FailureError."""
    names = ", ".join(f"'{name}'" for name in tables)
    which = f"c.relname in ({names}) and pg_table_is_visible(c.oid)" if tables else "c.oid >= 16384"
    done = 0
    seen: set[str | None] = set()
    for table, index, _, columns, predicate in session.query(_INDEXES.format(which=which)):
        if index is None or columns is None:
            session.query(f"select count(*) from {table}")
            continue
        # The scan of a table's first index also reads the table's rows. The scans of the other indexes read only the
        # index itself.
        what = "*" if table not in seen else columns
        only = "off" if table not in seen else "on"
        seen.add(table)
        # Statements that are sent together form one transaction. An error ends it, so no transaction stays open.
        session.query(
            f"{_IN_INDEX_ORDER} set local enable_indexonlyscan = {only}; "
            f"select count(t.*) from (select {what} from {table} where {predicate} order by {columns}) t"
        )
        done += 1
    return done
