"""Differences in SQL between engines. The defaults are standard SQL (ISO/IEC 9075-11).

Longer SQL texts are files of the workloads. A file for one engine has the engine's name as a suffix:
`schema.ENGINE.sql`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.session import Row


@dataclass(frozen=True, slots=True)
class ExplainedPlan:
    """Plan of a statement, with figures that the engine reports in the plan."""

    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Number of bytes written to temporary files."""


def listed(names: Sequence[str]) -> str:
    """Formats names for use between the parentheses of `in (…)`. Table names of workloads need no quoting."""
    return ", ".join(f"'{name}'" for name in names)


class Dialect:
    true: tuple[str, ...] = ("1", "t", "true")
    """Texts that represent a true value in query results."""
    kinds: Mapping[str, str] = {}
    """Maps each code in the result of the `non_tables` query to the name of a kind of relation."""
    begin: str = "begin"
    """Statement that begins a transaction of statements that are sent together. The value is "" if statements that are
    sent together always form a transaction."""

    identity: str = "generated always as identity"
    """Column constraint for values that the engine generates."""

    json: str = "json"
    """Type of a column for JSON documents. Statements access the fields of these documents."""

    def transaction(self, isolation: str) -> str:
        """Returns the statement that begins a transaction at an isolation level, such as `read committed`. Engines with
        a single level ignore `isolation`."""
        return "begin"

    def present(self, tables: Sequence[str]) -> str:
        """Returns a query for the names in `tables` that exist in the default schema."""
        return (
            "select table_name from information_schema.tables "
            f"where table_type = 'BASE TABLE' and table_name in ({listed(tables)})"
        )

    def non_tables(self, tables: Sequence[str]) -> str:
        """Returns a query for relations that have a name in `tables` but are not tables. The query returns their names
        and kinds."""
        return (
            "select table_name, lower(table_type) from information_schema.tables "
            f"where table_type <> 'BASE TABLE' and table_name in ({listed(tables)}) order by table_name"
        )

    def size(self, tables: Sequence[str]) -> str:
        """Returns a query for the total size in bytes of the tables and their indexes. If the engine does not report
        sizes of tables, the query returns the size of the whole database."""
        return self.database_size()

    def database_size(self) -> str:
        """Returns a query for the size in bytes of the session's database. Returns "" if the size is not used."""
        return ""

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        """Returns statements to run after loading. The statements collect planner statistics, and do work that would
        otherwise disturb the first trial. The statements are independent of each other."""
        return ["analyze"]

    def checkpoint(self) -> str:
        """Returns the statement that writes all committed changes to the data files. For engines without such a
        statement, returns a statement without effect."""
        return "checkpoint"

    def emptied(self, table: str) -> Sequence[str]:
        """Returns statements that empty a table. The statements also reset the values that the engine generates for the
        table."""
        return [f"truncate table {table}"]

    def copy(self, table: str) -> str:
        """Returns a COPY statement for loading rows into a table (`copy_in`). The rows are in COPY's text format."""
        return f"COPY {table} FROM STDIN"

    def compressed(self, table: str) -> str:
        """Returns the statement that enables compression for an empty table. Is called only for engines with
        `compressed tables`."""
        raise NotImplementedError

    def json_value(self, document: str, name: str) -> str:
        """Returns an expression for the text in a field of a JSON object. The expression is used only if a workload has
        a JSON column for this engine."""
        return f"json_value({document}, concat('$.', {name}))"

    def with_json_value(self, document: str, name: str, value: str) -> str:
        """Returns an expression for a copy of a JSON object with a new text in one field. The expression is used only
        if a workload has a JSON column for this engine."""
        return f"json_set({document}, concat('$.', {name}), {value})"

    def digest(self, text: str) -> str:
        """Returns an integer expression for the first 28 bits of a text's MD5. Is called only for engines with
        `population`."""
        raise NotImplementedError

    def epoch(self, moment: str) -> str:
        """Returns an expression for the number of whole seconds between 1970-01-01 and a time. Is called only for
        engines with `population`."""
        raise NotImplementedError

    def partitions(self, table: str) -> str:
        """Returns a query for the number of partitions of a table. Is called only for engines with the ability
        `partitions`."""
        raise NotImplementedError

    def explain(self, *, measured: bool) -> str:
        """Returns the prefix of a statement whose plan is requested. `measured`: whether the statement is executed and
        timed."""
        return "explain analyze " if measured else "explain "

    def explained(self, rows: Sequence[Row]) -> ExplainedPlan:
        """Parses the answer to `explain`."""
        return ExplainedPlan("\n".join(" ".join(value or "" for value in row) for row in rows))

    def steps(self, plan: str) -> Iterator[str]:
        """Returns the steps of a plan, such as `Hash Join` or `Seq Scan on orders`. Returns nothing if the plan cannot
        be parsed."""
        return iter(())
