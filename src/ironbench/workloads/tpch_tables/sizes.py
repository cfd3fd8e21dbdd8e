"""How many rows a scale factor means. Pure."""

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


def rows_of(table: str, sf: float) -> int:
    """Rows of a table; of `lineitem` about."""
    return _FIXED.get(table) or int(_ROWS[table] * sf)
