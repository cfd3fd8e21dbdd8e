"""What is done to a running PostgreSQL around a trial, and what it counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ironbench.engines.administration import REQUEST, Administration, Made, Written
from ironbench.engines.postgres import made, rights, warming
from ironbench.engines.postgres.maintenance import PostgresMaintaining
from ironbench.errors import FailureError
from ironbench.model.observation import Source
from ironbench.model.session import Session
from ironbench.words import in_percent

SHORTEST_TIMEOUT_S = 30.0
"""The least that checkpoint_timeout takes (PostgreSQL 18 documentation, 19.5.2)."""
_RESET = "select pg_stat_reset(), (select count(pg_stat_reset_shared(name)) from unnest(array[{names}]) name)"
_SHARED = ("bgwriter", "archiver", "wal")
_CLIENTS = (
    "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' "
    "and pid <> pg_backend_pid() and application_name in (current_setting('application_name'), 'ironbench observer')"
)


class PostgresAdministration(Administration):
    maintaining = PostgresMaintaining()
    marks = True

    def mark(self, session: Session, tables: Sequence[str], statements: Sequence[str] = ()) -> None:
        made.mark(session, tables, statements)

    def made(self, session: Session) -> Made:
        return made.found(session)

    def remove_made(self, session: Session) -> Made:
        return made.removed(session)

    def require_rights(self, session: Session, wanted: Collection[tuple[str, str]]) -> None:
        rights.require(session, wanted)

    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        return f"{warming.by_index(session, tables)} indexes read in their order"

    def hits(self, session: Session) -> Mapping[str, int]:
        session.query("select pg_stat_force_next_flush()")  # what this session itself has read so far
        sql = "select sum(blks_hit), sum(blks_read) from pg_stat_database where datname = current_database()"
        hit, read = session.query(sql)[0]
        return {"hit": int(hit or 0), "read": int(read or 0)}

    def reset_statistics(self, session: Session) -> Mapping[str, str]:
        """PostgreSQL 18 documentation, 27.2.27."""
        version = _version(session)
        names = [*_SHARED, *(["io"] if version >= 160000 else []), *(["checkpointer"] if version >= 170000 else [])]
        session.query(_RESET.format(names=", ".join(f"'{name}'" for name in names)))
        return {"statistics": "reset"}

    def remove_garbage(self, session: Session, tables: Sequence[str], most: float) -> Mapping[str, str]:
        """PostgreSQL looks for garbage once a minute (`autovacuum_naptime`, 19.10), longer than a short trial and in
        the middle of some. pgbench vacuums before every run for the same reason (pgbench `-n`)."""
        try:
            vacuumed = _littered(session, tables, most)
            for table in vacuumed:
                session.query(f"vacuum {table}")
        except FailureError as error:
            # A trial on littered tables is still a trial; an engine that died will say so when it is driven.
            return {"garbage": f"left where it was: {error.cause}"}
        return {"garbage": f"vacuumed {', '.join(vacuumed)}" if vacuumed else f"below {in_percent(most)}"}

    def pace_checkpoints(
        self, session: Session, interval_s: float, own: bool
    ) -> tuple[tuple[Source, ...], Mapping[str, str]]:
        """Long intervals are the server's own business, which spreads the writing over them; shorter ones than it
        knows are requested, and written at full speed (CHECKPOINT, PostgreSQL 18 documentation)."""
        if own and interval_s >= SHORTEST_TIMEOUT_S:
            session.query(f"alter system set checkpoint_timeout = '{round(interval_s)}s'")
            session.query("select pg_reload_conf()")
            session.query("checkpoint")  # the next one comes an interval after this one
            return (), {"checkpoints": f"every {round(interval_s)} s (checkpoint_timeout)"}
        if own:
            session.query("checkpoint")
        how = f"requested every {interval_s:.3g} s (CHECKPOINT, at full speed)"
        return (Source(REQUEST, "request", "checkpoint", interval_s),), {"checkpoints": how}

    checkpoint_setting = "checkpoint_timeout"

    def checkpoint_settings(self, interval_s: float) -> Mapping[str, str]:
        return {self.checkpoint_setting: f"{interval_s:.0f}s"} if interval_s >= SHORTEST_TIMEOUT_S else {}

    def commits(self, session: Session) -> tuple[int, int] | None:
        session.query("select pg_stat_force_next_flush()")
        found = session.query("select xact_commit from pg_stat_database where datname = current_database()")
        # The second statement is not yet in the count it reads.
        return int(found[0][0] or 0), 1

    def clients(self, session: Session) -> int:
        return int(session.query(_CLIENTS)[0][0] or 0)

    def written(self, session: Session) -> Written | None:
        """PostgreSQL 18 documentation, 27.2: checkpoints have a view of their own since 17, pg_stat_io has flushes
        since 18."""
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
        return Written(int(log[0][0] or 0), flushed, checkpoints, written)

    def log_since_checkpoint(self, session: Session, log_bytes: int) -> int:
        sql = f"select {log_bytes} - (redo_lsn - '0/0'::pg_lsn) from pg_control_checkpoint()"
        return int(session.query(sql)[0][0] or 0)


def _version(session: Session) -> int:
    return int(session.query("show server_version_num")[0][0] or 0)


def _littered(session: Session, tables: Sequence[str], most: float) -> list[str]:
    names = ", ".join("'" + table.replace("'", "''") + "'" for table in tables)
    rows = session.query(
        "select relname from pg_stat_user_tables "
        f"where relname in ({names}) and pg_table_is_visible(relid) and n_dead_tup > {most} * n_live_tup"
    )
    return sorted(row[0] for row in rows if row[0])
