"""Differences between engines in SQL. The defaults are standard SQL (ISO/IEC 9075-11).

Longer SQL texts that differ are files of the workloads, by suffix: `schema.ENGINE.sql`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ironbench.model.session import Row


@dataclass(frozen=True, slots=True)
class ExplainedPlan:
    """Plan of a statement, with the figures that the engine reports beside it."""

    text: str
    planning_s: float | None = None
    spill_bytes: float | None = None
    """Bytes written to temporary files."""


def listed(names: Sequence[str]) -> str:
    """Formats names for the inside of `in (…)`. Table names of workloads need no quoting."""
    return ", ".join(f"'{name}'" for name in names)


class Dialect:
    true: tuple[str, ...] = ("1", "t", "true")
    """Spellings of a true value in results."""
    kinds: Mapping[str, str] = {}
    """Kind of relation, as `non_tables` returns it → name of the kind."""
    begin: str = "begin"
    """Statement that begins a transaction of statements that are sent together; "" if these form a transaction
    anyway."""

    identity: str = "generated always as identity"
    """Column constraint for values that the engine generates."""

    json: str = "json"
    """Type of a column that stores JSON documents for access by field."""

    def transaction(self, isolation: str) -> str:
        """Statement that begins a transaction at an isolation level, e.g. `read committed`; engines with one level
        ignore it."""
        return "begin"

    def present(self, tables: Sequence[str]) -> str:
        """Query for the names in `tables` that exist in the default schema."""
        return (
            "select table_name from information_schema.tables "
            f"where table_type = 'BASE TABLE' and table_name in ({listed(tables)})"
        )

    def non_tables(self, tables: Sequence[str]) -> str:
        """Query for name and kind of relations that have a name in `tables` but are not tables."""
        return (
            "select table_name, lower(table_type) from information_schema.tables "
            f"where table_type <> 'BASE TABLE' and table_name in ({listed(tables)}) order by table_name"
        )

    def size(self, tables: Sequence[str]) -> str:
        """Query for the bytes of the tables with their indexes, or of the whole database if the engine has no sizes of
        tables."""
        return self.database_size()

    def database_size(self) -> str:
        """Query for the size in bytes of the session's database; "" if it is not used."""
        return ""

    def after_load(self, tables: Sequence[str]) -> Sequence[str]:
        """Statements after a load: planner statistics, and work that would otherwise disturb the first trial.

        The statements are independent of each other.
        """
        return ["analyze"]

    def checkpoint(self) -> str:
        """Statement that writes everything committed to the data files. Engines without one return a statement without
        effect."""
        return "checkpoint"

    def emptied(self, table: str) -> Sequence[str]:
        """Statements that empty a table and reset its generated values."""
        return [f"truncate table {table}"]

    def copy(self, table: str) -> str:
        """Statement that starts to copy rows in COPY's text format into a table (`copy_in`)."""
        return f"COPY {table} FROM STDIN"

    def compressed(self, table: str) -> str:
        """Statement that enables compression for an empty table. Called only for engines with `compressed tables`."""
        raise NotImplementedError

    def json_value(self, document: str, name: str) -> str:
        """Expression: the text of a field of a JSON object. Called only for engines that a workload has a JSON column
        for."""
        return f"json_value({document}, concat('$.', {name}))"

    def with_json_value(self, document: str, name: str, value: str) -> str:
        """Expression: a JSON object with another text in a field. Called only for engines that a workload has a JSON
        column for."""
        return f"json_set({document}, concat('$.', {name}), {value})"

    def digest(self, text: str) -> str:
        """Integer expression: the first 28 bits of a text's MD5. Called only for engines with `population`."""
        raise NotImplementedError

    def epoch(self, moment: str) -> str:
        """Expression: whole seconds from 1970-01-01 to a moment. Called only for engines with `population`."""
        raise NotImplementedError

    def partitions(self, table: str) -> str:
        """Query for the number of partitions of a table. Called only for engines with the ability `partitions`."""
        raise NotImplementedError

    def explain(self, *, measured: bool) -> str:
        """Prefix of a statement whose plan is requested. `measured`: the statement is executed and timed."""
        return "explain analyze " if measured else "explain "

    def explained(self, rows: Sequence[Row]) -> ExplainedPlan:
        """Parses the answer to `explain`."""
        return ExplainedPlan("\n".join(" ".join(value or "" for value in row) for row in rows))

    def steps(self, plan: str) -> Iterator[str]:
        """Steps of a plan, e.g. `Hash Join`, `Seq Scan on orders`; none if it cannot be parsed."""
        return iter(())
