"""Batch jobs inside the database, over an order history by month. Its design: docs/concepts/igen-batch.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ironbench.model.record import Check
from ironbench.model.session import Session
from ironbench.model.system import Choice
from ironbench.workloads import base
from ironbench.workloads.base import Dataset, Option, ScriptSource, Workload
from ironbench.workloads.igen_batch import checks

FOLDER = Path(__file__).parent
VERSION = 1
"""Raised whenever the same options would give other rows or another schema."""
MONTHS = 12
PRODUCTS = 1000
"""Per unit of scale, as the lines of a month."""
LINES_PER_MONTH = 10_000
REPRICED = 20
JOBS = {"post": 20, "reprice": 8, "summary": 8, "age": 1}
"""Job → weight. Between two ageings about twenty postings fill the newest months."""
TABLES = (
    "batch_job",
    "batch_price_change",
    "batch_archive",
    "batch_ledger",
    "batch_month",
    "batch_history",
    "batch_product",
)


class IgenBatch(Workload):
    name = "igen-batch"
    doc = (
        "Batch jobs inside the database: postings, new prices, months aged out and in, summaries; an order history "
        "in range partitions with triggers, stored procedures and sequences, or without them where the engine has none"
    )
    needs = ("scripts", "data")
    counts = ("job", "jobs")
    options = (
        Option("scale", "1", "size: 120,000 lines of history, some 9 to 18 MB, per unit", lowest=1, highest=10_000),
        Option("lines", "500", "of one posting", lowest=1, highest=1_000_000),
    )

    def scripts(self, engine: str, choice: Choice) -> list[ScriptSource]:
        return [base.script(FOLDER, name, engine, weight) for name, weight in JOBS.items()]

    def variables(self, options: Mapping[str, str]) -> dict[str, str]:
        products = PRODUCTS * int(options["scale"])
        return {"lines": options["lines"], "products": str(products), "repriced": str(REPRICED)}

    def dataset(self, engine: str, options: Mapping[str, str]) -> Dataset | None:
        scale = int(options["scale"])
        products, lines = scale * PRODUCTS, scale * LINES_PER_MONTH
        return Dataset(
            name="batch",
            key=f"igen-batch version={VERSION} scale={scale}",
            tables=TABLES,
            schema=base.statements(FOLDER, "schema", engine),
            generator={
                "rows": "batch",
                "products": products,
                "months": MONTHS,
                "lines_per_month": lines,
                "seed": 0,
            },
            keys=base.statements(FOLDER, "keys", engine),
            references=base.statements(FOLDER, "references", engine),
            rows=products + MONTHS * lines,
            bytes=scale * base.size(FOLDER, "schema", engine),
            facts={"scale": options["scale"]},
            intact=(
                f"select (select count(*) from batch_product) = {products} "
                f"and (select count(*) from batch_month) = {MONTHS}"
            ),
        )

    def before(self, session: Session, options: Mapping[str, str]) -> Any:
        return checks.read(session)

    def check(
        self, session: Session, options: Mapping[str, str], before: Any, summary: Mapping[str, Any]
    ) -> tuple[Check, ...]:
        return checks.check(session, before, summary)


WORKLOAD = IgenBatch()
