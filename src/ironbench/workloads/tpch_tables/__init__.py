"""The eight tables of TPC-H-derived workloads, at any scale factor from 0.01, on every engine.

Tables, keys and types follow the TPC-H specification 2.17.3, clauses 1.3 to 1.5 and 4.2. The SQL was written for
ironbench (docs/workloads/tpch-design.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench import engines, ranges, units
from ironbench.errors import InputError, written
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option
from ironbench.workloads.fixed_rows import FixedRows

TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")
"""Names of the tables, in an order in which they can be dropped."""
_ROWS = {
    "lineitem": 6_001_215,
    "orders": 1_500_000,
    "partsupp": 800_000,
    "part": 200_000,
    "customer": 150_000,
    "supplier": 10_000,
}
"""Number of rows at scale factor 1 (specification, clause 4.2.5). The number of order lines depends on random draws.
The other numbers are exact."""
_FIXED = {"nation": 25, "region": 5}


def rows_of(table: str, sf: float) -> int:
    """Returns the number of rows of a table, which is approximate for `lineitem`."""
    return _FIXED.get(table) or int(_ROWS[table] * sf)


__all__ = ["INDEXES", "REFERENCES", "SCALE_FACTOR", "STORED", "TABLES", "dataset", "require_stored"]

FOLDER = Path(__file__).parent
VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""
SMALLEST, LARGEST = 0.01, 100_000
"""Range of scale factors. With smaller scale factors, some tables would be too small for the generator. TPC-H does not
define larger ones."""


class ScaleFactor(Option):
    """Option for the scale factor. If the value is too large, the error states how much space the data would take."""

    def validated(self, text: str) -> str:
        try:
            sf = float(text)
        except ValueError:
            sf = 0.0
        if LARGEST < sf < 1e12:
            largest = max(bytes_on(engine, sf, indexes=True) for engine in engines.able(("data", "queries")))
            raise InputError(
                written("workload.with", f"{self.name}={text}"),
                f"would need up to {units.stored(largest)}, and no scale factor above {ranges.in_words(LARGEST)} is "
                "defined",
                f"use a value from {ranges.in_words(SMALLEST)} to {ranges.in_words(LARGEST)}",
            )
        return super().validated(text)


SCALE_FACTOR = ScaleFactor(
    "sf",
    "1",
    "scale factor; with scale factor 1, the rows have about 1 GB as text; the minimum is 0.01",
    lowest=SMALLEST,
    highest=LARGEST,
    whole=False,
)
INDEXES = Option(
    "indexes",
    "yes",
    "yes: create primary keys, and indexes on foreign keys and dates, if the engine supports "
    "indexes; no: create no indexes",
    choices=("yes", "no"),
)
REFERENCES = Option(
    "references",
    "yes",
    "yes: declare and check all ten foreign keys, if the engine supports foreign keys "
    "(requires indexes=yes); no: declare no foreign keys",
    choices=("yes", "no"),
)

STORED = Option(
    "tables",
    "plain",
    "plain: tables without compression; compressed: tables with ROW_FORMAT=COMPRESSED "
    "and KEY_BLOCK_SIZE=8, on engines that support compressed tables",
    choices=("plain", "compressed"),
)


def require_stored(engine: str, options: Mapping[str, str]) -> None:
    """Raises InputError if the engine has no compressed tables."""
    ability = "compressed tables"
    if options.get("tables") == "compressed" and not engines.get(engine).can(ability):
        raise InputError(
            written("workload.with", "tables=compressed"),
            f"the engine `{engine}` has no {ability}",
            f"use {' or '.join(engines.able((ability,)))}, or a file system that compresses (btrfs:compress=zstd)",
        )


def scale_factor(options: Mapping[str, str]) -> float:
    return float(options["sf"])


def dataset(engine: str, options: Mapping[str, str]) -> Dataset:
    """Returns the tables at `sf`, with indexes and foreign keys unless these options are `no`. Raises InputError."""
    sf = scale_factor(options)
    indexes = options.get("indexes", "yes") == "yes"
    references = indexes and options.get("references", "yes") == "yes"
    key = "bigint" if sf > WIDE_ABOVE else "integer"
    schema = sql_files.statements(FOLDER, "schema", engine)
    with_references = "yes" if references else "no"
    compressed = options.get("tables") == "compressed"
    if compressed:
        schema = (*schema, *(engines.get(engine).traits.dialect.compressed(table) for table in TABLES))
    return Dataset(
        name="tpch",
        key=f"tpch version={VERSION} sf={sf:g} indexes={'yes' if indexes else 'no'} references={with_references}"
        + (" tables=compressed" if compressed else ""),
        tables=TABLES,
        schema=tuple(statement.replace(":key", key) for statement in schema),
        generator={
            "rows": "tpch",
            "scale_factor": sf,
            "whole_numbers": engines.get(engine).can("whole numbers"),
        },
        keys=sql_files.statements(FOLDER, "keys", engine) if indexes else (),
        references=sql_files.statements(FOLDER, "references", engine) if references else (),
        rows=sum(rows_of(table, sf) for table in TABLES),
        bytes=bytes_on(engine, sf, indexes),
        intact=_intact(sf),
        fixed=FIXED,
        facts={"sf": f"{sf:g}"},
        large=True,
    )


def bytes_on(engine: str, sf: float, indexes: bool) -> int:
    """Estimates the size of the tables on an engine, including their indexes."""
    return int((sql_files.size(FOLDER, "schema", engine) + indexes * sql_files.size(FOLDER, "keys", engine)) * sf)


FIXED = (
    FixedRows("region", ("r_regionkey", "length(r_name)", "length(r_comment)")),
    FixedRows("nation", ("n_nationkey", "n_regionkey", "length(n_name)", "length(n_comment)")),
    FixedRows("supplier", ("s_suppkey", "s_nationkey", "s_acctbal", "length(s_comment)"), key="s_suppkey"),
    FixedRows("customer", ("c_custkey", "c_nationkey", "c_acctbal", "length(c_address)"), key="c_custkey"),
    FixedRows("part", ("p_partkey", "p_size", "p_retailprice", "length(p_name)"), key="p_partkey"),
    FixedRows("partsupp", ("ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"), key="ps_partkey"),
)
"""Rows that do not change. Refresh functions change only orders and lines."""
WIDE_ABOVE = 300.0
"""Above this scale factor, order keys exceed 2^31 (crates/ironbench-data/src/tpch/mod.rs)."""


_CHECKED_ORDERS = 100_000
"""Number of orders that `_intact` counts, with their lines."""
_KEYS_PER_ORDER = 4
"""Number of keys per order. Only eight of 32 successive keys are used. Refresh functions replace orders by other orders
within the same 32 keys (specification, clause 4.2.4)."""


def _intact(sf: float) -> str:
    """Returns a query that is true if the numbers of orders and lines are plausible after any number of refresh
    functions.

    The numbers may vary. An interrupted pair of refresh functions leaves up to 0.1% more orders, and new orders have
    different numbers of lines. Most other tables are checked with `FIXED`. For data that an older version loaded, the
    query also checks the sizes of these tables.
    """
    suppliers, customers = rows_of("supplier", sf), rows_of("customer", sf)
    orders = min(rows_of("orders", sf), _CHECKED_ORDERS)
    more = max(rows_of("orders", sf) // 1000, orders // 100)
    last, lines = orders * _KEYS_PER_ORDER, 4 * orders
    return (
        f"select (select count(*) from supplier) = {suppliers} and (select max(s_suppkey) from supplier) = {suppliers} "
        f"and (select max(c_custkey) from customer) = {customers} and (select count(*) from nation) = 25 "
        f"and (select count(*) from orders where o_orderkey < {last}) between {orders - orders // 100} "
        f"and {orders + more} and (select count(*) from lineitem where l_orderkey < {last}) "
        f"between {lines - lines // 10} and {lines + lines // 10 + 7 * more}"
    )
