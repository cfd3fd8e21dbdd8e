"""The brokerage's tables on a running engine, and its transactions one at a time."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from test_tpch_load import running
from trial import Trial, plan

from ironbench import _core
from ironbench.model.session import Session
from ironbench.printer import Printer
from ironbench.trial.load import prepare
from ironbench.workloads.brokerage import checks, tables, transactions

OPTIONS = {"customers": "1000", "days": "1", "lob": "small", "references": "yes"}
NOW = "2005-01-10 10:00:00.250"
"""A time after all initial trades."""


class Bank:
    def __init__(self, session: Session, logic: str = "client") -> None:
        self.session = session
        self.engine = session.engine
        self._logic = logic
        self._whole = self.engine == "sqlite"
        self._trades = 200_000_900_000_000

    def run(self, name: str, /, seen: str = "", **variables: object) -> str:
        """Runs a transaction once and returns the final value of the variable `seen`."""
        script = transactions.script(name, self.engine, logic=self._logic).text
        if seen:
            self.session.query("delete from seen")
            script += f"\ninsert into seen (told) values (:{seen});\n"
        given: dict[str, object] = dict.fromkeys(transactions.VARIABLES, "0")
        # A function's arguments must have the right types even if it does not need them.
        given |= {"now_time": NOW, "from_time": NOW, "to_time": NOW} | variables
        unknown = set(given) - set(transactions.VARIABLES)
        assert not unknown, unknown
        described = plan(
            self.session.target(),
            script,
            variables=[[key, str(value)] for key, value in given.items()],
            clients=1,
            stop={"transactions": 1},
            on_error="stop",
        )
        summary = Trial(_core.drive(described)).summary
        assert not summary["errors"], summary["error_messages"]
        assert summary["completed"] == 1
        return (self.rows("select told from seen")[0][0] or "") if seen else ""

    def order(self, account: int, kind: str, quantity: int, **variables: object) -> int:
        """Places an order by the account's owner and returns its number."""
        self._trades += 1
        symbol = {} if "symbol" in variables or "by_name" in variables else {"symbol": self.symbol(account)}
        usual: dict[str, object] = {
            **{"ca_id": account, "trade_type": kind, "quantity": quantity, "trade_id": self._trades, "is_owner": 1},
            **{"limit_price": self.money("25"), **symbol},
        }
        self.placed = self.run("trade_order", "placed", **(usual | variables))
        return self._trades

    def result(self, trade: int, price: str) -> None:
        assert self.run("trade_result", "done", trade_id=trade, price=self.money(price)) == "1"

    def traded(self, account: int, kind: str, quantity: int, price: str, **variables: object) -> int:
        """Places an order and processes its result."""
        trade = self.order(account, kind, quantity, **variables)
        self.result(trade, price)
        return trade

    def money(self, dollars: str) -> str:
        return str(int(Decimal(dollars) * 100)) if self._whole else dollars

    def dollars(self, value: str | None) -> Decimal:
        assert value is not None
        return Decimal(value) / 100 if self._whole else Decimal(value)

    def rows(self, sql: str) -> list[tuple[str | None, ...]]:
        return self.session.query(sql)

    def row(self, sql: str) -> tuple[str, ...]:
        (row,) = self.session.query(sql)
        return tuple(value or "" for value in row)

    def number(self, sql: str) -> int:
        return int(self.row(sql)[0])

    def amount(self, sql: str) -> Decimal:
        return self.dollars(self.row(sql)[0])

    def account(self, tax_status: int = 0, place: int = 0) -> int:
        """Returns an account that holds several bought lots of some security and has no trade in progress."""
        return self.number(
            "select h_ca_id from holding join customer_account on ca_id = h_ca_id "
            f"where ca_tax_st = {tax_status} and h_qty > 0 group by h_ca_id, h_s_symb having count(*) >= 3 "
            f"order by h_ca_id limit 1 offset {place}"
        )

    def symbol(self, account: int) -> str:
        """Returns a security of which the account holds several lots."""
        return self.row(
            f"select h_s_symb from holding where h_ca_id = {account} and h_qty > 0 "
            "group by h_s_symb having count(*) >= 3 order by h_s_symb limit 1"
        )[0]

    def lots(self, account: int, symbol: str) -> list[tuple[int, int]]:
        """Returns trade and quantity of each holding, oldest first."""
        found = self.rows(
            f"select h_t_id, h_qty from holding where h_ca_id = {account} and h_s_symb = '{symbol}' "
            "order by h_dts, h_t_id"
        )
        return [(int(trade or 0), int(quantity or 0)) for trade, quantity in found]

    def broken(self) -> list[str]:
        return [check.name for check in checks.all_rules(self.session) if not check.passed]


@contextmanager
def opened(engine: str, place: Path, logic: str = "client", clients: int = 4) -> Iterator[Bank]:
    with running(engine, place, clients) as session:
        prepare.fill(session, tables.dataset(engine, OPTIONS), 2, Printer(io.StringIO(), io.StringIO()))
        session.query("create table seen (told varchar(2000))")
        yield Bank(session, logic)


def ticker(*entries: tuple[str, str, int]) -> str:
    """Encodes ticker entries. Each entry: (symbol, price in the schema's units, quantity)."""
    named: list[dict[str, Any]] = [
        {"symbol": symbol, "price": float(price) if "." in price else int(price), "qty": quantity}
        for symbol, price, quantity in entries
    ]
    return json.dumps(named)
