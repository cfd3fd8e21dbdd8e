"""The table of records: its options and keys, and queries about it.

Keys are those of YCSB (crates/ironbench-data/src/ycsb/mod.rs). Records are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from ironbench import engines
from ironbench.engines.dialect import listed
from ironbench.model.session import Session
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option, one_row

FOLDER = Path(__file__).parent
VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
TABLE = "usertable"
SAMPLE = 1000
"""Number of records whose existence and lengths are checked."""
TRIAL_NUMBERS = 1 << 36
"""Number of record numbers that are reserved for a trial that inserts records. Each trial has its own range. The first
range starts after the loaded records."""

OPTIONS = (
    Option("records", "100000", "number of records to load", lowest=1, highest=1_000_000_000),
    Option("fields", "10", "number of fields per record", lowest=1, highest=100),
    Option("field_length", "100", "number of characters per field", lowest=1, highest=10_000),
    Option(
        "layout",
        "columns",
        "columns: store each field in a text column; json: store all fields in one JSON column",
        choices=("columns", "json"),
    ),
)

_OFFSET, _PRIME = 0xCBF29CE484222325, 0x100000001B3
"""Constants of the 64-bit FNV hash (Fowler, Noll, Vo)."""


def key(number: int) -> str:
    """Returns the key of a record. The key contains the FNV-1a hash of the eight bytes of the record's number. The hash
    is interpreted as a signed number, and its sign is dropped."""
    found = _OFFSET
    for byte in number.to_bytes(8, "little"):
        found = (found ^ byte) * _PRIME % 2**64
    return f"user{abs(found - 2**64 if found >> 63 else found)}"


def generator(options: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of the row generator."""
    numbers = {name: int(options[name]) for name in ("records", "fields", "field_length")}
    return {"rows": "ycsb", **numbers, "layout": options["layout"]}


def names(options: Mapping[str, str]) -> list[str]:
    """Returns the names of the fields."""
    return [f"field{number}" for number in range(int(options["fields"]))]


def columns(options: Mapping[str, str]) -> list[str]:
    """Returns the columns of the table without the key."""
    return names(options) if options["layout"] == "columns" else ["fields"]


def has_schema(engine: str) -> bool:
    """Returns whether ironbench can create the table on this engine."""
    return bool(sql_files.statements(FOLDER, "schema", engine))


def dataset(engine: str, options: Mapping[str, str]) -> Dataset:
    records, facts = int(options["records"]), {option.name: options[option.name] for option in OPTIONS}
    kind = "text" if options["layout"] == "columns" else engines.get(engine).traits.dialect.json
    fields = ",\n    ".join(f"{column} {kind}" for column in columns(options))
    value_bytes = int(options["fields"]) * (int(options["field_length"]) + 4)
    some = sorted({records * place // SAMPLE for place in range(SAMPLE)})
    whole = f"select count(*) = {records} from {TABLE}"
    return Dataset(
        name="ycsb",
        key=" ".join([f"ycsb version={VERSION}", *(f"{name}={value}" for name, value in facts.items())]),
        tables=(TABLE,),
        schema=tuple(one.replace(":fields", fields) for one in sql_files.statements(FOLDER, "schema", engine)),
        generator=generator(options),
        keys=sql_files.statements(FOLDER, "keys", engine),
        references=(),
        rows=records,
        # Pages with keys in random order are about two thirds full.
        bytes=records * (value_bytes * 3 // 2 + 150),
        recognised=(*_recognised(engine, options), whole, f"select ({_whole(engine, options, some)}) = {len(some)}")
        if options["layout"] == "columns"
        else (),
        prepared_by="ycsb load jdbc",
        intact=f"select ({_existing(some)}) = {len(some)}",
        facts=facts,
        large=True,
    )


def _recognised(engine: str, options: Mapping[str, str]) -> tuple[str, ...]:
    """Returns queries that recognise the columns of a table that another program has created."""
    all_columns = ["ycsb_key", *columns(options)]
    statements = sql_files.statements(FOLDER, "recognised", engine)
    return tuple(
        one.replace(":count", str(len(all_columns))).replace(":names", listed(all_columns)) for one in statements
    )


def _existing(numbers: Iterable[int]) -> str:
    return f"select count(*) from {TABLE} where ycsb_key in ({listed([key(number) for number in numbers])})"


def _whole(engine: str, options: Mapping[str, str], numbers: Iterable[int]) -> str:
    """Returns a query that counts the records with these numbers whose fields all have the length `field_length`."""
    values = names(options)
    if options["layout"] == "json":
        dialect = engines.get(engine).traits.dialect
        values = [dialect.json_value("fields", f"'{name}'") for name in values]
    right = " and ".join(f"length({value}) = {options['field_length']}" for value in values)
    return f"{_existing(numbers)} and {right}"


def count(session: Session) -> int:
    """Returns the number of all records. Reads a whole index or table."""
    return one_row(session, f"select count(*) from {TABLE}")[0]


def sample(options: Mapping[str, str], seed: int) -> list[int]:
    """Returns the numbers of random loaded records. Different seeds select different records."""
    records = int(options["records"])
    return sorted(Random(seed).sample(range(records), min(SAMPLE, records)))


def count_whole(session: Session, options: Mapping[str, str], numbers: Iterable[int]) -> int:
    """Returns how many records with these numbers exist and have the length `field_length` in all fields."""
    return one_row(session, _whole(session.engine, options, numbers))[0]


def first_unused(session: Session, options: Mapping[str, str]) -> int:
    """Returns the first number of the next unused range. Trials use one range after another. To find out whether a
    range was used, only a few of its records are looked up by their keys. More must not be read, because this happens
    right before the trial, when caches may be cold.
    """
    records = int(options["records"])

    def used(place: int) -> bool:
        first = records + place * TRIAL_NUMBERS
        return one_row(session, _existing(range(first, first + SAMPLE)))[0] > 0

    if not used(0):
        return records
    low, high = 0, 1
    while used(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if used(middle) else (low, middle)
    return records + high * TRIAL_NUMBERS
