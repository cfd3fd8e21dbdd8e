"""What a population wrote to the log, and what it left to be done after its last commit.

A system that only postpones looks fast: rows are committed when the log is safe, while pages of the table wait in
memory for a checkpoint, and the log since the last one cannot be recycled. So a checkpoint is asked for right after the
end and timed: it settles the debt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ironbench.errors import FailureError
from ironbench.model.session import Session
from ironbench.workloads.base import one_row
from ironbench.workloads.commits import wait_for_clients
from ironbench.workloads.wide import TABLE, Wide

REPORT_S = 1.0
"""How long the server may take to show a checkpoint in its statistics."""
_REFUSED = "42501"
"""insufficient_privilege: on somebody's server we may not be allowed to ask for a checkpoint."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Of PostgreSQL, since its statistics began."""

    log_at: int
    """Bytes of log ever written."""
    flushes: int
    checkpoints: int
    checkpoint_pages: int


def before(session: Session) -> Counters | None:
    """With nothing owed from before. None: the engine does not count."""
    if session.engine != "postgres":
        return None
    _settle(session)
    return _counters(session)


def after(session: Session, then: Counters, table: Wide, elapsed_s: float) -> dict[str, float]:
    """By catalogue name."""
    log_at = _log_at(session)
    owed_log = one_row(session, f"select {log_at} - (redo_lsn - '0/0'::pg_lsn) from pg_control_checkpoint()")[0]
    wait_for_clients(session)
    end = _counters(session)
    log_bytes = log_at - then.log_at
    found = {
        "population_log_bytes": float(log_bytes),
        "population_log_share": log_bytes / table.value_bytes,
        "population_log_flushes": float(end.flushes - then.flushes),
        "population_checkpoints": float(end.checkpoints - then.checkpoints),
        "population_stored_bytes": float(one_row(session, f"select pg_total_relation_size('{TABLE}')")[0]),
        "debt_log_bytes": float(owed_log),
    }
    began = time.perf_counter()
    if not _settle(session):
        return found
    settle_s = time.perf_counter() - began
    pages = _reported(session, end).checkpoint_pages - end.checkpoint_pages
    page_bytes = one_row(session, "select current_setting('block_size')::integer")[0]
    return found | {
        "debt_data_bytes": float(pages * page_bytes),
        "debt_settle_s": settle_s,
        "population_settled_s": elapsed_s + settle_s,
    }


def _settle(session: Session) -> bool:
    """False: we may not."""
    try:
        session.query("checkpoint")
    except FailureError as error:
        if getattr(error, "sqlstate", "") != _REFUSED:
            raise
        return False
    return True


def _reported(session: Session, before: Counters) -> Counters:
    """The counters once they show one more checkpoint."""
    deadline = time.monotonic() + REPORT_S
    while (now := _counters(session)).checkpoints <= before.checkpoints and time.monotonic() < deadline:
        time.sleep(0.02)
    return now


def _log_at(session: Session) -> int:
    return one_row(session, "select pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0]


def _counters(session: Session) -> Counters:
    """PostgreSQL 18 documentation, 27.2: checkpoints have their own view since 17, pg_stat_io has flushes since 18."""
    version = one_row(session, "select current_setting('server_version_num')::integer")[0]
    flushes = "(select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal')"
    if version < 180000:
        flushes = "(select wal_sync from pg_stat_wal)"
    done, pages, view = "num_done", "buffers_written", "pg_stat_checkpointer"
    if version < 180000:
        done = "num_timed + num_requested"
    if version < 170000:
        done, pages, view = "checkpoints_timed + checkpoints_req", "buffers_checkpoint", "pg_stat_bgwriter"
    flushed, checkpoints, written = one_row(session, f"select {flushes}, {done}, {pages} from {view}")
    return Counters(_log_at(session), flushed, checkpoints, written)
