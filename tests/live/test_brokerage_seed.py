"""One client, the same seed and engine: the same final state of the brokerage, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokerage_bank import opened
from test_brokerage_trial import Trial, load

pytestmark = [pytest.mark.live, pytest.mark.long]

WRITTEN = (
    *("trade", "trade_history", "trade_request", "settlement", "cash_transaction", "holding", "holding_history"),
    *("holding_summary", "broker", "customer_account", "last_trade", "account_permission", "address", "company"),
)
"""Tables that transactions write to."""


@pytest.mark.parametrize("engine", ("postgres", "sqlite", "mariadb"))
def test_the_same_seed_leaves_the_same_rows(engine: str, tmp_path: Path) -> None:
    states = []
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        with opened(engine, tmp_path / place) as bank:
            trial = Trial(bank, load(clients=1, duration_s=None, transactions=3000))
            assert trial.completed["trade_result"] > 100, trial.completed
            states.append({table: sorted(map(str, bank.rows(f"select * from {table}"))) for table in WRITTEN})
    differ = [table for table in WRITTEN if states[0][table] != states[1][table]]
    assert not differ
