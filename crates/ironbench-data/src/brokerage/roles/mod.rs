//! Who does what in a trial of the brokerage: customers ask, the market answers, and somebody maintains the data.
//!
//! Clients of the plan are customers: they share one deck. Further clients are the market's, and wait until a result or a
//! batch of prices is due; the last one maintains data every minute. Where the plan wants the same final state each time,
//! one client does everything, and time is what it has done.

mod deck;
mod inputs;
mod market;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

use ironbench_core::drive::jobs::{Jobs, Next, Role};
use ironbench_core::{Error, Result};
use pgbench_script::{Program, Variables};
use serde::Deserialize;

use super::market::{PERIOD_MS, Symbol};
use super::population::TRADES_PER_DAY;
use super::{Brokerage, Purpose, trade_id};
use crate::Generator;
use crate::dice::Dice;
use crate::row::Phrase;
use deck::{Deck, Kind};
use inputs::{Activity, Inputs, Order, Times};
use market::{Curve, Due, Entry, Market, Work};
pub use sheet::NAMES as VARIABLES;
use sheet::{Input, NAMES, Sheet, Slots};

const SECOND: u64 = 1_000_000_000;
/// Lines in which clients wait.
const MARKET: usize = 0;
const MAINTENANCE: usize = 1;
/// The market looks as often as this for work of other threads. Only of orders with a shorter delay any is late for it:
/// one in 200.
const LOOK_NS: u64 = 5_000_000;
/// A transaction of a client that does everything takes so much of its time.
const STEP_NS: u64 = 10_000_000;
const TABLES: i64 = 12;

/// What a plan says of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// What was loaded.
    pub data: Generator,
    /// None: one for four customers.
    #[serde(default)]
    pub market_clients: Option<usize>,
    /// One client does everything, one after the other: the same seed gives the same final state.
    #[serde(default)]
    pub alone: bool,
    /// Seconds from one Data-Maintenance to the next.
    #[serde(default = "a_minute")]
    pub maintenance_s: f64,
    /// In which prices go from $20 to $30 and back: 900 s by the standard. An order with a limit waits a sixth of it on
    /// average and all of it at most.
    #[serde(default = "quarter_hour")]
    pub price_period_s: f64,
    /// Number of the first trade, above all that are there; None: the one after the initial trades.
    #[serde(default)]
    pub first_trade: Option<i64>,
    /// The engine holds none: no Market-Feed says which orders it found.
    #[serde(default)]
    pub no_data: bool,
    /// Prices are whole hundredths.
    #[serde(default)]
    pub hundredths: bool,
}

fn a_minute() -> f64 {
    60.0
}

fn quarter_hour() -> f64 {
    PERIOD_MS as f64 / 1000.0
}

/// What passes while the trial runs.
enum Clock {
    /// The time since somebody first asked.
    Running(OnceLock<u64>),
    /// The transactions begun.
    Stepped(AtomicU64),
}

impl Clock {
    /// Of a transaction that begins now: nanoseconds from the start.
    fn step(&self, now: u64) -> u64 {
        match self {
            Self::Running(start) => now.saturating_sub(*start.get_or_init(|| now)),
            Self::Stepped(steps) => STEP_NS * steps.fetch_add(1, Relaxed),
        }
    }

    /// Of one that ends.
    fn passed(&self) -> u64 {
        match self {
            Self::Running(_) => self.step(ironbench_core::measure::clock::now()),
            Self::Stepped(steps) => STEP_NS * steps.load(Relaxed),
        }
    }

    fn start(&self) -> u64 {
        match self {
            Self::Running(start) => start.get().copied().unwrap_or_default(),
            Self::Stepped(_) => 0,
        }
    }
}

/// The roles of one trial.
pub struct Roles {
    brokerage: Brokerage,
    options: Options,
    seed: u64,
    customers: usize,
    activity: Activity,
    clock: Clock,
    curve: Curve,
    deck: OnceLock<Mutex<Deck>>,
    next_trade: AtomicI64,
    market: Mutex<Market>,
}

impl Roles {
    /// For `clients` customers.
    ///
    /// # Errors
    /// Input: these options make no sense.
    pub fn new(options: Options, clients: usize, seed: u64) -> Result<Self> {
        let Generator::Brokerage(brokerage) = options.data.clone() else {
            return Err(Error::input("data of the roles", "they are not the brokerage's"));
        };
        let positive = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        if !positive(options.maintenance_s) || !positive(options.price_period_s) {
            return Err(Error::input("roles of the brokerage", "a period is not above zero seconds"));
        }
        if options.alone && clients != 1 {
            return Err(Error::input("roles of the brokerage", "who does everything alone is one client"));
        }
        let curve = Curve { start_ms: inputs::morning(&brokerage), speed: quarter_hour() / options.price_period_s };
        let initial = brokerage.load_units() * TRADES_PER_DAY * brokerage.days;
        let delays = Dice::new(seed, Purpose::Delays as u64, 0);
        Ok(Self {
            activity: Activity::new(),
            clock: if options.alone { Clock::Stepped(AtomicU64::new(0)) } else { Clock::Running(OnceLock::new()) },
            curve,
            deck: OnceLock::new(),
            next_trade: AtomicI64::new(options.first_trade.unwrap_or(trade_id(initial))),
            market: Mutex::new(Market::new(curve, brokerage.securities(), delays)),
            customers: clients,
            brokerage,
            options,
            seed,
        })
    }

    fn market(&self) -> MutexGuard<'_, Market> {
        self.market.lock().expect("no thread panics while it holds the market")
    }

    fn market_clients(&self) -> usize {
        self.options.market_clients.unwrap_or(self.customers / 4).max(1)
    }

    fn duty(&self, client: usize) -> Duty {
        if self.options.alone {
            Duty::Everything
        } else if client < self.customers {
            Duty::Customer
        } else if client < self.customers + self.market_clients() {
            Duty::Market
        } else {
            Duty::Maintenance
        }
    }
}

/// The number of each kind's script.
fn scripts(program: &Program) -> [Option<usize>; Kind::ALL.len()] {
    let known = |kind: Kind| program.scripts.iter().position(|script| script.name == kind.name() && script.weight > 0);
    Kind::ALL.map(known)
}

impl Jobs for Roles {
    fn variables(&self) -> &'static [&'static str] {
        NAMES
    }

    fn waiting_clients(&self) -> usize {
        if self.options.alone { 0 } else { self.market_clients() + 1 }
    }

    fn check(&self, program: &Program) -> Result<()> {
        let scripts = scripts(program);
        let there = |kind: Kind| scripts[kind as usize].is_some();
        for answer in [Kind::TradeResult, Kind::MarketFeed] {
            if there(Kind::TradeOrder) && !there(answer) {
                let cause = format!("it asks for {}, which answers orders", answer.name());
                return Err(Error::input(format!("script {}", Kind::TradeOrder.name()), cause));
            }
        }
        let deck = Deck::new(there, Dice::new(self.seed, Purpose::Deck as u64, 0));
        if deck.is_empty() {
            return Err(Error::input("scripts", "none is a transaction that customers of the brokerage ask for"));
        }
        self.deck.get_or_init(|| Mutex::new(deck));
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        let dice = Dice::new(self.seed, Purpose::Inputs as u64, client as u64);
        Box::new(Person {
            roles: self,
            duty: self.duty(client),
            scripts: scripts(program),
            slots: Slots::of(program),
            inputs: Inputs::new(&self.brokerage, &self.activity, dice),
            phrase: Phrase::default(),
            list: String::new(),
            maintained: 0,
            hand: Hand::Other,
        })
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        let counts = self.market().counts();
        let figures = [
            ("market_pending_trades", counts.pending),
            ("market_waiting_limits", counts.limits),
            ("market_queue_max", counts.longest),
            ("market_given_up", counts.given_up),
        ];
        figures.map(|(name, value)| (name.to_owned(), value as f64)).into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Duty {
    Customer,
    Market,
    Maintenance,
    Everything,
}

/// What a client is doing, as far as somebody has to know when it is done.
enum Hand {
    Order(Order, bool),
    Market { due: Due, price_cents: i64 },
    Other,
}

struct Person<'a> {
    roles: &'a Roles,
    duty: Duty,
    scripts: [Option<usize>; Kind::ALL.len()],
    slots: Slots,
    inputs: Inputs<'a>,
    phrase: Phrase,
    list: String,
    /// Times that data were maintained.
    maintained: u64,
    hand: Hand,
}

impl Person<'_> {
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
                let trade = roles.next_trade.fetch_add(1, Relaxed);
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
        sheet.moment(Input::NowTime, roles.times(at).now_ms);
        let (kind, price_cents) = match &due.work {
            Work::Result { trade, security, .. } => {
                let price_cents = super::market::price_cents(*security, roles.curve.ms(at));
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

    /// When data are maintained next: the first time after half the pace.
    fn maintenance_at(&self) -> u64 {
        let pace = self.roles.options.maintenance_s * SECOND as f64;
        (pace * (self.maintained as f64 + 0.5)) as u64
    }

    fn maintain(&mut self, variables: &mut Variables) -> usize {
        let Self { roles, slots, inputs, phrase, .. } = self;
        let sheet = &mut Sheet { slots, variables, phrase, hundredths: roles.options.hundredths };
        inputs.data_maintenance(self.maintained as i64 % TABLES + 1, sheet);
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

impl Roles {
    fn times(&self, at: u64) -> Times {
        Times { now_ms: self.curve.start_ms + (at / 1_000_000) as i64, curve_ms: self.curve.ms(at) }
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

/// As a JSON array of objects.
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
