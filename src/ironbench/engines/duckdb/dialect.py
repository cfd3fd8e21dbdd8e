"""How DuckDB is spoken to, and how its cache is filled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ironbench.engines.administration import Administration
from ironbench.engines.dialect import Dialect, listed
from ironbench.model.session import Session
from ironbench.words import counted

_BOX = re.compile(r"[╭┌]─+ ?([A-Z][A-Za-z ]+?) ?─")
_TABLE = re.compile(r"│ Table: ([\w.]+)")


class DuckdbDialect(Dialect):
    def present(self, tables: Sequence[str]) -> str:
        return f"select table_name from duckdb_tables() where table_name in ({listed(tables)})"

    def strangers(self, tables: Sequence[str]) -> str:
        return f"select view_name, 'view' from duckdb_views() where view_name in ({listed(tables)}) order by view_name"

    def size(self, tables: Sequence[str]) -> str:
        """Of the file, with everything in it."""
        return "select used_blocks * block_size from pragma_database_size()"

    def explain(self, *, measured: bool) -> str:
        return "EXPLAIN ANALYZE " if measured else "EXPLAIN "

    def steps(self, plan: str) -> Iterator[str]:
        """Boxes: the table is named in the box below its head."""
        lines = plan.splitlines()
        for number, line in enumerate(lines):
            for head in _BOX.finditer(line):
                table = ""
                for below in lines[number + 1 : number + 4]:
                    if found := _TABLE.match(below, head.start()):
                        table = f" on {found[1].rpartition('.')[2]}"
                        break
                yield f"{head[1]}{table}"


class DuckdbAdministration(Administration):
    def warm(self, session: Session, tables: tuple[str, ...]) -> str:
        for table in tables:
            # The largest or smallest value would be answered from statistics, without reading.
            session.query(f"select bit_xor(hash(columns(*))) from {table}")
        return f"every column of {counted(len(tables), 'table')} read"
