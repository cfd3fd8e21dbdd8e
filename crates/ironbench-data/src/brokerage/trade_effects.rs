//! Tables derived from the initial trades: the trades themselves, their effects, and the remaining holdings.

use std::ops::Range;

use super::costs::tax_cents;
use super::holdings::{Holdings, Step};
use super::market::{self, Symbol};
use super::population::{self, BROKERS, GROUP, LOAD_UNIT, MAX_HELD};
use super::trades::{Group, Trade, Trader};
use super::{Brokerage, Purpose, account_id, id, trade_id};
use crate::row::{Sink, TextBuffer};
use crate::words::{FIRST_NAMES, LAST_NAMES};

/// A table derived from the initial trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedTable {
    Trade,
    TradeHistory,
    HoldingHistory,
    Settlement,
    CashTransaction,
    Holding,
    HoldingSummary,
}

impl DerivedTable {
    pub fn of(table: &str) -> Option<Self> {
        match table {
            "trade" => Some(Self::Trade),
            "trade_history" => Some(Self::TradeHistory),
            "holding_history" => Some(Self::HoldingHistory),
            "settlement" => Some(Self::Settlement),
            "cash_transaction" => Some(Self::CashTransaction),
            "holding" => Some(Self::Holding),
            "holding_summary" => Some(Self::HoldingSummary),
            _ => None,
        }
    }
}

/// Number of days from a trade to its settlement.
const SETTLED_AFTER: i64 = 2;
/// Tax status of an account whose tax is withheld from the proceeds of its sales. With other taxable accounts, the
/// owner pays the tax later.
const WITHHELD: u64 = 1;

impl Brokerage {
    /// Emits the rows that belong to these groups of customers.
    pub(super) fn emit_derived<S: Sink>(
        &self,
        table: DerivedTable,
        groups: Range<u64>,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let counts = population::Trades::new(self.days);
        let mut buffer = TextBuffer::default();
        let mut steps = Vec::new();
        for group in groups {
            let mut group = Group::new(self, &counts, group);
            let mut holdings = Holdings::new(GROUP as usize);
            let names = if table == DerivedTable::Trade { self.executors(&group.traders) } else { Vec::new() };
            while let Some((number, who, trade)) = group.advance() {
                if table == DerivedTable::TradeHistory {
                    history(number, &trade, sink)?;
                    continue;
                }
                steps.clear();
                let gain = holdings.apply(number, who, &trade, &mut steps);
                let trader = &group.traders[who];
                let tax_status = trader.accounts[trade.account].tax_status;
                let tax = if tax_status == 0 { 0 } else { tax_cents(gain, trader.tax_hundredths) };
                let settled = trade.settled_cents() - if tax_status == WITHHELD { tax } else { 0 };
                match table {
                    DerivedTable::Trade => {
                        let (owner, others) = &names[who];
                        let name = if trade.by_other { &others[trade.account] } else { owner };
                        trade_row(number, trader, &trade, tax, name, sink)?;
                    }
                    DerivedTable::HoldingHistory => holding_history(number, &steps, sink)?,
                    DerivedTable::Settlement => settlement(number, &trade, settled, sink)?,
                    DerivedTable::CashTransaction if trade.cash => {
                        cash_transaction(number, &trade, settled, &mut buffer, sink)?
                    }
                    _ => {}
                }
            }
            if matches!(table, DerivedTable::Holding | DerivedTable::HoldingSummary) {
                remaining_holdings(table, &group.traders, &holdings, sink)?;
            }
        }
        Ok(())
    }

    /// Returns the name of each trader. For each account, also returns the name of another person who may trade for it.
    /// This name is empty if there is no such person.
    fn executors(&self, traders: &[Trader]) -> Vec<(String, Vec<String>)> {
        let full = |customer| {
            let (first, last) = self.name(customer);
            format!("{first} {last}")
        };
        let of = |trader: &Trader| {
            let others = trader.accounts.iter().map(|account| account.trusted[0].map_or_else(String::new, full));
            (full(trader.number), others.collect())
        };
        traders.iter().map(of).collect()
    }

    /// Returns the first and last name of a broker. The number after the name makes it unique.
    pub fn broker_name(&self, number: u64) -> (&'static str, &'static str) {
        let mut rng = self.rng(Purpose::Broker, number);
        (rng.pick(FIRST_NAMES), rng.pick(LAST_NAMES))
    }

    /// Emits the brokers of a load unit, with their numbers of trades and commissions.
    pub(super) fn broker<S: Sink>(&self, unit: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let counts = population::Trades::new(self.days);
        let mut totals = [(0, 0); BROKERS as usize];
        for customer in unit * LOAD_UNIT..(unit + 1) * LOAD_UNIT {
            let trader = Trader::new(self, &counts, customer);
            for trade in trader.trades(self) {
                let broker = trader.accounts[trade.account].broker;
                let (trades, commissions) = &mut totals[(broker % BROKERS) as usize];
                *trades += 1;
                *commissions += trade.commission_cents;
            }
        }
        for (index, (trades, commissions)) in totals.into_iter().enumerate() {
            let number = unit * BROKERS + index as u64;
            let (first, last) = self.broker_name(number);
            sink.bigint(id(number));
            sink.text("ACTV");
            sink.text(buffer.of(format_args!("{first} {last} {}", number + 1)));
            sink.integer(trades);
            sink.decimal(commissions);
            sink.end_row()?;
        }
        Ok(())
    }
}

fn trade_row<S: Sink>(
    number: u64,
    trader: &Trader,
    trade: &Trade,
    tax_cents: i64,
    executor: &str,
    sink: &mut S,
) -> Result<(), S::Error> {
    sink.bigint(trade_id(number));
    sink.moment(market::moment(trade.completed_ms));
    sink.text("CMPT");
    sink.text(trade.kind.id());
    sink.smallint(trade.cash.into());
    sink.text(Symbol::of(trade.security).as_str());
    sink.integer(trade.quantity as i32);
    sink.decimal(trade.bid_cents);
    sink.bigint(account_id(trader.accounts[trade.account].number));
    sink.text(executor);
    sink.decimal(trade.price_cents);
    sink.decimal(trade.charge_cents);
    sink.decimal(trade.commission_cents);
    sink.decimal(tax_cents);
    sink.smallint(trade.lifo.into());
    sink.end_row()
}

/// Emits the status changes of a trade. A limit order is pending before it is submitted.
fn history<S: Sink>(number: u64, trade: &Trade, sink: &mut S) -> Result<(), S::Error> {
    let placed = trade.placed_ms.map(|time| ("PNDG", time));
    let rest = [("SBMT", trade.submitted_ms), ("CMPT", trade.completed_ms)];
    for (status, time_ms) in placed.into_iter().chain(rest) {
        sink.bigint(trade_id(number));
        sink.text(status);
        sink.moment(market::moment(time_ms));
        sink.end_row()?;
    }
    Ok(())
}

fn holding_history<S: Sink>(number: u64, steps: &[Step], sink: &mut S) -> Result<(), S::Error> {
    for step in steps {
        sink.bigint(trade_id(step.holding));
        sink.bigint(trade_id(number));
        sink.integer(step.before as i32);
        sink.integer(step.after as i32);
        sink.end_row()?;
    }
    Ok(())
}

fn settlement<S: Sink>(number: u64, trade: &Trade, settled_cents: i64, sink: &mut S) -> Result<(), S::Error> {
    sink.bigint(trade_id(number));
    sink.text(if trade.cash { "cash" } else { "margin" });
    sink.date((market::day(trade.completed_ms) + SETTLED_AFTER) as i32);
    sink.decimal(settled_cents);
    sink.end_row()
}

fn cash_transaction<S: Sink>(
    number: u64,
    trade: &Trade,
    settled_cents: i64,
    buffer: &mut TextBuffer,
    sink: &mut S,
) -> Result<(), S::Error> {
    sink.bigint(trade_id(number));
    sink.moment(market::moment(trade.completed_ms));
    sink.decimal(settled_cents);
    let symbol = Symbol::of(trade.security);
    sink.text(buffer.of(format_args!("{}: {} shares of {}", trade.kind.name(), trade.quantity, symbol.as_str())));
    sink.end_row()
}

/// Emits the holdings after all trades.
fn remaining_holdings<S: Sink>(
    table: DerivedTable,
    traders: &[Trader],
    holdings: &Holdings,
    sink: &mut S,
) -> Result<(), S::Error> {
    for (who, trader) in traders.iter().enumerate() {
        for (which, account) in trader.accounts.iter().enumerate() {
            debug_assert!(account.securities.count <= MAX_HELD);
            for index in 0..account.securities.count {
                let position = holdings.of(who, which, index as usize);
                let symbol = Symbol::of(account.securities.at(index));
                if table == DerivedTable::HoldingSummary {
                    if !position.is_empty() {
                        sink.bigint(account_id(account.number));
                        sink.text(symbol.as_str());
                        sink.integer(position.iter().map(|holding| holding.quantity).sum::<i64>() as i32);
                        sink.end_row()?;
                    }
                    continue;
                }
                for holding in position {
                    sink.bigint(trade_id(holding.trade));
                    sink.bigint(account_id(account.number));
                    sink.text(symbol.as_str());
                    sink.moment(market::moment(holding.completed_ms));
                    sink.decimal(holding.price_cents);
                    sink.integer(holding.quantity as i32);
                    sink.end_row()?;
                }
            }
        }
    }
    Ok(())
}
