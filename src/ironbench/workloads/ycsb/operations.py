"""The operations of YCSB's core workloads as scripts. The core sets their variables
(crates/ironbench-data/src/ycsb/operations.rs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ironbench import engines
from ironbench.workloads.base import ScriptSource
from ironbench.workloads.ycsb.records import TABLE, columns, names

READ, UPDATE, INSERT, SCAN, READ_MODIFY_WRITE = "read", "update", "insert", "scan", "read_modify_write"


class CoreWorkload(NamedTuple):
    operations: Mapping[str, int]
    """The share of each operation in percent."""
    distribution: str


CORE = {
    "a": CoreWorkload({READ: 50, UPDATE: 50}, "zipfian"),
    "b": CoreWorkload({READ: 95, UPDATE: 5}, "zipfian"),
    "c": CoreWorkload({READ: 100}, "zipfian"),
    "d": CoreWorkload({READ: 95, INSERT: 5}, "latest"),
    "e": CoreWorkload({SCAN: 95, INSERT: 5}, "zipfian"),
    "f": CoreWorkload({READ: 50, READ_MODIFY_WRITE: 50}, "zipfian"),
}
"""The core workloads A to F of YCSB."""


def scripts(engine: str, options: Mapping[str, str]) -> list[ScriptSource]:
    statements = _Statements(engine, options)
    texts: Mapping[str, Callable[[], str]] = {
        READ: statements.read,
        UPDATE: statements.update,
        INSERT: statements.insert,
        SCAN: statements.scan,
        READ_MODIFY_WRITE: lambda: statements.read() + statements.update(),
    }
    return [ScriptSource(name, texts[name](), share) for name, share in CORE[options["mix"]].operations.items()]


def variables(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that the core sets. The values only show the types."""
    values = [f"value{number}" for number in range(int(options["fields"]))]
    texts = dict.fromkeys(("key", "found", "name", "value", *values), "")
    return {**texts, "document": "{}", "field": "0", "rows": "1"}


class _Statements:
    """Statements for one engine and one layout of the records."""

    def __init__(self, engine: str, options: Mapping[str, str]) -> None:
        self._dialect = engines.get(engine).traits.dialect
        self._names, self._columns = names(options), columns(options)
        self._json = options["layout"] == "json"
        self._read_all, self._write_all = options["read_all_fields"] == "yes", options["write_all_fields"] == "yes"

    def read(self) -> str:
        """Returns a script that reads a record. The script also reads the key, so that the core sees whether the record
        was found."""
        return self._selecting(
            lambda what: f"select ycsb_key as found, {what} from {TABLE} where ycsb_key = :key \\aset"
        )

    def scan(self) -> str:
        return self._selecting(
            lambda what: f"select ycsb_key, {what} from {TABLE} where ycsb_key >= :key order by ycsb_key limit :rows;"
        )

    def update(self) -> str:
        def changing(what: str) -> str:
            return f"update {TABLE} set {what} where ycsb_key = :key;"

        if self._write_all:
            pairs = zip(self._columns, self._values(), strict=True)
            return changing(", ".join(f"{column} = {value}" for column, value in pairs)) + "\n"
        if self._json:
            return changing(f"fields = {self._dialect.with_json_value('fields', ':name', ':value')}") + "\n"
        return self._by_field(lambda name: changing(f"{name} = :value"))

    def insert(self) -> str:
        listed = ", ".join(self._columns)
        return f"insert into {TABLE} (ycsb_key, {listed}) values (:key, {', '.join(self._values())});\n"

    def _values(self) -> list[str]:
        return [":document"] if self._json else [f":value{number}" for number in range(len(self._names))]

    def _selecting(self, statement: Callable[[str], str]) -> str:
        if self._read_all:
            return statement(", ".join(self._columns)) + "\n"
        if self._json:
            return statement(self._dialect.json_value("fields", ":name")) + "\n"
        return self._by_field(statement)

    def _by_field(self, statement: Callable[[str], str]) -> str:
        """Returns a statement for each field, because the name of a column cannot be a parameter."""
        if len(self._names) == 1:
            return statement(self._names[0]) + "\n"
        branches = [
            f"\\{'el' if number else ''}if :field = {number}\n{statement(name)}\n"
            for number, name in enumerate(self._names)
        ]
        return "".join(branches) + "\\endif\n"
