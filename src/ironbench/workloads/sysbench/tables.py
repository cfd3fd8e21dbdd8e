"""The tables of sysbench's OLTP tests: names, columns, keys and number of rows are the same as with `sysbench …
prepare`.

Either sysbench or ironbench may load the tables, and both can use them. sysbench generates different values in each
load. ironbench always generates the same values (crates/ironbench-data/src/sysbench.rs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ironbench import engines
from ironbench.engines.dialect import listed
from ironbench.model.session import Session
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option
from ironbench.workloads.fixed_rows import WHOLE_ROWS, FixedRows

FOLDER = Path(__file__).parent
VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
MOST_TABLES = 1000
"""Maximum number of tables. The row generator in `ironbench-data` has the same limit."""
OPTIONS = (
    Option("tables", "1", "number of tables", lowest=1, highest=MOST_TABLES),
    Option(
        "table_size",
        str(10_000),
        "number of rows per table; a row has about 0.25 kB, including its index entries",
        lowest=1,
        highest=2_000_000_000,
    ),
)
DELETES = "oltp_delete"
"""Name of the only test that removes loaded rows, so that no other test can use its data."""


def names(options: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"sbtest{number}" for number in range(1, int(options["tables"]) + 1))


def rows(options: Mapping[str, str]) -> int:
    return int(options["tables"]) * int(options["table_size"])


def fixed(options: Mapping[str, str]) -> tuple[FixedRows, ...]:
    """Returns the loaded rows, whose ids do not change. Tests other than `oltp_delete` insert each row that they delete
    again, with the same id."""
    loaded = f"id <= {options['table_size']}"
    return tuple(FixedRows(table, ("id",), loaded, "id") for table in names(options))


def dataset(engine: str, options: Mapping[str, str]) -> Dataset | None:
    if not engines.get(engine).can("data"):
        return None
    tables, size = options["tables"], options["table_size"]
    deletes = options["test"] == DELETES
    complete = _completeness(engine, options)
    return Dataset(
        name="sysbench",
        key=f"sysbench version={VERSION} tables={tables} table_size={size}{f' test={DELETES}' if deletes else ''}",
        tables=names(options),
        schema=_of_each_table("schema", engine, options),
        generator={"rows": "sysbench", "tables": int(tables), "table_size": int(size)},
        keys=_of_each_table("keys", engine, options),
        references=(),
        rows=rows(options),
        bytes=rows(options) * sql_files.size(FOLDER, "schema", engine),
        recognised=(complete,),
        prepared_by="sysbench … prepare",
        intact="" if deletes else complete,
        fixed=() if deletes else fixed(options),
        facts={"tables": tables, "table_size": size},
    )


def _of_each_table(file: str, engine: str, options: Mapping[str, str]) -> tuple[str, ...]:
    statements = sql_files.statements(FOLDER, file, engine)
    numbers = range(1, int(options["tables"]) + 1)
    return tuple(
        one.replace(":n", str(n)).replace(":size", options["table_size"]) for n in numbers for one in statements
    )


def complete(session: Session, options: Mapping[str, str]) -> bool:
    """Returns whether all loaded rows exist."""
    return (
        session.query(_completeness(session.engine, options))[0][0] in engines.get(session.engine).traits.dialect.true
    )


def _completeness(engine: str, options: Mapping[str, str]) -> str:
    """Returns a query that returns true if all loaded rows and the secondary indexes exist.

    Additional rows, which `oltp_insert` adds, are accepted. Rows of large tables are not counted: only the lowest and
    the highest id are read.
    """
    size = options["table_size"]

    def there(table: str) -> str:
        if rows(options) <= WHOLE_ROWS:
            return f"(select count(*) from {table} where id between 1 and {size}) = {size}"
        return f"(select min(id) from {table}) = 1 and (select max(id) from {table}) >= {size}"

    keys = listed([f"k_{number}" for number in range(1, int(options["tables"]) + 1)])
    indexes = "".join(sql_files.statements(FOLDER, "indexes", engine))
    with_keys = f"({indexes.replace(':indexes', keys)}) = {options['tables']}"
    return f"select {_all([with_keys, *map(there, names(options))])}"


def _all(conditions: Sequence[str]) -> str:
    """Joins conditions in a balanced tree, because SQLite limits the depth of expressions."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return f"({_all(conditions[:middle])}) and ({_all(conditions[middle:])})"
