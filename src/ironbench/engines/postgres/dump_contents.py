"""Compares a database with the table of contents of the dump from which it was restored."""

from __future__ import annotations

from collections.abc import Mapping

from ironbench.errors import FailureError
from ironbench.model.session import Session
from ironbench.words import counted

_TYPES = {
    "tables": ("TABLE",),
    "foreign tables": ("FOREIGN TABLE",),
    "views": ("VIEW",),
    "materialized views": ("MATERIALIZED VIEW",),
    "sequences": ("SEQUENCE",),
    "indexes": ("INDEX",),
    "constraints": ("CONSTRAINT",),
    "foreign keys": ("FK CONSTRAINT",),
    "functions": ("FUNCTION", "PROCEDURE", "AGGREGATE"),
    "triggers": ("TRIGGER",),
}
"""For each kind of object, the types of entries in a dump's table of contents (src/bin/pg_dump/pg_dump.c)."""
_OWN = "not exists (select from pg_depend d where d.objid = {0}.oid and d.deptype = 'e')"
"""Condition that excludes members of extensions, because pg_dump does not dump them."""
_COUNTS = f"""
    with place as (select oid from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'),
         relation as (select c.oid, c.relkind from pg_class c join place on place.oid = c.relnamespace
                       where {_OWN.format("c")})
    select kind, count(*) from (
        select case relkind when 'r' then 'tables' when 'p' then 'tables' when 'f' then 'foreign tables'
                            when 'v' then 'views' when 'm' then 'materialized views' when 'S' then 'sequences' end
          from relation
        union all
        select 'indexes' from pg_index i join relation r on r.oid = i.indexrelid
         where not exists (select from pg_constraint c where c.conindid = i.indexrelid and c.contype in ('p', 'u', 'x'))
        union all
        select case contype when 'f' then 'foreign keys' else 'constraints' end
          from pg_constraint c join relation r on r.oid = c.conrelid where contype in ('p', 'u', 'x', 'f')
        union all
        select 'functions' from pg_proc p join place on place.oid = p.pronamespace where {_OWN.format("p")}
        union all
        select 'triggers' from pg_trigger t join relation r on r.oid = t.tgrelid where not tgisinternal
    ) found (kind) where kind is not null group by kind
"""
_ROWS = """
    select c.relkind = 'p', c.relrowsecurity and c.relforcerowsecurity from pg_class c where c.oid = '{}'::regclass
"""


def compared(session: Session, subject: str, entries: Mapping[str, int], rows: Mapping[str, int]) -> dict[str, int]:
    """Checks that a database contains all objects and rows of the dump. Returns the number of objects of each kind, and
    the number of rows if it is known.

    `entries`: number of entries of each type in the dump's table of contents. `rows`: number of rows of each table for
    which it is known. Raises FailureError if objects are missing or the number of rows differs. The database must not
    be used then.
    """
    wanted = {kind: sum(entries.get(one, 0) for one in types) for kind, types in _TYPES.items()}
    there = {str(kind): int(count or 0) for kind, count in session.query(_COUNTS)} if any(wanted.values()) else {}
    missing = [
        f"{count} {kind}, but the database has {there.get(kind, 0)}"
        for kind, count in wanted.items()
        if there.get(kind, 0) < count
    ]
    if missing:
        raise FailureError(
            subject, f"the dump lists {'; '.join(missing)}", "restore the dump by hand and read the errors"
        )
    counted_rows = 0
    for table, count in rows.items():
        partitioned, hidden = session.query(_ROWS.format(table.replace("'", "''")))[0]
        if hidden == "t":
            continue  # rows may be hidden by row-level security, even from their owner
        only = "" if partitioned == "t" else "only "
        found = int(session.query(f"select count(*) from {only}{table}")[0][0] or 0)
        if found != count:
            cause = f"the dump has {counted(count, 'row')} of table {table}, but the database has {found}"
            raise FailureError(subject, cause, "restore the dump by hand and read the errors")
        counted_rows += count
    known = {kind: count for kind, count in wanted.items() if count}
    return known | ({"rows": counted_rows} if rows else {})
