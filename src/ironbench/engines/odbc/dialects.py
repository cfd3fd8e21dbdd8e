"""SQL dialects of databases that ironbench reaches only through ODBC. The dialects follow the vendors' manuals and are
untested."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ironbench.engines.dialect import Dialect, listed

_INNERMOST = re.compile(r"'(?:[^']|'')*'|\([^()']*\)")


class SqlServerDialect(Dialect):
    """Dialect of SQL Server. https://learn.microsoft.com/sql/t-sql"""

    identity = "identity(1, 1)"

    def size(self, tables: Sequence[str]) -> str:
        names = ", ".join(f"object_id('{table}')" for table in tables)
        pages = "select coalesce(sum(used_page_count), 0) * 8192 from sys.dm_db_partition_stats"
        return f"{pages} where object_id in ({names})"

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        return [f"update statistics {table}" for table in tables]


class OracleDialect(Dialect):
    """Dialect of Oracle. https://docs.oracle.com/en/database/oracle/oracle-database: unquoted names are stored in upper
    case."""

    def present(self, tables: Sequence[str]) -> str:
        return f"select lower(table_name) from user_tables where lower(table_name) in ({listed(tables)})"

    def non_tables(self, tables: Sequence[str]) -> str:
        return (
            "select lower(object_name), lower(object_type) from user_objects where object_type in "
            f"('VIEW', 'SYNONYM', 'SEQUENCE', 'FUNCTION', 'PROCEDURE') and lower(object_name) in ({listed(tables)}) "
            "order by object_name"
        )

    def size(self, tables: Sequence[str]) -> str:
        indexes = f"select index_name from user_indexes where lower(table_name) in ({listed(tables)})"
        return (
            f"select coalesce(sum(bytes), 0) from user_segments where lower(segment_name) in ({listed(tables)}) "
            f"or segment_name in ({indexes})"
        )

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        return [f"begin dbms_stats.gather_table_stats(user, upper('{table}')); end;" for table in tables]

    def checkpoint(self) -> str:
        """Does nothing: requesting a checkpoint requires a privilege that few users have."""
        return "select 1 from dual"


class Db2Dialect(Dialect):
    """Dialect of Db2. https://www.ibm.com/docs/en/db2: unquoted names are stored in upper case."""

    def present(self, tables: Sequence[str]) -> str:
        return (
            "select lower(tabname) from syscat.tables where tabschema = current schema and type = 'T' "
            f"and lower(tabname) in ({listed(tables)})"
        )

    def non_tables(self, tables: Sequence[str]) -> str:
        return (
            "select lower(tabname), case type when 'V' then 'view' when 'A' then 'alias' else 'relation' end "
            "from syscat.tables where tabschema = current schema and type <> 'T' "
            f"and lower(tabname) in ({listed(tables)}) order by tabname"
        )

    def size(self, tables: Sequence[str]) -> str:
        return (
            "select coalesce(sum(data_object_p_size + index_object_p_size), 0) * 1024 from sysibmadm.admintabinfo "
            f"where tabschema = current schema and lower(tabname) in ({listed(tables)})"
        )

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        return [
            "call sysproc.admin_cmd('runstats on table ' concat rtrim(current schema) concat "
            f"'.{table} with distribution and indexes all')"
            for table in tables
        ]

    def emptied(self, table: str) -> Sequence[str]:
        return [f"truncate table {table} immediate"]

    def checkpoint(self) -> str:
        """Does nothing: Db2 has no statement for a checkpoint."""
        return "select 1 from sysibm.sysdummy1"


def with_from(sql: str, table: str) -> str:
    """Adds FROM with a one-row table to a query without FROM. Some databases require FROM in every query."""
    left = sql
    while (less := _INNERMOST.sub(" ", left)) != left:
        left = less
    reads_none = left.strip().lower().startswith("select") and not re.search(r"\bfrom\b", left, re.IGNORECASE)
    return f"{sql} from {table}" if reads_none else sql
