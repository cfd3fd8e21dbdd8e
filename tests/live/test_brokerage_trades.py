"""The brokerage's transactions on real engines, one at a time: each of their rules is checked against the tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import pytest
from brokerage_bank import NOW, Bank, opened, ticker

from ironbench.workloads.brokerage import transactions

pytestmark = [pytest.mark.live, pytest.mark.long]

CENT = Decimal("0.01")


@pytest.fixture(
    scope="module", params=("postgres", "sqlite", "mariadb", "postgres in the server", "mariadb in the server")
)
def bank(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    engine, _, server = request.param.partition(" ")
    with opened(engine, tmp_path_factory.mktemp("bank"), "server" if server else "client") as bank:
        yield bank


def rounded(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)


def commission(bank: Bank, trade: int, price: str) -> Decimal:
    """Returns the commission from the table of rates."""
    rate, quantity = bank.row(
        "select cr_rate, t_qty from trade join customer_account on ca_id = t_ca_id join customer on c_id = ca_c_id "
        "join security on s_symb = t_s_symb join commission_rate on cr_c_tier = c_tier and cr_tt_id = t_tt_id "
        f"and cr_ex_id = s_ex_id and t_qty between cr_from_qty and cr_to_qty where t_id = {trade}"
    )
    return rounded(bank.dollars(rate) / 100 * int(quantity) * Decimal(price))


def states(bank: Bank, trade: int) -> list[str]:
    return [row[0] or "" for row in bank.rows(f"select th_st_id from trade_history where th_t_id = {trade} order by 1")]


def test_an_order_at_market_is_submitted_with_what_it_will_cost(bank: Bank) -> None:
    account = bank.account()
    symbol = bank.symbol(account)
    trade = bank.order(account, "TMB", 200, lifo=1)
    assert bank.placed == "1"
    status, quantity, cash, lifo, price = bank.row(
        f"select t_st_id, t_qty, t_is_cash, t_lifo, t_trade_price from trade where t_id = {trade}"
    )
    assert (status, quantity, cash, lifo, price) == ("SBMT", "200", "1", "1", "")
    last = bank.amount(f"select lt_price from last_trade where lt_s_symb = '{symbol}'")
    assert bank.amount(f"select t_bid_price from trade where t_id = {trade}") == last
    assert bank.amount(f"select t_comm from trade where t_id = {trade}") == commission(bank, trade, str(last))
    charge = bank.amount(
        "select ch_chrg from charge join customer on ch_c_tier = c_tier join customer_account on ca_c_id = c_id "
        f"where ca_id = {account} and ch_tt_id = 'TMB'"
    )
    assert bank.amount(f"select t_chrg from trade where t_id = {trade}") == charge
    assert states(bank, trade) == ["SBMT"]
    assert bank.rows(f"select 1 from trade_request where tr_t_id = {trade}") == []
    owner = bank.row(
        "select concat(c_f_name, ' ', c_l_name) from customer join customer_account on ca_c_id = c_id "
        f"where ca_id = {account}"
    )
    assert bank.row(f"select t_exec_name from trade where t_id = {trade}") == owner
    bank.result(trade, "25.17")
    assert states(bank, trade) == ["CMPT", "SBMT"]
    assert bank.broken() == []


def test_an_order_with_a_limit_waits_for_its_price(bank: Bank) -> None:
    account = bank.account(place=1)
    trade = bank.order(account, "TLS", 100, limit_price=bank.money("29.99"))
    kind, quantity = bank.row(f"select tr_tt_id, tr_qty from trade_request where tr_t_id = {trade}")
    assert (kind, quantity) == ("TLS", "100")
    assert bank.amount(f"select tr_bid_price from trade_request where tr_t_id = {trade}") == Decimal("29.99")
    assert states(bank, trade) == ["PNDG"] and bank.broken() == []


def test_an_order_may_name_the_company_in_place_of_the_symbol(bank: Bank) -> None:
    account = bank.account()
    symbol = bank.symbol(account)
    company, issue = bank.row(
        f"select co_name, s_issue from security join company on co_id = s_co_id where s_symb = '{symbol}'"
    )
    trade = bank.order(account, "TMB", 100, by_name=1, co_name=company, issue=issue)
    assert bank.row(f"select t_s_symb from trade where t_id = {trade}") == (symbol,)
    bank.result(trade, "25")


def test_an_order_that_is_taken_back_leaves_nothing(bank: Bank) -> None:
    for kind in ("TMB", "TLB"):
        trade = bank.order(bank.account(), kind, 100, roll_back=1)
        assert bank.placed == "0"
        assert bank.rows(f"select 1 from trade where t_id = {trade}") == [] and states(bank, trade) == []
        assert bank.rows(f"select 1 from trade_request where tr_t_id = {trade}") == []


def test_only_who_is_permitted_orders_for_another(bank: Bank) -> None:
    account, tax_id, first, last = bank.row(
        "select ap_ca_id, ap_tax_id, ap_f_name, ap_l_name from account_permission "
        "join customer_account on ca_id = ap_ca_id join customer on c_id = ca_c_id "
        "where ap_tax_id <> c_tax_id order by 1, 2 limit 1"
    )
    symbol = bank.row("select min(s_symb) from security")[0]
    other = {"is_owner": 0, "exec_tax_id": tax_id, "exec_first": first, "exec_last": last, "symbol": symbol}
    trade = bank.order(int(account), "TMB", 100, **other)
    assert bank.placed == "1"
    assert bank.row(f"select t_exec_name from trade where t_id = {trade}") == (f"{first} {last}",)
    bank.result(trade, "25")
    stranger = bank.order(int(account), "TMB", 100, **(other | {"exec_tax_id": "nobody"}))
    assert bank.placed == "0" and bank.rows(f"select 1 from trade where t_id = {stranger}") == []


@pytest.mark.parametrize("lifo", [0, 1])
def test_a_sale_takes_the_oldest_lots_or_the_newest(bank: Bank, lifo: int) -> None:
    account = bank.account(place=2 + lifo)
    symbol = bank.symbol(account)
    lots = bank.lots(account, symbol)
    summary = f"select hs_qty from holding_summary where hs_ca_id = {account} and hs_s_symb = '{symbol}'"
    held = bank.number(summary)
    order = lots[::-1] if lifo else lots
    # All of the first lot, and a part of the second.
    quantity = order[0][1] + 50
    trade = bank.traded(account, "TMS", quantity, "26.50", lifo=lifo)
    left = [(order[1][0], order[1][1] - 50), *order[2:]]
    assert bank.lots(account, symbol) == (left[::-1] if lifo else left)
    assert bank.number(summary) == held - quantity
    moves = bank.rows(
        f"select hh_h_t_id, hh_before_qty, hh_after_qty from holding_history where hh_t_id = {trade} "
        "order by hh_after_qty"
    )
    wanted = [(order[0][0], order[0][1], 0), (order[1][0], order[1][1], order[1][1] - 50)]
    assert [tuple(int(value or 0) for value in move) for move in moves] == wanted
    assert bank.broken() == []


def test_what_is_sold_short_is_owed_and_a_purchase_covers_it(bank: Bank) -> None:
    account = bank.account(place=5)
    symbol = bank.symbol(account)
    summary = f"select hs_qty from holding_summary where hs_ca_id = {account} and hs_s_symb = '{symbol}'"
    held = bank.number(summary)
    sale = bank.traded(account, "TMS", held + 300, "26.50")
    assert bank.lots(account, symbol) == [(sale, -300)] and bank.number(summary) == -300
    cover = bank.traded(account, "TMB", 400, "21.00", symbol=symbol)
    assert bank.lots(account, symbol) == [(cover, 100)] and bank.number(summary) == 100
    bank.traded(account, "TMS", 100, "21.00", symbol=symbol)
    # An account has no holding of size zero.
    assert bank.lots(account, symbol) == [] and bank.rows(summary) == []
    bank.traded(account, "TMB", 200, "21.00", symbol=symbol)
    assert bank.number(summary) == 200 and bank.broken() == []


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_gain_is_taxed_and_a_loss_is_not(bank: Bank, status: int) -> None:
    account = bank.account(status, 8)
    symbol = bank.symbol(account)
    rate = bank.dollars(
        bank.row(
            "select sum(tx_rate) from taxrate join customer_taxrate on cx_tx_id = tx_id "
            f"join customer_account on ca_c_id = cx_c_id where ca_id = {account}"
        )[0]
    )
    oldest, quantity = bank.lots(account, symbol)[0]
    paid = bank.amount(f"select h_price from holding where h_t_id = {oldest}")
    sale = bank.traded(account, "TMS", quantity, "31.33")
    tax = rounded((Decimal("31.33") - paid) * quantity * rate) if status else Decimal(0)
    assert bank.amount(f"select t_tax from trade where t_id = {sale}") == tax
    charge = bank.amount(f"select t_chrg from trade where t_id = {sale}")
    settled = quantity * Decimal("31.33") - charge - commission(bank, sale, "31.33") - (tax if status == 1 else 0)
    assert bank.amount(f"select se_amt from settlement where se_t_id = {sale}") == settled
    next_lot = bank.lots(account, symbol)[0][1]
    loss = bank.traded(account, "TMS", next_lot, "10.00", symbol=symbol)
    assert bank.amount(f"select t_tax from trade where t_id = {loss}") == 0
    assert bank.broken() == []


def test_cash_moves_with_the_settlement_unless_the_trade_is_on_margin(bank: Bank) -> None:
    account = bank.account(2, 12)
    balance = f"select ca_bal from customer_account where ca_id = {account}"
    before = bank.amount(balance)
    trade = bank.traded(account, "TMB", 400, "22.05")
    settled = bank.amount(f"select se_amt from settlement where se_t_id = {trade}")
    charge = bank.amount(f"select t_chrg from trade where t_id = {trade}")
    assert settled == -400 * Decimal("22.05") - charge - commission(bank, trade, "22.05")
    assert bank.amount(balance) == before + settled
    assert bank.amount(f"select ct_amt from cash_transaction where ct_t_id = {trade}") == settled
    assert bank.row(f"select se_cash_type from settlement where se_t_id = {trade}") == ("cash",)
    assert bank.row(f"select se_cash_due_date from settlement where se_t_id = {trade}") == ("2005-01-12",)
    lent = bank.traded(account, "TMB", 400, "22.05", margin=1)
    assert bank.row(f"select se_cash_type from settlement where se_t_id = {lent}") == ("margin",)
    assert bank.rows(f"select 1 from cash_transaction where ct_t_id = {lent}") == []
    assert bank.amount(balance) == before + settled and bank.broken() == []


def test_a_trade_counts_for_its_broker(bank: Bank) -> None:
    account = bank.account()
    broker = bank.number(f"select ca_b_id from customer_account where ca_id = {account}")
    counted = f"select b_num_trades from broker where b_id = {broker}"
    earned = f"select b_comm_total from broker where b_id = {broker}"
    trades, total = bank.number(counted), bank.amount(earned)
    trade = bank.traded(account, "TMB", 800, "23.45")
    assert bank.number(counted) == trades + 1
    assert bank.amount(earned) == total + commission(bank, trade, "23.45")


def test_a_ticker_notes_prices_and_submits_orders_whose_price_has_come(bank: Bank) -> None:
    account = bank.account(place=15)
    symbol = bank.symbol(account)
    other = bank.row(f"select max(s_symb) from security where s_symb <> '{symbol}'")[0]
    volume = bank.number(f"select lt_vol from last_trade where lt_s_symb = '{symbol}'")
    prices = {"TLB": ("24.00", "23.99"), "TSL": ("24.00", "23.99"), "TLS": ("23.98", "23.99")}
    hits = {
        bank.order(account, kind, 100, symbol=symbol, limit_price=bank.money(price)): bank.money(price)
        for kind, (price, _) in prices.items()
    }
    missed = [
        bank.order(account, kind, 100, symbol=symbol, limit_price=bank.money(price))
        for kind, price in (("TLB", "23.98"), ("TSL", "23.98"), ("TLS", "24.00"))
    ]
    away = bank.order(account, "TLB", 100, symbol=other, limit_price=bank.money("29.00"))
    entries = [(symbol, bank.money("27.11"), 375), (symbol, bank.money("23.99"), 100)]
    told = bank.run("market_feed", "triggered", ticker=ticker(entries[1]))
    assert told.split(",") == [f"{trade} {symbol} {price}" for trade, price in hits.items()]
    for trade in hits:
        assert sorted(states(bank, trade)) == ["PNDG", "SBMT"]
    for trade in (*missed, away):
        assert states(bank, trade) == ["PNDG"]
    # The last of several prices remains, and all sold shares count; the price of 27.11 submits sell limit orders.
    told = bank.run("market_feed", "triggered", ticker=ticker(*entries))
    assert told.split() == [str(missed[2]), symbol, bank.money("24.00")]
    assert bank.amount(f"select lt_price from last_trade where lt_s_symb = '{symbol}'") == Decimal("23.99")
    assert bank.number(f"select lt_vol from last_trade where lt_s_symb = '{symbol}'") == volume + 575
    assert bank.row(f"select lt_dts from last_trade where lt_s_symb = '{symbol}'")[0].startswith(NOW[:-1])
    assert bank.run("market_feed", "triggered", ticker=ticker((other, bank.money("29.01"), 1))) == ""
    for trade in (*hits, missed[2]):
        bank.result(trade, "24.00")
    assert bank.broken() == []


def test_what_waits_shows_in_the_volume_of_its_broker(bank: Bank) -> None:
    names = [row[0] for row in bank.rows("select b_name from broker order by b_id")]
    sector = bank.row("select min(sc_name) from sector")[0]
    bank.run("broker_volume", brokers=json.dumps(names), sector=sector)


def test_wording_is_changed_and_changed_back(bank: Bank) -> None:
    trades = [row[0] for row in bank.rows("select t_id from trade where t_is_cash = 1 order by t_id limit 20")]
    account, day = bank.row("select t_ca_id, t_dts from trade where t_id = 200000000000007")
    symbol = bank.symbol(bank.account())
    window = {"from_time": "2005-01-03 09:00:00", "to_time": "2005-01-03 17:00:00", "max_ca_id": 99999999999999}
    frames: tuple[dict[str, object], ...] = (
        {"frame": 1, "trades": json.dumps([int(trade or 0) for trade in trades])},
        {"frame": 2, "ca_id": account},
        {"frame": 3, "symbol": symbol},
    )
    texts = (
        "select t_exec_name from trade order by t_id",
        "select se_cash_type from settlement order by se_t_id",
        "select ct_name from cash_transaction order by ct_t_id",
    )
    for frame, text in zip(frames, texts, strict=True):
        before = bank.rows(text)
        bank.run("trade_update", most=20, most_updates=3, **frame, **window)
        assert sum(old != new for old, new in zip(before, bank.rows(text), strict=True)) in (2, 3), frame
        bank.run("trade_update", most=20, most_updates=3, **frame, **window)
        assert bank.rows(text) == before
        bank.run("trade_lookup", most=20, **frame, **window)
    bank.run("trade_lookup", frame=4, ca_id=account, from_time=day)
    assert bank.broken() == []


@pytest.mark.parametrize("frame", [1, 2, 3])
def test_an_update_of_twenty_trades_does_not_look_at_all_of_them(bank: Bank, frame: int) -> None:
    if bank.engine != "mariadb":
        pytest.skip("counts what it reads")
    account = bank.row("select t_ca_id from trade where t_id = 200000000000007")[0]
    window = {"from_time": "2005-01-03 09:00:00", "to_time": NOW, "max_ca_id": 99999999999999}
    what = {"trades": "[200000000000001,200000000000002]", "ca_id": account, "symbol": bank.symbol(bank.account())}
    before = read(bank)
    bank.run("trade_update", frame=frame, most=20, most_updates=20, **what, **window)
    assert read(bank) - before < 10_000
    bank.run("trade_update", frame=frame, most=20, most_updates=20, **what, **window)


def read(bank: Bank) -> int:
    """Returns the number of rows read by scans so far. Reading this number is also a small scan."""
    return int(bank.row("show global status like 'Handler_read_rnd_next'")[1])


def test_what_is_only_read_is_read_in_each_of_its_ways(bank: Bank) -> None:
    account = bank.account()
    symbol = bank.symbol(account)
    customer, tax_id = bank.row(
        f"select c_id, c_tax_id from customer join customer_account on ca_c_id = c_id where ca_id = {account}"
    )
    company, industry = bank.row(
        "select co_id, in_name from security join company on co_id = s_co_id join industry on in_id = co_in_id "
        f"where s_symb = '{symbol}'"
    )
    bank.run("trade_status", ca_id=account)
    bank.run("customer_position", c_id=customer, history=1, account=0)
    bank.run("customer_position", tax_id=tax_id)
    for lob in (0, 1):
        bank.run("security_detail", symbol=symbol, start_day="2003-05-05", days=20, lob=lob)
    modes: tuple[dict[str, object], ...] = (
        {"c_id": customer},
        {"ca_id": account},
        {"industry": industry, "co_first": company, "co_last": company},
    )
    for mode, asked in enumerate(modes, 1):
        bank.run("market_watch", mode=mode, start_day="2003-05-05", **asked)


MAINTAINED = (
    "select * from account_permission",
    "select * from address",
    "select * from company",
    "select * from customer",
    "select * from customer_taxrate",
    "select dm_date, dm_s_symb, dm_vol from daily_market where dm_s_symb = '{symbol}'",
    "select * from exchange",
    "select * from financial",
    "select ni_id, ni_dts from news_item",
    "select * from security",
    "select * from taxrate",
    "select * from watch_item",
)


def test_maintenance_changes_a_little_of_one_table_at_a_time(bank: Bank) -> None:
    account = bank.account()
    symbol = bank.symbol(account)
    customer = bank.number(f"select ca_c_id from customer_account where ca_id = {account}")
    company = bank.number(f"select s_co_id from security where s_symb = '{symbol}'")
    given: dict[str, object] = {"c_id": customer, "ca_id": account, "co_id": company, "symbol": symbol}

    def changed(number: int, **more: object) -> int:
        read = MAINTAINED[number - 1].format(symbol=symbol)
        before = set(bank.rows(read))
        bank.run("data_maintenance", table_no=number, day=3, volume=2, **(given | more))
        return len(before - set(bank.rows(read)))

    for number, table in enumerate(MAINTAINED, 1):
        assert 0 < changed(number) < 80, table
    assert changed(2, c_id=0) == 1
    assert bank.broken() == []


def test_what_a_trial_left_undone_is_cancelled(bank: Bank) -> None:
    account = bank.account()
    submitted = bank.order(account, "TMB", 100)
    pending = bank.order(account, "TLB", 100)
    for statement in transactions.cleanup(bank.engine):
        bank.session.query(statement)
    assert states(bank, submitted) == ["CNCL", "SBMT"]
    assert states(bank, pending) == ["CNCL", "PNDG", "SBMT"]
    assert bank.number("select count(*) from trade_request") == 0
    assert bank.number("select count(*) from trade where t_st_id not in ('CMPT', 'CNCL')") == 0
    assert bank.broken() == []
