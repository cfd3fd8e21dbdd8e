"""How large the order system is, and where in the world its customers live. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REGIONS = 6
CUSTOMERS = 3300
"""Per unit of scale, as are the following two."""
PRODUCTS = 1000
CATEGORIES = 50
MOST_ORDERS = 20
"""A customer holds 1 to this many orders."""
MOST_LINES = 7
CHANCES = 1_000_000
"""Scripts throw one die with this many sides to choose a region."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    last: tuple[int, ...]
    """The last customer of each region; customers are numbered region after region."""
    active: tuple[int, ...]
    """A throw up to this chooses the region (or one before it); the last is `CHANCES`."""
    products: int
    categories: int

    @property
    def customers(self) -> int:
        return self.last[-1]

    def variables(self) -> dict[str, str]:
        """What the scripts need, as pgbench's -D."""
        numbered = {f"last{region}": end for region, end in enumerate(self.last, 1)}
        numbered |= {f"active{region}": end for region, end in enumerate(self.active[:-1], 1)}
        single = {"products": self.products, "categories": self.categories}
        single |= {"most_orders": MOST_ORDERS, "most_lines": MOST_LINES}
        return {name: str(value) for name, value in {**numbered, **single}.items()}

    def generator(self) -> dict[str, object]:
        """What the core needs to make the rows (crates/ironbench-data/src/igen.rs)."""
        return {
            "rows": "igen",
            "region_ends": self.last,
            "products": self.products,
            "categories": self.categories,
            "most_orders": MOST_ORDERS,
            "most_lines": MOST_LINES,
            "seed": 0,
        }


def layout(options: Mapping[str, str]) -> TableLayout:
    """Region r has customers in proportion to r^-skew and activity in proportion to r^-2·skew: where more customers
    are, each of them does more, too. With skew 0 all regions are alike."""
    scale, skew = int(options["scale"]), float(options["skew"])
    homes = [region**-skew for region in range(1, REGIONS + 1)]
    busy = [home * home for home in homes]
    return TableLayout(
        tuple(_shared(CUSTOMERS * scale, homes)), tuple(_shared(CHANCES, busy)), PRODUCTS * scale, CATEGORIES * scale
    )


def _shared(total: int, weights: list[float]) -> list[int]:
    """Running ends of `total` things shared by weight; everybody gets at least one, the last end is `total`."""
    ends: list[int] = []
    sum_so_far = 0.0
    for position, weight in enumerate(weights):
        sum_so_far += weight
        fair = round(total * sum_so_far / sum(weights))
        least = ends[-1] + 1 if ends else 1
        ends.append(min(max(fair, least), total - (len(weights) - 1 - position)))
    return ends
