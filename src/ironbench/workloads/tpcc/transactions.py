"""The transactions: their scripts, and the isolation level of each."""

from __future__ import annotations

from pathlib import Path

from ironbench import engines
from ironbench.workloads import sql_files
from ironbench.workloads.base import ScriptSource

FOLDER = Path(__file__).parent
NEW_ORDER, DELIVERY = "new-order", "delivery"
REQUEST = "delivery-request"
"""Name of the script of a terminal that queues a Delivery."""
ISOLATION = {
    NEW_ORDER: "read committed",
    "payment": "read committed",
    "order-status": "repeatable read",
    DELIVERY: "repeatable read",
    "stock-level": "read committed",
}
"""The isolation level of each transaction, with the most frequent transactions first.

TPC-C requires serializable transactions, except that Stock-Level may read what other transactions commit in between
(clause 3.4). New-Order and Payment lock each row before they read a value that they change. The other values that they
read are constants. New-Order and Payment are therefore serializable at read committed. Order-Status and Delivery need a
snapshot.
"""
CALLED = "_called"
"""Suffix of the scripts that call a procedure."""
VARIABLES = (
    *("amount", "by_name", "c_d_id", "c_id", "c_last", "c_w_id", "carrier", "d_id", "delivered", "different", "items"),
    *("lines", "local", "order_lines", "quantities", "suppliers", "threshold", "w_id"),
    *(f"{of}{line}" for line in range(1, 16) for of in "isq"),
)
"""Script variables that the core sets before each transaction."""
_STOCK = "-- STOCK: the updates of each line's stock (stock.sql) are inserted here.\n"
"""Line in the scripts of New-Order that is replaced with the statements of `_stock`."""
_LINES = (5, 15)
"""Minimum and maximum number of lines of an order."""


def has_procedures(engine: str) -> bool:
    return bool(procedures(engine))


def procedures(engine: str) -> tuple[str, ...]:
    """Returns statements that create the procedures. A procedure is created after the procedures that it calls. Returns
    none if the engine has no procedures."""
    return sql_files.statements(FOLDER, "procedures", engine)


def script(name: str, engine: str, in_server: bool = False, batch: bool = False) -> ScriptSource:
    """Returns the transaction's script in the engine's dialect, at its isolation level.

    `in_server`: whether the script calls a procedure, which sets the isolation level. `batch`: whether the updates of
    an order's stock are sent as a pipeline.
    """
    if in_server:
        return ScriptSource(name, sql_files.script(FOLDER, name + CALLED, engine).text)
    text = sql_files.script(FOLDER, name, engine).text
    begin = engines.get(engine).traits.dialect.transaction(ISOLATION[name])
    # The syntax for isolation levels depends on the engine.
    text = text.replace("\nbegin;\n", f"\n{begin};\n", 1)
    if name == NEW_ORDER:
        if text.count(_STOCK) != 1:
            raise ValueError(f"{name} for {engine} does not contain this line exactly once: {_STOCK}")
        text = text.replace(_STOCK, _stock(engine, batch))
    return ScriptSource(name, text)


def _stock(engine: str, batch: bool) -> str:
    """Returns the statements that change the stock of each line."""
    of_line = sql_files.text(FOLDER, "stock", engine)
    least, most = _LINES
    parts = [
        (f"\\if :lines >= {line}\n" if line > least else "") + of_line.replace("N", str(line))
        for line in range(1, most + 1)
    ]
    updates = "".join(parts) + "\\endif\n" * (most - least)
    return f"\\startpipeline\n{updates}\\endpipeline\n" if batch else updates
