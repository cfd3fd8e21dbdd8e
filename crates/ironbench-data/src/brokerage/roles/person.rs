//! The work of one client. This module chooses the client's next transaction and its inputs, and handles the result of
//! the last transaction.

use std::fmt::Write;

use ironbench_core::drive::jobs::{LAGGING_LINE, Next, Role};
use pgbench_script::{Program, Variables};

use super::deck::Kind;
use super::inputs::{Inputs, Order};
use super::market::{Due, Entry, Work};
use super::names::Input;
use super::{Roles, SECOND, scripts};
use crate::brokerage::Purpose;
use crate::brokerage::market::{Symbol, moment, price_cents};
use crate::dice::Dice;
use crate::row::Phrase;
use crate::sheet::{Sheet, Slots};

/// Numbers of the queues in which market clients and the maintenance client wait.
const MARKET: usize = LAGGING_LINE;
const MAINTENANCE: usize = MARKET + 1;
/// Interval at which the market checks for work from other threads. An order can be answered late only if its delay is
/// shorter than this interval, which is the case for one order in 200.
const LOOK_NS: u64 = 5_000_000;
pub(super) const TABLES: i64 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    Customer,
    Market,
    Maintenance,
    Everything,
}

/// The current job of a client, with the data that are needed when the job ends.
enum Hand {
    Order(Order, bool),
    Market { due: Due, price_cents: i64 },
    Other,
}

pub(super) struct Person<'a> {
    roles: &'a Roles,
    duty: Duty,
    scripts: [Option<usize>; Kind::ALL.len()],
    slots: Slots,
    inputs: Inputs<'a>,
    phrase: Phrase,
    list: String,
    /// Number of Data-Maintenance transactions so far.
    maintained: u64,
    hand: Hand,
}

impl<'a> Person<'a> {
    pub(super) fn new(roles: &'a Roles, program: &Program, client: usize) -> Self {
        let dice = Dice::new(roles.seed, Purpose::Inputs as u64, roles.place(client));
        Self {
            roles,
            duty: roles.duty(client),
            scripts: scripts(program),
            slots: Slots::of::<Input>(program),
            inputs: Inputs::new(&roles.brokerage, &roles.activity, dice),
            phrase: Phrase::default(),
            list: String::new(),
            maintained: 0,
            hand: Hand::Other,
        }
    }

    fn script(&self, kind: Kind) -> usize {
        self.scripts[kind as usize].expect("no kind is chosen that has no script")
    }

    fn customer(&mut self, at: u64, variables: &mut Variables) -> usize {
        let Self { roles, slots, inputs, phrase, .. } = self;
        let deck = roles.deck.get().expect("the scripts were checked");
        let kind = deck.lock().expect("no thread panics while it draws").draw();
        let sheet = &mut Sheet { slots, variables, phrase, hundredths: roles.options.hundredths };
        match kind {
            Kind::BrokerVolume => inputs.broker_volume(sheet),
            Kind::CustomerPosition => inputs.customer_position(sheet),
            Kind::MarketWatch => inputs.market_watch(sheet),
            Kind::SecurityDetail => inputs.security_detail(sheet),
            Kind::TradeLookup => inputs.trade_lookup(sheet),
            Kind::TradeOrder => {
                let trade = roles.trade();
                let (order, roll_back) = inputs.trade_order(trade, roles.times(at), sheet);
                self.hand = Hand::Order(order, roll_back);
            }
            Kind::TradeStatus => inputs.trade_status(sheet),
            Kind::TradeUpdate => inputs.trade_update(sheet),
            Kind::DataMaintenance | Kind::MarketFeed | Kind::TradeResult => unreachable!("the deck has no such card"),
        }
        self.script(kind)
    }

    fn answer(&mut self, due: Due, at: u64, variables: &mut Variables) -> usize {
        let Self { roles, slots, phrase, list, .. } = self;
        let sheet = &mut Sheet { slots, variables, phrase, hundredths: roles.options.hundredths };
        sheet.moment(Input::NowTime, moment(roles.times(at).now_ms));
        let (kind, price_cents) = match &due.work {
            Work::Result { trade, security, .. } => {
                let price_cents = price_cents(*security, roles.curve.ms(at));
                sheet.number(Input::TradeId, *trade);
                sheet.cents(Input::Price, price_cents);
                (Kind::TradeResult, price_cents)
            }
            Work::Feed(entries) => {
                write_ticker(list, entries, roles.options.hundredths);
                sheet.text(Input::Ticker, list);
                sheet.text(Input::Triggered, "");
                (Kind::MarketFeed, 0)
            }
        };
        self.hand = Hand::Market { due, price_cents };
        self.script(kind)
    }

    /// Returns the time of the next Data-Maintenance. The first one starts after half of the interval.
    fn maintenance_at(&self) -> u64 {
        let pace = self.roles.options.maintenance_s * SECOND as f64;
        (pace * (self.maintained as f64 + 0.5)) as u64
    }

    fn maintain(&mut self, variables: &mut Variables) -> usize {
        let Self { roles, slots, inputs, phrase, .. } = self;
        let sheet = &mut Sheet { slots, variables, phrase, hundredths: roles.options.hundredths };
        inputs.data_maintenance((roles.first_table + self.maintained as i64) % TABLES + 1, sheet);
        self.maintained += 1;
        self.script(Kind::DataMaintenance)
    }

    fn maintains(&self) -> bool {
        self.scripts[Kind::DataMaintenance as usize].is_some()
    }

    fn everything(&mut self, at: u64, variables: &mut Variables) -> usize {
        if self.maintains() && self.maintenance_at() <= at {
            return self.maintain(variables);
        }
        let due = self.roles.market().next(at);
        match due {
            Ok(due) => self.answer(due, at, variables),
            Err(_) => self.customer(at, variables),
        }
    }
}

impl Role for Person<'_> {
    fn line(&self) -> Option<usize> {
        match self.duty {
            Duty::Customer | Duty::Everything => None,
            Duty::Market => Some(MARKET),
            Duty::Maintenance => Some(MAINTENANCE),
        }
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let at = self.roles.clock.step(now);
        let job = |script| Next::Job { script, due: now };
        match self.duty {
            Duty::Customer => job(self.customer(at, variables)),
            Duty::Everything => job(self.everything(at, variables)),
            Duty::Market => {
                let found = self.roles.market().next(at);
                match found {
                    Ok(due) => {
                        let since = self.roles.clock.start() + due.since;
                        Next::Job { script: self.answer(due, at, variables), due: since }
                    }
                    Err(wake) => Next::NotBefore(now + wake.saturating_sub(at).clamp(1, LOOK_NS)),
                }
            }
            Duty::Maintenance if !self.maintains() => Next::NotBefore(u64::MAX),
            Duty::Maintenance => {
                let due = self.maintenance_at();
                if due > at {
                    return Next::NotBefore(now + (due - at));
                }
                let script = self.maintain(variables);
                Next::Job { script, due: self.roles.clock.start() + due }
            }
        }
    }

    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool {
        let hand = std::mem::replace(&mut self.hand, Hand::Other);
        if matches!(hand, Hand::Other) {
            return false;
        }
        let Self { roles, slots, phrase, .. } = self;
        let mut sheet = Sheet { slots, variables, phrase, hundredths: roles.options.hundredths };
        let at = roles.clock.passed();
        match hand {
            Hand::Order(order, roll_back) => {
                if well && sheet.is_set_or(Input::Placed, !roll_back) {
                    roles.market().place(order, at);
                }
                roll_back
            }
            Hand::Market { due, .. } if !well => {
                roles.market().failed(due, at);
                false
            }
            Hand::Market { due, price_cents } => {
                match due.work {
                    Work::Result { trade, .. } => roles.market().traded(trade, price_cents, at),
                    Work::Feed(entries) if roles.options.no_data => roles.market().met(&entries, at),
                    Work::Feed(_) => roles.market().fed(sheet.left(Input::Triggered), at),
                }
                false
            }
            Hand::Other => false,
        }
    }
}

/// Writes the ticker as a JSON array of objects.
fn write_ticker(list: &mut String, entries: &[Entry], hundredths: bool) {
    list.clear();
    for (place, Entry { security, price_cents, quantity, .. }) in entries.iter().enumerate() {
        let symbol = Symbol::of(*security);
        let begin = if place == 0 { '[' } else { ',' };
        // Writing to a String cannot fail.
        let _ = write!(list, "{begin}{{\"symbol\":\"{}\",\"price\":", symbol.as_str());
        let _ = match hundredths {
            true => write!(list, "{price_cents}"),
            false => write!(list, "{}.{:02}", price_cents / 100, price_cents % 100),
        };
        let _ = write!(list, ",\"qty\":{quantity}}}");
    }
    list.push(']');
}
