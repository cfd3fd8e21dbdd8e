"""Concurrent trade results on a serializable PostgreSQL: results that touch different rows do not conflict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from brokerage_bank import NOW, Bank, opened

from ironbench import _core

pytestmark = [pytest.mark.live, pytest.mark.long]

RESULTS = 12


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with opened("postgres", tmp_path_factory.mktemp("bank")) as bank:
        yield bank


def accounts_of_two_brokers(bank: Bank) -> list[tuple[int, int]]:
    """Returns the pairs of accounts, far apart, that buy at the same time and share no broker."""
    first, second = (
        [
            int(row[0] or 0)
            for row in bank.rows(f"select ca_id from customer_account where ca_b_id = {broker} order by 1")
        ]
        for broker in bank.row("select min(b_id), max(b_id) from broker")
    )
    return list(zip(first[:RESULTS], second[-RESULTS:], strict=True))


def test_results_of_neighbouring_trades_for_different_accounts_and_brokers_both_commit(bank: Bank) -> None:
    connection = bank.session.target()["connection"]
    with (
        closing(_core.Connection(json.dumps(connection).encode())) as one,
        closing(_core.Connection(json.dumps(connection).encode())) as other,
    ):
        for accounts in accounts_of_two_brokers(bank):
            # Their numbers, and so their positions in the key of trades, are adjacent.
            trades = [bank.order(account, "TMB", 100, symbol=held(bank, account)) for account in accounts]
            for line in (one, other):
                line.query("begin isolation level serializable")
            for line, trade in zip((one, other), trades, strict=True):
                line.query(f"select t_ca_id from trade where t_id = {trade}")
            for line, trade in zip((one, other), trades, strict=True):
                line.query(f"select brokerage_trade_result({trade}, 25.17, '{NOW}')")
            for line in (one, other):
                line.query("commit")
    assert bank.broken() == []


def held(bank: Bank, account: int) -> str:
    return bank.row(f"select min(hs_s_symb) from holding_summary where hs_ca_id = {account}")[0]


def test_a_trade_is_found_by_an_index_that_keeps_neighbours_apart(bank: Bank) -> None:
    plans = bank.rows("explain select t_ca_id from trade where t_id = 200000000000001")
    assert any("trade_number" in (line or "") for (line,) in plans), plans
