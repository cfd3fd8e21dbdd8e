"""What ironbench made in a database: marked there, so that it can be named and removed, and nothing else with it.

The mark is a comment, which PostgreSQL keeps with the object: a table that somebody dropped and made again has none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ironbench.engines.administration import Made
from ironbench.errors import FailureError
from ironbench.model.session import Session

MARK = "made by ironbench"
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
_BUSY = """
    select pid from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and application_name like 'ironbench%'
"""


def mark(session: Session, tables: Sequence[str], statements: Sequence[str]) -> None:
    """Marks tables, and the functions and procedures that `statements` make."""
    routines = dict.fromkeys(name for statement in statements for name in _ROUTINE.findall(statement))
    named = [f"table {name}" for name in tables] + [f"routine {name}" for name in routines]
    if named:
        session.query("; ".join(f"comment on {name} is '{MARK}'" for name in named))


def found(session: Session) -> Made:
    """FailureError."""
    tables = session.query(_TABLES)
    return Made(
        session.query("select current_database()")[0][0] or "",
        tuple(name or "" for name, _ in tables),
        tuple(row[0] or "" for row in session.query(_ROUTINES)),
        sum(int(size or 0) for _, size in tables),
    )


def removed(session: Session) -> Made:
    """Drops what is marked, all of it or nothing. FailureError: in use, or something of others depends on it."""
    made = found(session)
    if busy := session.query(_BUSY):
        raise FailureError(
            f"database {made.database}",
            f"another ironbench is using it (server process {busy[0][0]})",
            "wait until it has ended",
        )
    # Statements sent together are one transaction (PostgreSQL 18 documentation, 54.2.2.1). Without CASCADE, which would
    # take what others have made of these tables with them.
    drops = [f"drop table {', '.join(made.tables)}"] if made.tables else []
    drops += [f"drop routine {', '.join(made.routines)}"] if made.routines else []
    if drops:
        session.query("; ".join(drops))
    return made
