"""The 33 tables, at any number of customers, with days of initial trades, on every engine that has a text for them.

Tables, keys and types are those that TPC-E describes; rows and words are ours (crates/ironbench-data/src/brokerage).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ironbench.errors import InputError, written
from ironbench.workloads import sql_files
from ironbench.workloads.base import Dataset, Option
from ironbench.workloads.brokerage.fixed import fixed

FOLDER = Path(__file__).parent
VERSION = 5
"""Raised whenever the same options would give other rows or another schema."""
LOAD_UNIT = 1000
"""Customers come in whole load units."""
BROKERS = 10
"""Of a load unit."""
TRADES_PER_DAY = 57_600
"""Initial trades of a load unit in a business day."""
ROWS_PER_TRADE = 6.75
"""Of all tables that follow from trades."""
ROWS_PER_LOAD_UNIT = 1_090_000
"""Of the others, and of what accounts hold from the first days on; most of them are past prices."""
FIXED_ROWS = 15_400
BYTES_PER_LOAD_UNIT = 130_000_000
"""About what rows of a load unit without trades and news take with their indexes, on any engine."""
NEWS = {"full": 100_000, "small": 1_000, "none": 0}
"""Bytes of the text of each of 1000 news items per load unit."""
FIRST_ID = 4_300_000_001
"""Of customers, companies, brokers, addresses, … (mod.rs of the generator)."""
FIRST_TRADE = 200_000_000_000_001

TABLES = (
    "holding_history", "holding", "holding_summary", "cash_transaction", "settlement", "trade_request", "trade_history",
    "trade", "watch_item", "watch_list", "account_permission", "customer_account", "customer_taxrate", "customer",
    "commission_rate", "charge", "trade_type", "broker", "news_xref", "news_item", "financial", "daily_market",
    "last_trade", "security", "company_competitor", "company", "exchange", "industry", "sector", "taxrate",
    "status_type", "address", "zip_code",
)  # fmt: skip
"""In an order in which they can be dropped."""


class Customers(Option):
    """A multiple of `LOAD_UNIT`."""

    def validated(self, text: str) -> str:
        value = super().validated(text)
        if int(value) % LOAD_UNIT:
            below = max(LOAD_UNIT, int(value) // LOAD_UNIT * LOAD_UNIT)
            raise InputError(
                written("workload.with", f"{self.name}={text}"),
                f"customers come in thousands, and {text} is no multiple of {LOAD_UNIT}",
                f"use {below} or {int(value) // LOAD_UNIT * LOAD_UNIT + LOAD_UNIT}",
            )
        return value


OPTIONS = (
    Customers(
        "customers",
        "1000",
        "a multiple of 1000; each thousand has 5 accounts a customer, 500 companies and 5 years of prices",
        lowest=LOAD_UNIT,
        highest=10_000_000,
    ),
    Option("days", "10", "business days of trades at the start, 57.6 for each customer a day", lowest=1, highest=300),
    Option(
        "lob",
        "small",
        "texts of news: full is 100 MB for 1000 customers, small 1 MB; none: they are empty",
        choices=tuple(NEWS),
    ),
    Option(
        "references",
        "yes",
        "yes: all 49 foreign keys are declared, where the engine can; no: none is",
        choices=("yes", "no"),
    ),
)


def routines(engine: str) -> tuple[str, ...]:
    """Functions for transactions in the server, each after those that it calls; none where the engine has none."""
    texts = ("questions", "changes", "orders", "results")
    return tuple(statement for name in texts for statement in sql_files.statements(FOLDER, name, engine))


def has_references(engine: str) -> bool:
    """Whether its foreign keys can be declared there."""
    return bool(sql_files.statements(FOLDER, "references", engine))


def initial_trades(options: Mapping[str, str]) -> int:
    """How many trades are loaded."""
    return int(options["customers"]) // LOAD_UNIT * TRADES_PER_DAY * int(options["days"])


def dataset(engine: str, options: Mapping[str, str]) -> Dataset:
    customers, days = int(options["customers"]), int(options["days"])
    units = customers // LOAD_UNIT
    trades = initial_trades(options)
    return Dataset(
        name="brokerage",
        key=f"brokerage version={VERSION} customers={customers} days={days} lob={options['lob']} "
        f"references={options['references']}",
        tables=TABLES,
        schema=sql_files.statements(FOLDER, "schema", engine),
        generator={
            "rows": "brokerage",
            "customers": customers,
            "days": days,
            "lob": options["lob"],
            "seed": 0,
        },
        keys=sql_files.statements(FOLDER, "keys", engine),
        references=(
            *(sql_files.statements(FOLDER, "references", engine) if options["references"] == "yes" else ()),
            *routines(engine),
        ),
        rows=int(trades * ROWS_PER_TRADE) + units * ROWS_PER_LOAD_UNIT + FIXED_ROWS,
        bytes=trades * sql_files.size(FOLDER, "schema", engine)
        + units * (BYTES_PER_LOAD_UNIT + LOAD_UNIT * NEWS[options["lob"]]),
        intact=(
            f"select (select count(*) from customer) = {customers} "
            f"and (select max(c_id) from customer) = {FIRST_ID + customers - 1} "
            f"and (select count(*) from customer_account) = {5 * customers} "
            f"and (select count(*) from security) = {685 * units} "
            "and exists (select 1 from holding) and exists (select 1 from holding_summary)"
        ),
        fixed=fixed(FIRST_TRADE + trades, units),
        facts={"customers": str(customers), "days": str(days)},
        large=True,
    )
