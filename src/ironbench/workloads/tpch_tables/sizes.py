"""How many rows and bytes a scale factor means. Pure."""

from __future__ import annotations

TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region")
"""In an order in which they can be dropped."""
_ROWS = {
    "lineitem": 6_001_215,
    "orders": 1_500_000,
    "partsupp": 800_000,
    "part": 200_000,
    "customer": 150_000,
    "supplier": 10_000,
}
"""At scale factor 1 (specification, clause 4.2.5); lines vary with what is drawn, the others are exact."""
_FIXED = {"nation": 25, "region": 5}
BYTES = {"postgres": 1_200_000_000, "duckdb": 1_300_000_000, "sqlite": 1_000_000_000}
"""Of the rows at scale factor 1. DuckDB's is without compression: with it, a load needs less than was checked for."""
INDEX_BYTES = {"postgres": 600_000_000, "duckdb": 0, "sqlite": 600_000_000}


def rows_of(table: str, sf: float) -> int:
    """Rows of a table; of `lineitem` about."""
    return _FIXED.get(table) or int(_ROWS[table] * sf)


def bytes_on(engine: str, sf: float, indexes: bool) -> int:
    """About how large the tables are on an engine, with their indexes."""
    return int((BYTES[engine] + (INDEX_BYTES[engine] if indexes else 0)) * sf)
