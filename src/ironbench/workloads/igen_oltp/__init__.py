"""The `igen-oltp` workload: order-entry OLTP with customers in world regions. Design: docs/workloads/igen-oltp.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ironbench import engines
from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload
from ironbench.workloads.igen_oltp import checks
from ironbench.workloads.igen_oltp.checks import FIXED
from ironbench.workloads.igen_oltp.layout import CUSTOMERS, MOST_LINES, MOST_ORDERS, PRODUCTS, REGIONS, layout

FOLDER = Path(__file__).parent
VERSION = 1
"""Version of the data, increased whenever the same options would produce other rows or another schema."""

LIGHT = {
    "order_status": 30,
    "recent_orders": 20,
    "product_stock": 25,
    "order_lines": 15,
    "place_order": 5,
    "archive_order": 5,
}
"""The weight of each script: four selects make up 90%, one insert 5%, and one delete 5%."""
HEAVY = {"business": 1}

TABLES = ("igen_order_line", "igen_order", "igen_stock", "igen_product", "igen_customer", "igen_region")


class IgenOltp(Workload):
    name = "igen-oltp"
    stable = True
    doc = (
        "Order-entry OLTP with customers in several regions of the world: single statements (90% "
        "reads) or whole business transactions."
    )
    options = (
        Option("scale", "1", "scale factor; each unit is 3300 customers (about 5 to 16 MB)", lowest=1, highest=100_000),
        Option(
            "weight",
            "light",
            "light: each transaction is one of six statements; heavy: each transaction browses "
            "products, enters an order, updates the stock and records the payment",
            choices=("light", "heavy"),
        ),
        Option(
            "skew",
            "1",
            "degree to which customers and their orders are concentrated in a few regions; 0: all "
            "regions have equal activity",
            lowest=0,
            highest=4,
            whole=False,
        ),
    )

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        weights = LIGHT if choice.options["weight"] == "light" else HEAVY
        return [sql_files.script(FOLDER, name, engine, weight) for name, weight in weights.items()]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        return layout(options).variables()

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        if not engines.get(engine).can("data"):
            return None
        scale = int(options["scale"])
        orders = CUSTOMERS * (1 + MOST_ORDERS) // 2
        return Dataset(
            name="igen",
            key=f"igen-oltp version={VERSION} scale={scale} skew={options['skew']}",
            tables=TABLES,
            schema=sql_files.statements(FOLDER, "schema", engine),
            generator=layout(options).generator(),
            keys=sql_files.statements(FOLDER, "keys", engine),
            references=sql_files.statements(FOLDER, "references", engine),
            rows=scale * (CUSTOMERS + PRODUCTS * (1 + REGIONS) + orders * (1 + (1 + MOST_LINES) // 2)),
            bytes=scale * sql_files.size(FOLDER, "schema", engine),
            facts={"scale": options["scale"], "skew": options["skew"]},
            intact=(
                f"select (select count(*) from igen_customer where customer_id between 1 and {scale * CUSTOMERS}) "
                f"= {scale * CUSTOMERS} and (select max(customer_id) from igen_customer) = {scale * CUSTOMERS} "
                f"and (select count(*) from igen_product where product_id between 1 and {scale * PRODUCTS}) "
                f"= {scale * PRODUCTS} and (select max(product_id) from igen_product) = {scale * PRODUCTS}"
            ),
            fixed=FIXED,
        )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read_state(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, options, before, summary)


WORKLOAD = IgenOltp()
