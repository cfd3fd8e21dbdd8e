"""One client with the same seed and engine leaves the same final state of the brokerage, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokerage_bank import opened
from test_brokerage_trial import Trial, load

pytestmark = [pytest.mark.live, pytest.mark.long]

WRITTEN = (
    *("trade", "trade_history", "trade_request", "settlement", "cash_transaction", "holding", "holding_history"),
    *("holding_summary", "broker", "customer_account", "last_trade", "account_permission", "address", "company"),
    *("customer", "customer_taxrate", "exchange", "financial", "news_item", "security", "taxrate", "watch_item"),
)
"""Tables that transactions write to."""


def state(engine: str, place: Path, **options: str) -> dict[str, list[str]]:
    """Returns the rows of each table after a trial of one client with the same seed."""
    with opened(engine, place) as bank:
        trial = Trial(bank, load(clients=1, duration_s=None, transactions=3000), maintenance="1", **options)
        assert trial.completed["trade_result"] > 100, trial.completed
        assert all(trial.completed.values()) and not trial.summary["failed"], trial.summary
        return {table: sorted(map(str, bank.rows(f"select * from {table}"))) for table in WRITTEN}


def differ(one: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    return [table for table in WRITTEN if one[table] != other[table]]


@pytest.mark.parametrize("engine", ("postgres", "sqlite", "mariadb"))
def test_the_same_seed_leaves_the_same_rows_wherever_the_logic_is(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = state(engine, tmp_path_factory.mktemp("first"))
    assert differ(first, state(engine, tmp_path_factory.mktemp("again"))) == []
    if engine != "sqlite":
        assert differ(first, state(engine, tmp_path_factory.mktemp("server"), logic="server")) == []
