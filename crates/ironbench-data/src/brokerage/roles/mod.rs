//! Who does what in a trial of the brokerage: customers ask, the market answers, and somebody maintains the data.
//!
//! Clients of the plan are customers: they share one deck. Further clients are the market's, and wait until a result or a
//! batch of prices is due; the last one maintains data every minute. Where the plan wants the same final state each time,
//! one client does everything, and time is what it has done.
//!
//! A trial in parts has as many processes of load: each has a deck, a market and numbers of trades of its own, and the first
//! maintains the data. A Market-Feed may find orders of another process; the market that it tells of them answers.

mod deck;
mod inputs;
mod market;
mod person;
mod sheet;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

use ironbench_core::drive::jobs::{Jobs, Role};
use ironbench_core::drive::plan::Part;
use ironbench_core::{Error, Result};
use pgbench_script::Program;
use serde::Deserialize;

use super::market::PERIOD_MS;
use super::population::TRADES_PER_DAY;
use super::{Brokerage, Purpose, trade_id};
use crate::Generator;
use crate::dice::Dice;
use deck::{Deck, Kind};
use inputs::{Activity, Times};
use market::{Curve, Market, Numbers};
use person::{Duty, Person, TABLES};
pub use sheet::NAMES as VARIABLES;
use sheet::NAMES;

const SECOND: u64 = 1_000_000_000;
/// A transaction of a client that does everything takes so much of its time.
const STEP_NS: u64 = 10_000_000;

/// What a plan says of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// What was loaded.
    pub data: Generator,
    /// Of all parts together. None: one for four customers.
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
    /// When the last trade that is there was placed or done, in milliseconds of business: this trial's are later. None, and
    /// before the morning after the initial trades: they begin in that morning.
    #[serde(default)]
    pub first_time: Option<i64>,
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
    part: Part,
    activity: Activity,
    clock: Clock,
    curve: Curve,
    /// The time of business at which the trial begins; prices are at the same place of their curve whenever that is.
    begins_ms: i64,
    deck: OnceLock<Mutex<Deck>>,
    next_trade: AtomicI64,
    /// Which of the tables, counted from 0, is maintained first.
    first_table: i64,
    market: Mutex<Market>,
}

impl Roles {
    /// For `clients` customers, those of this part.
    ///
    /// # Errors
    /// Input: these options make no sense.
    pub fn new(options: Options, clients: usize, part: Part, seed: u64) -> Result<Self> {
        let Generator::Brokerage(brokerage) = options.data.clone() else {
            return Err(Error::input("data of the roles", "they are not the brokerage's"));
        };
        let positive = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        if !positive(options.maintenance_s) || !positive(options.price_period_s) {
            return Err(Error::input("roles of the brokerage", "a period is not above zero seconds"));
        }
        if options.alone && part.all_clients != 1 {
            return Err(Error::input("roles of the brokerage", "who does everything alone is one client"));
        }
        let curve = Curve { start_ms: inputs::morning(&brokerage), speed: quarter_hour() / options.price_period_s };
        let initial = brokerage.load_units() * TRADES_PER_DAY * brokerage.days;
        let delays = Dice::new(seed, Purpose::Delays as u64, part.number as u64);
        let trades = Numbers { first: options.first_trade.unwrap_or(trade_id(initial)), part };
        Ok(Self {
            activity: Activity::new(),
            clock: if options.alone { Clock::Stepped(AtomicU64::new(0)) } else { Clock::Running(OnceLock::new()) },
            curve,
            begins_ms: options.first_time.unwrap_or(curve.start_ms).max(curve.start_ms),
            deck: OnceLock::new(),
            next_trade: AtomicI64::new(trades.first_own()),
            // A trial is shorter than the cycle: if each began it anew, the last tables would never have their turn.
            first_table: Dice::new(seed, Purpose::Maintenance as u64, 0).below(TABLES as u64) as i64,
            market: Mutex::new(Market::new(curve, brokerage.securities(), delays, trades)),
            customers: clients,
            part,
            brokerage,
            options,
            seed,
        })
    }

    fn market(&self) -> MutexGuard<'_, Market> {
        self.market.lock().expect("no thread panics while it holds the market")
    }

    fn all_market_clients(&self) -> usize {
        self.options.market_clients.unwrap_or(self.part.all_clients / 4).max(1)
    }

    /// This part's share, as even as can be; a market without a client would answer nobody.
    fn market_clients(&self) -> usize {
        let (all, Part { number, of, .. }) = (self.all_market_clients(), self.part);
        (all * (number + 1) / of - all * number / of).max(1)
    }

    /// Only the first part maintains the data: all parts are one house.
    fn maintenance_clients(&self) -> usize {
        usize::from(self.part.number == 0)
    }

    /// What tells the inputs of a client apart from those of others, in whatever part it is.
    fn place(&self, client: usize) -> u64 {
        let place = match self.duty(client) {
            Duty::Customer | Duty::Everything => self.part.first_client + client,
            // The market draws no inputs.
            Duty::Market | Duty::Maintenance => self.part.all_clients + self.all_market_clients(),
        };
        place as u64
    }

    /// The number of the next order.
    fn trade(&self) -> i64 {
        self.next_trade.fetch_add(self.part.of as i64, Relaxed)
    }

    fn times(&self, at: u64) -> Times {
        Times { now_ms: self.begins_ms + (at / 1_000_000) as i64, curve_ms: self.curve.ms(at) }
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
    fn name(&self) -> &'static str {
        "market"
    }

    fn variables(&self) -> &'static [&'static str] {
        NAMES
    }

    fn waiting_clients(&self) -> usize {
        if self.options.alone { 0 } else { self.market_clients() + self.maintenance_clients() }
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
        let deck = Deck::new(there, Dice::new(self.seed, Purpose::Deck as u64, self.part.number as u64));
        if deck.is_empty() {
            return Err(Error::input("scripts", "none is a transaction that customers of the brokerage ask for"));
        }
        self.deck.get_or_init(|| Mutex::new(deck));
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        Box::new(Person::new(self, program, client))
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        let counts = self.market().counts();
        let figures = [
            ("market_pending_trades", counts.pending as i64),
            ("market_waiting_limits", counts.limits),
            ("market_queue_max", counts.longest as i64),
            ("market_given_up", counts.given_up as i64),
        ];
        figures.map(|(name, value)| (name.to_owned(), value as f64)).into()
    }
}
