"""The transactions: their isolation levels, and the script variables that select their inputs."""

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
"""Lowest isolation level that TPC-E permits for each transaction. Transactions of customers come first, in order of
frequency. Transactions of the market and maintenance follow.
"""

VARIABLES = (
    *("c_id", "tax_id", "history", "account", "mode", "ca_id", "industry", "co_first", "co_last", "start_day"),
    *("brokers", "sector", "symbol", "days", "lob", "frame", "trades", "from_time", "to_time", "max_ca_id", "most"),
    *("most_updates", "exec_tax_id", "exec_first", "exec_last", "is_owner", "by_name", "co_name", "issue"),
    *("trade_type", "quantity", "limit_price", "margin", "lifo", "roll_back", "now_time", "trade_id", "price"),
    *("ticker", "table_no", "co_id", "day", "volume"),
)
"""Script variables that the core sets before each transaction."""


BY_LOCKS = {"trade_result": "read committed"}
"""Isolation levels that are sufficient if each Trade-Result first locks its account. The lock serializes results for
the same account. No other transaction changes rows that a result both reads and writes."""


def script(name: str, engine: str, isolation: str = "", logic: str = "client") -> ScriptSource:
    """Returns the transaction's script in the engine's dialect. If no `isolation` is given, the script uses the
    isolation level that the transaction needs.

    With `logic="server"`, the transaction is one call of a server-side function.
    """
    source = ScriptSource(name, sql_files.script(FOLDER, f"{name}_called" if logic == "server" else name, engine).text)
    begin = engines.get(engine).traits.dialect.transaction(isolation or ISOLATION[name])
    # The syntax for isolation levels depends on the engine.
    return ScriptSource(name, source.text.replace("\nbegin;\n", f"\n{begin};\n", 1))


def cleanup(engine: str) -> tuple[str, ...]:
    """Returns statements that cancel open orders of an earlier trial. The statements are executed before the next
    trial."""
    return sql_files.statements(FOLDER, "trade_cleanup", engine)
