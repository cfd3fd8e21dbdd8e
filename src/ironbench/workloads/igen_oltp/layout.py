"""Size of the order-entry data, and distribution of customers over regions. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REGIONS = 6
CUSTOMERS = 3300
"""Number of customers per unit of scale. `PRODUCTS` and `CATEGORIES` are also per unit of scale."""
PRODUCTS = 1000
CATEGORIES = 50
MOST_ORDERS = 20
"""Maximum number of orders of a customer. Each customer has at least one order."""
MOST_LINES = 7
CHANCES = 1_000_000
"""Scripts choose a region by a random number from 1 to this number."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    last: tuple[int, ...]
    """Number of the last customer in each region. The numbers of a region follow those of the region before it."""
    active: tuple[int, ...]
    """Largest random number that selects each region. For the last region, this number is `CHANCES`."""
    products: int
    categories: int

    @property
    def customers(self) -> int:
        return self.last[-1]

    def variables(self) -> dict[str, str]:
        """Returns variables for the scripts, like pgbench's -D."""
        numbered = {f"last{region}": end for region, end in enumerate(self.last, 1)}
        numbered |= {f"active{region}": end for region, end in enumerate(self.active[:-1], 1)}
        single = {"products": self.products, "categories": self.categories}
        single |= {"most_orders": MOST_ORDERS, "most_lines": MOST_LINES}
        return {name: str(value) for name, value in {**numbered, **single}.items()}

    def generator(self) -> dict[str, object]:
        """Returns the parameters of the row generator (crates/ironbench-data/src/igen.rs)."""
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
    """Distributes customers and activity over the regions. In region r, the number of customers is proportional to
    r^-skew, and the activity to r^-2·skew. Customers in larger regions are therefore also more active. With skew 0, all
    regions are equal."""
    scale, skew = int(options["scale"]), float(options["skew"])
    homes = [region**-skew for region in range(1, REGIONS + 1)]
    busy = [home * home for home in homes]
    return TableLayout(
        tuple(_shared(CUSTOMERS * scale, homes)), tuple(_shared(CHANCES, busy)), PRODUCTS * scale, CATEGORIES * scale
    )


def _shared(total: int, weights: list[float]) -> list[int]:
    """Distributes `total` items by weight. Returns the running totals. Each share is at least 1."""
    ends: list[int] = []
    sum_so_far = 0.0
    for position, weight in enumerate(weights):
        sum_so_far += weight
        fair = round(total * sum_so_far / sum(weights))
        least = ends[-1] + 1 if ends else 1
        ends.append(min(max(fair, least), total - (len(weights) - 1 - position)))
    return ends
