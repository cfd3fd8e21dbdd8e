"""The transactions: their isolation, and the variables by which they are told what to do."""

from __future__ import annotations

from ironbench import engines
from ironbench.workloads import sql_files
from ironbench.workloads.base import ScriptSource
from ironbench.workloads.brokerage.tables import FOLDER

ISOLATION = {
    "trade_status": "read committed",
    "market_watch": "read committed",
    "security_detail": "read committed",
    "customer_position": "read committed",
    "trade_order": "repeatable read",
    "trade_lookup": "read committed",
    "broker_volume": "read committed",
    "trade_update": "repeatable read",
    "trade_result": "serializable",
    "market_feed": "repeatable read",
    "data_maintenance": "read committed",
}
"""Transaction → the least isolation that TPC-E asks of it.

First those of customers, the most frequent first; then those of the market; then that of maintenance."""

VARIABLES = (
    *("c_id", "tax_id", "history", "account", "mode", "ca_id", "industry", "co_first", "co_last", "start_day"),
    *("brokers", "sector", "symbol", "days", "lob", "frame", "trades", "from_time", "to_time", "max_ca_id", "most"),
    *("most_updates", "exec_tax_id", "exec_first", "exec_last", "is_owner", "by_name", "co_name", "issue"),
    *("trade_type", "quantity", "limit_price", "margin", "lifo", "roll_back", "now_time", "trade_id", "price"),
    *("ticker", "table_no", "co_id", "day", "volume"),
)
"""What whoever chooses a transaction sets before it begins."""


BY_LOCKS = {"trade_result": "read committed"}
"""What is different where the lock of its account keeps results of an account apart: no other transaction changes what
a result reads and writes twice."""


def script(name: str, engine: str, isolation: str = "", logic: str = "client") -> ScriptSource:
    """In the engine's words, begun with the isolation that the transaction needs unless another is given.

    `logic`: with `server` it is one call of a function in the server.
    """
    source = ScriptSource(name, sql_files.script(FOLDER, f"{name}_called" if logic == "server" else name, engine).text)
    begin = engines.get(engine).traits.dialect.transaction(isolation or ISOLATION[name])
    # Only the engine knows how an isolation is asked for.
    return ScriptSource(name, source.text.replace("\nbegin;\n", f"\n{begin};\n", 1))


def cleanup(engine: str) -> tuple[str, ...]:
    """Statements that cancel what a trial left undone; before the next one."""
    return sql_files.statements(FOLDER, "trade_cleanup", engine)
