"""What a population wrote to the log, and what it left to be done after its last commit.

A system that only postpones looks fast: rows are committed when the log is safe, while pages of the table wait in
memory for a checkpoint, and the log since the last one cannot be recycled. So a checkpoint is asked for right after the
end and timed: it settles the debt.
"""

from __future__ import annotations

import time

from ironbench import engines
from ironbench.engines.administration import Written
from ironbench.errors import FailureError
from ironbench.model.session import Session
from ironbench.workloads.base import one_row
from ironbench.workloads.commits import wait_for_clients
from ironbench.workloads.wide import TABLE, Wide

REPORT_S = 1.0
"""How long the server may take to show a checkpoint in its statistics."""
_REFUSED = "42501"
"""insufficient_privilege: on somebody's server we may not be allowed to ask for a checkpoint."""


def before(session: Session) -> Written | None:
    """With nothing owed from before. None: the engine does not count."""
    administration = engines.get(session.engine).administration
    if administration.written(session) is None:
        return None
    _settle(session)
    return administration.written(session)


def after(session: Session, then: Written, table: Wide, elapsed_s: float) -> dict[str, float]:
    """By catalogue name."""
    engine = engines.get(session.engine)
    log_bytes = _written(session).log_bytes
    owed_log = engine.administration.log_since_checkpoint(session, log_bytes)
    wait_for_clients(session)
    end = _written(session)
    written = log_bytes - then.log_bytes
    found = {
        "population_log_bytes": float(written),
        "population_log_share": written / table.value_bytes,
        "population_log_flushes": float(end.log_flushes - then.log_flushes),
        "population_checkpoints": float(end.checkpoints - then.checkpoints),
        "population_stored_bytes": float(one_row(session, engine.traits.dialect.size([TABLE]))[0]),
        "debt_log_bytes": float(owed_log),
    }
    began = time.perf_counter()
    if not _settle(session):
        return found
    settle_s = time.perf_counter() - began
    return found | {
        "debt_data_bytes": float(_reported(session, end).checkpoint_bytes - end.checkpoint_bytes),
        "debt_settle_s": settle_s,
        "population_settled_s": elapsed_s + settle_s,
    }


def _settle(session: Session) -> bool:
    """False: we may not."""
    try:
        session.query(engines.get(session.engine).traits.dialect.checkpoint())
    except FailureError as error:
        if getattr(error, "sqlstate", "") != _REFUSED:
            raise
        return False
    return True


def _reported(session: Session, before: Written) -> Written:
    """The counters once they show one more checkpoint."""
    deadline = time.monotonic() + REPORT_S
    while (now := _written(session)).checkpoints <= before.checkpoints and time.monotonic() < deadline:
        time.sleep(0.02)
    return now


def _written(session: Session) -> Written:
    found = engines.get(session.engine).administration.written(session)
    assert found is not None, "it counted before"
    return found
