"""Takes away what the trials before left behind, so that the next one finds the data at the size they were loaded with.

PostgreSQL looks for garbage once a minute (`autovacuum_naptime`, manual 19.10), which is longer than a short trial and
happens in the middle of some. pgbench vacuums before every run for the same reason (manual, pgbench `-n`).
"""

from __future__ import annotations

from ironbench.errors import FailureError
from ironbench.load.marker import quoted
from ironbench.model.session import Session
from ironbench.words import in_percent
from ironbench.workloads import Dataset

MOST_GARBAGE = 0.02
"""Dead rows as a share of the live ones, above which a table is vacuumed: less than a trial would notice, and so much
that a large database is not read through for nothing. Below 2 % of its pages vacuum leaves the keys alone anyway
(BYPASS_THRESHOLD_PAGES in vacuumlazy.c)."""


def settled(session: Session, dataset: Dataset) -> dict[str, str]:
    """Vacuums the tables with garbage; what was done, as conditions of the trial that follows."""
    if session.engine != "postgres":
        return {}
    try:
        vacuumed = _littered(session, dataset.tables)
        for table in vacuumed:
            session.query(f"vacuum {table}")
    except FailureError as error:
        # A trial on littered tables is still a trial; an engine that died will say so when it is driven.
        return {"garbage": f"left where it was: {error.cause}"}
    return {"garbage": f"vacuumed {', '.join(vacuumed)}" if vacuumed else f"below {in_percent(MOST_GARBAGE)}"}


def _littered(session: Session, tables: tuple[str, ...]) -> list[str]:
    names = ", ".join(quoted(table) for table in tables)
    rows = session.query(
        "select relname from pg_stat_user_tables "
        f"where relname in ({names}) and pg_table_is_visible(relid) and n_dead_tup > {MOST_GARBAGE} * n_live_tup"
    )
    return sorted(row[0] for row in rows if row[0])
