//! Roles of the clients in a brokerage trial: customers, the market, and data maintenance.
//!
//! The clients of the plan are customers, and share one deck. There are additional clients. All of them except the last
//! belong to the market, and wait for results and for batches of prices. The last one maintains data every minute. If
//! the final state must be reproducible, a single client does all work, and each of its transactions advances the time
//! by a fixed step.
//!
//! In a trial in parts, each load process has its own deck, market and trade numbers, and the first process maintains
//! the data. A Market-Feed may find an order that another process has placed. The market of the process that ran the
//! Market-Feed then answers this order.

mod client_role;
mod deck;
mod inputs;
mod market;
mod names;
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
use crate::deck::Deck;
use crate::input_variables::Name;
use crate::row_rng::RowRng;
use client_role::{ClientKind, ClientRole, TABLES};
use deck::Kind;
use inputs::{Activity, Times};
use market::{Curve, Market, OrderNumbers};
use names::Input;

/// Names of the input variables.
pub const VARIABLES: &[&str] = Input::ALL;

const SECOND: u64 = 1_000_000_000;
/// Virtual duration of a transaction, if one client does all work.
const STEP_NS: u64 = 10_000_000;

/// Options of the roles, as given in the plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The generator of the loaded data.
    pub data: Generator,
    /// Total number of market clients over all parts. With None, there is one for every four customers.
    #[serde(default)]
    pub market_clients: Option<usize>,
    /// Whether one client does all work sequentially, so that the same seed gives the same final state.
    #[serde(default)]
    pub alone: bool,
    /// Interval of Data-Maintenance in seconds.
    #[serde(default = "a_minute")]
    pub maintenance_s: f64,
    /// Time in which a price moves from $20 to $30 and back, 900 s in the standard. A limit order waits for a sixth of
    /// this time on average, and never longer than this time.
    #[serde(default = "quarter_hour")]
    pub price_period_s: f64,
    /// Number of the first trade, which must exceed the numbers of all existing trades. With None, it is the number
    /// after the initial trades.
    #[serde(default)]
    pub first_trade: Option<i64>,
    /// Time of the last existing trade, in milliseconds of business time. This trial starts after it, and not before
    /// the morning after the initial trades. With None, it starts on that morning.
    #[serde(default)]
    pub first_time: Option<i64>,
    /// Whether the engine stores no data. On such an engine, a Market-Feed cannot return the orders that it found.
    #[serde(default)]
    pub no_data: bool,
    /// Whether prices are stored as integer cents.
    #[serde(default)]
    pub hundredths: bool,
}

fn a_minute() -> f64 {
    60.0
}

fn quarter_hour() -> f64 {
    PERIOD_MS as f64 / 1000.0
}

/// The clock of a trial.
enum Clock {
    /// Real time since the first call.
    Running(OnceLock<u64>),
    /// Number of transactions started.
    Stepped(AtomicU64),
}

impl Clock {
    /// Returns the time of a transaction that starts now, in nanoseconds since the start.
    fn step(&self, now: u64) -> u64 {
        match self {
            Self::Running(start) => now.saturating_sub(*start.get_or_init(|| now)),
            Self::Stepped(steps) => STEP_NS * steps.fetch_add(1, Relaxed),
        }
    }

    /// Returns the time of a transaction that ends now.
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
    /// Business time at which the trial starts. This time does not affect prices, which start at the same position in
    /// every trial.
    begins_ms: i64,
    deck: OnceLock<Mutex<Deck<Kind>>>,
    next_trade: AtomicI64,
    /// Index of the table that is maintained first.
    first_table: i64,
    market: Mutex<Market>,
}

impl Roles {
    /// Creates the roles of this part, which has `clients` customers.
    ///
    /// # Errors
    /// Input: the options are invalid.
    pub fn new(options: Options, clients: usize, part: Part, seed: u64) -> Result<Self> {
        let Generator::Brokerage(brokerage) = options.data.clone() else {
            return Err(Error::input("data of the roles", "are not brokerage data"));
        };
        let positive = |seconds: f64| seconds.is_finite() && seconds > 0.0;
        if !positive(options.maintenance_s) || !positive(options.price_period_s) {
            return Err(Error::input("roles of the brokerage", "a period is not greater than zero seconds"));
        }
        if options.alone && part.all_clients != 1 {
            return Err(Error::input("roles of the brokerage", "this mode needs exactly one client"));
        }
        let curve = Curve { start_ms: inputs::morning(&brokerage), speed: quarter_hour() / options.price_period_s };
        let initial = brokerage.load_units() * TRADES_PER_DAY * brokerage.days;
        let delays = RowRng::new(seed, Purpose::Delays as u64, part.number as u64);
        let trades = OrderNumbers { first: options.first_trade.unwrap_or(trade_id(initial)), part };
        Ok(Self {
            activity: Activity::new(),
            clock: if options.alone { Clock::Stepped(AtomicU64::new(0)) } else { Clock::Running(OnceLock::new()) },
            curve,
            begins_ms: options.first_time.unwrap_or(curve.start_ms).max(curve.start_ms),
            deck: OnceLock::new(),
            next_trade: AtomicI64::new(trades.first_own()),
            // A trial maintains one table after the other, and is too short for all of them. The trial starts with a
            // random table, because the last tables would otherwise never be maintained.
            first_table: RowRng::new(seed, Purpose::Maintenance as u64, 0).below(TABLES as u64) as i64,
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

    /// Returns the number of market clients of this part. Each part has an equal share of them, but at least one,
    /// because orders would otherwise get no answer.
    fn market_clients(&self) -> usize {
        let (all, Part { number, of, .. }) = (self.all_market_clients(), self.part);
        (all * (number + 1) / of - all * number / of).max(1)
    }

    /// Returns the number of clients that maintain data. Only the first part has one, because all parts use the same
    /// database.
    fn maintenance_clients(&self) -> usize {
        usize::from(self.part.number == 0)
    }

    /// Returns a number that determines the random inputs of a client. No two clients of any part have the same number,
    /// except clients without inputs.
    fn client_number(&self, client: usize) -> u64 {
        let client_number = match self.kind_of_client(client) {
            ClientKind::Customer | ClientKind::Everything => self.part.first_client + client,
            // Market clients draw no inputs, so they can share a number.
            ClientKind::Market | ClientKind::Maintenance => self.part.all_clients + self.all_market_clients(),
        };
        client_number as u64
    }

    /// Returns the number of the next order.
    fn trade(&self) -> i64 {
        self.next_trade.fetch_add(self.part.of as i64, Relaxed)
    }

    fn times(&self, at: u64) -> Times {
        Times { now_ms: self.begins_ms + (at / 1_000_000) as i64, curve_ms: self.curve.ms(at) }
    }

    fn kind_of_client(&self, client: usize) -> ClientKind {
        if self.options.alone {
            ClientKind::Everything
        } else if client < self.customers {
            ClientKind::Customer
        } else if client < self.customers + self.market_clients() {
            ClientKind::Market
        } else {
            ClientKind::Maintenance
        }
    }
}

/// Returns the index of the script for each type of transaction. Returns None for a type without a script.
fn scripts(program: &Program) -> [Option<usize>; Kind::ALL.len()] {
    let known = |kind: Kind| program.scripts.iter().position(|script| script.name == kind.name() && script.weight > 0);
    Kind::ALL.map(known)
}

impl Jobs for Roles {
    fn name(&self) -> &'static str {
        "market"
    }

    fn variables(&self) -> &'static [&'static str] {
        VARIABLES
    }

    fn waiting_clients(&self) -> usize {
        if self.options.alone { 0 } else { self.market_clients() + self.maintenance_clients() }
    }

    fn check(&self, program: &Program) -> Result<()> {
        let scripts = scripts(program);
        let there = |kind: Kind| scripts[kind as usize].is_some();
        for answer in [Kind::TradeResult, Kind::MarketFeed] {
            if there(Kind::TradeOrder) && !there(answer) {
                let cause = format!("needs {}, which processes orders", answer.name());
                return Err(Error::input(format!("script {}", Kind::TradeOrder.name()), cause));
            }
        }
        // If some types of transaction have no script, the others keep their proportions.
        let kinds = Kind::ALL.into_iter().filter(|kind| there(*kind)).map(|kind| (kind, kind.cards()));
        let deck = Deck::new(kinds, RowRng::new(self.seed, Purpose::Deck as u64, self.part.number as u64));
        if deck.is_empty() {
            return Err(Error::input("scripts", "no script is a transaction of brokerage customers"));
        }
        self.deck.get_or_init(|| Mutex::new(deck));
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        Box::new(ClientRole::new(self, program, client))
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
