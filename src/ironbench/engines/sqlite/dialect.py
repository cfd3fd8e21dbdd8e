"""How SQLite is spoken to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ironbench.engines.dialect import Dialect, listed

_STEP = re.compile(r"^\d+ \d+ \d+ (.+)$", re.MULTILINE)


class SqliteDialect(Dialect):
    def present(self, tables: Sequence[str]) -> str:
        return f"select name from sqlite_master where type = 'table' and name in ({listed(tables)})"

    def strangers(self, tables: Sequence[str]) -> str:
        return (
            f"select name, type from sqlite_master where type <> 'table' and name in ({listed(tables)}) order by name"
        )

    def size(self, tables: Sequence[str]) -> str:
        """Of the file, with everything in it."""
        return "select page_count * page_size from pragma_page_count(), pragma_page_size()"

    def checkpoint(self) -> str:
        return "pragma wal_checkpoint(truncate)"

    def emptied(self, table: str) -> Sequence[str]:
        return [f"delete from {table}", "vacuum", self.checkpoint()]

    def code(self, character: str) -> str:
        return f"unicode({character})"

    def explain(self, *, measured: bool) -> str:
        """There is no plan with times outside its shell."""
        return "EXPLAIN QUERY PLAN "

    def steps(self, plan: str) -> Iterator[str]:
        """`SCAN lineitem`, `SEARCH orders USING INDEX orders_customer (o_custkey=?)`."""
        for line in _STEP.findall(plan):
            words = line.split()
            if words[0] in ("SCAN", "SEARCH") and len(words) > 1:
                index = re.search(r"USING (?:COVERING )?INDEX (\w+)", line)
                yield f"{words[0].lower()}{f' by {index[1]}' if index else ''} on {words[1]}"
            else:
                yield line.lower()
