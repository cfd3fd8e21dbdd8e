"""The table of wide rows. The `populate` workload fills it, and maintenance workloads operate on it. The core generates
the rows (crates/ironbench-data/src/wide.rs), so their checksums are known without reading the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option, checked, one_row

VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
TABLE = "wide_row"
FIXED_BYTES = 28
"""Size in bytes of a row's values without the payload: two 8-byte numbers, an 8-byte timestamp and a 4-byte amount."""
KEY_BYTES = {"identity": 21, "number": 21, "random": 32}
"""Size of the primary key's index in bytes per row, for engines that store it separately. With random keys, the index
is only about two thirds full (docs/workloads/populate.md)."""

GB = Option(
    "gb", "1", "total size of the column values in GB (10^9 bytes)", lowest=0.0001, highest=100_000, whole=False
)
ROW = Option(
    "row",
    "1000",
    "bytes per row; 28 bytes are fixed-length columns, and the other bytes are text",
    lowest=64,
    highest=8000,
)

FOLDER = Path(__file__).parent / "wide_rows"


@dataclass(frozen=True, slots=True)
class WideTable:
    """Size of the table: number of rows, payload length, and kind of keys (`identity`, `number` or `random`)."""

    rows: int
    width: int
    """Number of characters in the payload of a row."""
    keys: str

    @staticmethod
    def of(options: Mapping[str, str], keys: str) -> WideTable:
        row = int(options["row"])
        return WideTable(max(1, round(float(options["gb"]) * 1e9 / row)), row - FIXED_BYTES, keys)

    @property
    def row_bytes(self) -> int:
        """Size of the values of a row."""
        return self.width + FIXED_BYTES

    @property
    def value_bytes(self) -> int:
        return self.rows * self.row_bytes

    def stored_bytes(self, engine: str) -> int:
        """Estimates the size of the table including its primary key."""
        costs = engines.get(engine).traits.costs
        key = KEY_BYTES[self.keys] if costs.separate_primary_key else 0
        each = self.width + FIXED_BYTES + costs.row_overhead_bytes
        if costs.page_bytes:  # a page contains only whole rows
            each = costs.page_bytes // max(1, costs.page_bytes // each)
        return self.rows * (each + key)

    def core_parameters(self, rows: int | None = None) -> dict[str, Any]:
        """Returns the table's parameters in the form that the core expects."""
        return {"count": self.rows if rows is None else rows, "width": self.width, "keys": self.keys, "seed": 0}

    def dataset(self, engine: str, loaded: bool) -> Dataset:
        """Returns the dataset. If not `loaded`, the table is empty."""
        count = self.rows if loaded else 0
        identity = f"{engines.get(engine).traits.dialect.identity} " if self.keys == "identity" else ""
        facts = {"rows": str(count), "row": str(self.width + FIXED_BYTES), "keys": self.keys}
        named = " ".join(f"{name}={value}" for name, value in facts.items())
        return Dataset(
            name="wide",
            key=f"wide version={VERSION} {named}",
            tables=(TABLE,),
            schema=tuple(one.replace(":identity ", identity) for one in sql_files.statements(FOLDER, "schema", engine)),
            generator={"rows": "wide", **self.core_parameters(count)},
            keys=(),
            references=(),
            rows=count,
            bytes=self.stored_bytes(engine) if loaded else 100_000,
            facts=facts,
        )

    def checks(self, session: Session) -> tuple[Check, ...]:
        """Checks that the table contains exactly the generated rows. Reads the whole table."""
        from ironbench import _core

        rows, content, keys = _core.wide_sums(msgspec.json.encode(self.core_parameters()))
        dialect = engines.get(session.engine).traits.dialect
        row = f"concat(number, ' ', amount, ' ', {dialect.epoch('moment')}, ' ', payload)"
        sums = one_row(session, f"select count(*), sum({dialect.digest(row)}), sum(id & 65535) from {TABLE}")
        found = (
            checked("rows in the table", rows, sums[0]),
            checked("checksum of their content", content, sums[1]),
        )
        # Identity keys are not compared, because bulk loads and rollbacks leave gaps in them.
        return found if self.keys == "identity" else (*found, checked("checksum of their keys", keys, sums[2]))
