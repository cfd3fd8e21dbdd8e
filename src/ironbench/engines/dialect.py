"""How an engine is spoken to where SQL differs. What is not overridden is standard SQL (ISO/IEC 9075-11).

Longer texts that differ are files of the workloads, by suffix: `schema.ENGINE.sql`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.session import Row


@dataclass(frozen=True, slots=True)
class Explained:
    """What an engine said of the way in which it runs a statement."""

    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Written to temporary files."""


def listed(names: Sequence[str]) -> str:
    """As the inside of `in (…)`. Table names of workloads are ours and need no quoting."""
    return ", ".join(f"'{name}'" for name in names)


class Dialect:
    true: tuple[str, ...] = ("1", "t", "true")
    """How a true value is printed."""
    kinds: Mapping[str, str] = {}
    """What `strangers` calls a kind of relation → its name."""
    begin: str = "begin"
    """Before statements that are sent together and belong to one transaction; "": they do so by themselves."""

    identity: str = "generated always as identity"
    """Of a column whose values the engine counts."""

    def transaction(self, isolation: str) -> str:
        """Begins a transaction of an isolation level, e.g. `read committed`; the engine's only one where it has one."""
        return "begin"

    def present(self, tables: Sequence[str]) -> str:
        """Names of those of `tables` that exist where an unqualified name finds them."""
        return (
            "select table_name from information_schema.tables "
            f"where table_type = 'BASE TABLE' and table_name in ({listed(tables)})"
        )

    def strangers(self, tables: Sequence[str]) -> str:
        """Name and kind of whatever has the name of one of `tables` and is no table."""
        return (
            "select table_name, lower(table_type) from information_schema.tables "
            f"where table_type <> 'BASE TABLE' and table_name in ({listed(tables)}) order by table_name"
        )

    def size(self, tables: Sequence[str]) -> str:
        """Bytes of the tables with their indexes, or of the whole database where the engine counts no others."""
        return self.database_size()

    def database_size(self) -> str:
        """Bytes of everything in the session's database; empty where nobody asks for it."""
        return ""

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        """Statistics for the planner, and nothing left over that the first trial would have to pay for.

        They do not depend on each other.
        """
        return ["analyze"]

    def checkpoint(self) -> str:
        """A statement after which everything committed is in the data files. Without such: one that does nothing."""
        return "checkpoint"

    def emptied(self, table: str) -> Sequence[str]:
        """Statements after which the table is as it was made, its counters too."""
        return [f"truncate table {table}"]

    def copy(self, table: str) -> str:
        """Before rows in COPY's text format that all go into a table (`Line.copy_in`)."""
        return f"COPY {table} FROM STDIN"

    def compressed(self, table: str) -> str:
        """A statement that has an empty table compressed. Only asked of engines with `compressed tables`."""
        raise NotImplementedError

    def digest(self, text: str) -> str:
        """The first 28 bits of a text's MD5 as an integer expression. Only asked of engines with `population`."""
        raise NotImplementedError

    def epoch(self, moment: str) -> str:
        """Whole seconds from 1970-01-01 to a moment, as an expression. Only asked of engines with `population`."""
        raise NotImplementedError

    def partitions(self, table: str) -> str:
        """How many partitions a table has. Only asked of engines with the ability `partitions`."""
        raise NotImplementedError

    def explain(self, *, measured: bool) -> str:
        """Before a statement whose plan is wanted; `measured`: it is run as well, with times."""
        return "explain analyze " if measured else "explain "

    def explained(self, rows: Sequence[Row]) -> Explained:
        """What the engine answered to `explain`."""
        return Explained("\n".join(" ".join(value or "" for value in row) for row in rows))

    def steps(self, plan: str) -> Iterator[str]:
        """Steps of a plan, e.g. `Hash Join`, `Seq Scan on orders`; none where it cannot be read."""
        return iter(())
