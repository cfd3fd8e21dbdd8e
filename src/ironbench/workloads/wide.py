"""The table of wide rows, which populations fill and maintenance works on.

Its rows are made by the core (crates/ironbench-data/src/wide.rs); what they add up to is known without reading them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads.base import Dataset, Option, checked, one_row

VERSION = 1
"""Raised whenever the same options would give other rows or another schema."""
TABLE = "wide_row"
FIXED_BYTES = 28
"""Of a row's values beside its payload: two numbers of 8 bytes, a moment of 8, an amount of 4."""
HEAD_BYTES = {"postgres": 36, "sqlite": 6, "null": 0}
"""Per row: header, line pointer and alignment (PostgreSQL 18 documentation, 66.6), or the varints of a record
(https://www.sqlite.org/fileformat2.html, section 2.1)."""
KEY_BYTES = {"identity": 21, "number": 21, "random": 32}
"""Per row of PostgreSQL's index, which random keys leave about two thirds full (docs/guide/population.md). SQLite keeps
the rows in the order of their keys, and has no index beside."""

GB = Option(
    "gb", "1", "size: gigabytes (10^9 bytes) of values in all rows", lowest=0.0001, highest=100_000, whole=False
)
ROW = Option("row", "1000", "bytes of values in a row, all but 28 of them text", lowest=64, highest=8000)

_SCHEMA = {
    "postgres": (
        "create table {table} (id bigint {identity}primary key, number bigint not null, moment timestamp not null, "
        "amount integer not null, payload text not null)",
        # As wide as they are: neither compressed nor moved out of the row (manual, 66.2).
        "alter table {table} alter column payload set storage plain",
    ),
    "sqlite": (
        "create table {table} (id integer primary key, number integer not null, moment text not null, "
        "amount integer not null, payload text not null)",
    ),
}
_SUMS = {
    "postgres": "ascii(substr(payload, 1 + (number % {width})::integer, 1))",
    "sqlite": "unicode(substr(payload, 1 + number % {width}, 1))",
}


@dataclass(frozen=True, slots=True)
class Wide:
    """So many rows, so wide, with such keys: `identity`, `number` or `random`."""

    rows: int
    width: int
    """Characters of the payload."""
    keys: str

    @staticmethod
    def of(options: Mapping[str, str], keys: str) -> Wide:
        row = int(options["row"])
        return Wide(max(1, round(float(options["gb"]) * 1e9 / row)), row - FIXED_BYTES, keys)

    @property
    def value_bytes(self) -> int:
        return self.rows * (self.width + FIXED_BYTES)

    @property
    def pages(self) -> int:
        """Of PostgreSQL's table when it is packed: a row's header, four numbers, the text behind its length, and a
        line pointer, in pages of 8 kB (manual, 66.6)."""
        row = 24 + FIXED_BYTES + 4 + self.width
        return -(-self.rows // (8168 // (-(-row // 8) * 8 + 4)))

    def stored_bytes(self, engine: str) -> int:
        """About how large the table will be with its key."""
        key = KEY_BYTES[self.keys] if engine == "postgres" else 0
        each = self.width + FIXED_BYTES + HEAD_BYTES[engine]
        # A page of 8 kB holds whole rows only.
        page = 8168 // max(1, 8168 // each) if engine == "postgres" else each
        return self.rows * (page + key)

    def described(self, rows: int | None = None) -> dict[str, Any]:
        """As the core wants it."""
        return {"count": self.rows if rows is None else rows, "width": self.width, "keys": self.keys, "seed": 0}

    def dataset(self, engine: str, loaded: bool) -> Dataset:
        """The table with all its rows, or as yet without any."""
        count = self.rows if loaded else 0
        identity = "generated always as identity " if self.keys == "identity" else ""
        said = {"rows": str(count), "row": str(self.width + FIXED_BYTES), "keys": self.keys}
        named = " ".join(f"{name}={value}" for name, value in said.items())
        return Dataset(
            name="wide",
            key=f"wide version={VERSION} {named}",
            tables=(TABLE,),
            schema=tuple(text.format(table=TABLE, identity=identity) for text in _SCHEMA[engine]),
            generator={"rows": "wide", **self.described(count)},
            keys=(),
            references=(),
            rows=count,
            bytes=self.stored_bytes(engine) if loaded else 100_000,
            facts=said,
        )

    def checks(self, session: Session) -> tuple[Check, ...]:
        """Is every row there, as it was made? Reads the whole table."""
        from ironbench import _core

        rows, content, keys = _core.wide_sums(msgspec.json.encode(self.described()))
        letter = _SUMS[session.engine].format(width=self.width)
        found = one_row(
            session,
            f"select count(*), sum((amount + {letter}) * (1 + number % 127)), sum(id & 65535) from {TABLE}",
        )
        return (
            checked("rows in the table", rows, found[0]),
            checked("checksum of their content", content, found[1]),
            checked("checksum of their keys", keys, found[2]),
        )
