"""Which tables are in a database, how large they are, and whose."""

from __future__ import annotations

from collections.abc import Sequence

from ironbench.errors import InputError
from ironbench.model.session import Session
from ironbench.workloads import Dataset

_KINDS = {
    **{"v": "view", "m": "materialized view", "S": "sequence", "i": "index", "I": "index"},
    **{"f": "foreign table", "c": "composite type"},
}
"""pg_class.relkind (manual, 53.11)."""
TRUE = ("t", "1", "true")
"""As PostgreSQL, SQLite and DuckDB print it."""


def present(session: Session, tables: Sequence[str]) -> list[str]:
    """Those of `tables` that exist where an unqualified name would find them, in the same order."""
    names = ", ".join(f"'{table}'" for table in tables)
    if session.engine == "sqlite":
        sql = f"select name from sqlite_master where type = 'table' and name in ({names})"
    elif session.engine == "duckdb":
        sql = f"select table_name from duckdb_tables() where table_name in ({names})"
    else:
        sql = (
            f"select relname from pg_class where relname in ({names}) and relkind in ('r', 'p') "
            "and pg_table_is_visible(oid)"
        )
    found = {row[0] for row in session.query(sql)}
    return [table for table in tables if table in found]


def refuse_occupied(session: Session, tables: Sequence[str]) -> None:
    """InputError when a view, sequence or the like has the name of one of `tables`, so that it cannot be made."""
    names = ", ".join(f"'{table}'" for table in tables)
    if session.engine == "sqlite":
        sql = f"select name, type from sqlite_master where type <> 'table' and name in ({names}) order by name"
    elif session.engine == "duckdb":
        sql = f"select view_name, 'view' from duckdb_views() where view_name in ({names}) order by view_name"
    else:
        sql = (
            f"select relname, relkind from pg_class where relname in ({names}) and relkind not in ('r', 'p') "
            "and pg_table_is_visible(oid) order by relname"
        )
    for name, kind in session.query(sql):
        what = _KINDS.get(kind or "", kind or "relation")
        cause = "exists, and ironbench needs that name for a table"
        raise InputError(f"{what} {name}", cause, "rename or drop it yourself, or name another database")


def size(session: Session, tables: Sequence[str]) -> int:
    """Bytes of the tables with their indexes; of an SQLite or DuckDB file, of everything in it."""
    if session.engine == "sqlite":
        sql = "select page_count * page_size from pragma_page_count(), pragma_page_size()"
    elif session.engine == "duckdb":
        sql = "select used_blocks * block_size from pragma_database_size()"
    else:
        sql = "select " + " + ".join(f"pg_total_relation_size('{table}')" for table in tables)
    return int(session.query(sql)[0][0] or 0)


def refuse_strangers(session: Session, dataset: Dataset, found: Sequence[str]) -> None:
    """Returns when the tables, which ironbench did not load, hold just the rows that are wanted; else InputError."""
    complete = len(found) == len(dataset.tables) and dataset.recognised
    if complete and session.query(dataset.recognised)[0][0] in TRUE:
        return
    wanted = " ".join(f"{name}={value}" for name, value in dataset.facts.items())
    cause = "exists, and was not loaded by ironbench"
    if dataset.recognised:
        cause = f"exists, was not loaded by ironbench and is not what `pgbench -i` makes at {wanted}"
    raise InputError(
        f"table {found[0]}",
        cause,
        f"ironbench drops only what it made: drop {', '.join(found)} yourself, or name another database",
    )


def refuse_changed(session: Session, dataset: Dataset, key: str, found: Sequence[str], own_server: bool) -> None:
    """InputError when tables that we loaded completely hold something else by now, or something else is wanted."""
    hint = f"ironbench drops only what is surely its own: drop {', '.join(found)} yourself"
    whole = len(found) == len(dataset.tables)
    if key == dataset.key and whole and dataset.intact and session.query(dataset.intact)[0][0] not in TRUE:
        raise InputError(f"table {found[0]}", f"no longer holds what ironbench loaded ({key})", hint)
    if key != dataset.key and not own_server:
        raise InputError(
            f"table {found[0]}", f"holds {key}, and {dataset.key} is wanted", f"{hint}, or ask for the same"
        )
