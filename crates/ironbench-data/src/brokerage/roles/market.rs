//! The market, which answers orders after a delay, watches limits, and sends prices in batches.
//!
//! A market order leads to a Trade-Result after a delay. A limit order waits until the price curve meets its limit. The
//! ticker then contains the price. The Market-Feed that writes this price finds the order and sends it to the market.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use ironbench_core::drive::plan::Part;

use super::inputs::Order;
use crate::brokerage::market::{self, price_cents};
use crate::brokerage::trades::delay_ms;
use crate::row_rng::RowRng;

const MS: u64 = 1_000_000;
/// Number of prices in a Market-Feed.
pub const BATCH: usize = 20;
/// Traded quantity in a ticker entry whose price met a limit. Entries with other prices have one of the next two
/// quantities.
const TRIGGER_QUANTITY: i64 = 375;
const OTHER_QUANTITIES: [i64; 2] = [325, 425];
/// Quantity of an order that was not placed in this process.
const UNKNOWN_QUANTITY: i64 = 100;
/// Delay before a failed job is retried.
const RETRY_NS: u64 = 100 * MS;
const MAX_TRIES: u32 = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub security: u64,
    pub price_cents: i64,
    pub quantity: i64,
    /// The order whose limit this price met.
    pub meets: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    Result { trade: i64, security: u64, quantity: i64 },
    Feed(Vec<Entry>),
}

/// A pending job of the market, either a Trade-Result or a Market-Feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingJob {
    /// Time at which the job first became due. Retries do not change it.
    pub since: u64,
    pub tries: u32,
    pub work: Work,
}

/// Converts the time of the trial to the position on the price curve.
#[derive(Debug, Clone, Copy)]
pub struct Curve {
    /// Start of the trial, in milliseconds of business time.
    pub start_ms: i64,
    /// Speed of the curve relative to the clock.
    pub speed: f64,
}

impl Curve {
    pub fn ms(&self, at_ns: u64) -> i64 {
        self.start_ms + (at_ns as f64 / MS as f64 * self.speed) as i64
    }

    /// Converts curve time to nanoseconds.
    fn ns(&self, curve_ms: i64) -> u64 {
        (curve_ms as f64 / self.speed * MS as f64).ceil() as u64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Market orders without a result.
    pub pending: usize,
    /// Number of orders that wait for their price. If a Market-Feed of this process finds an order of another process,
    /// the other process still counts that order. This process therefore subtracts the order, so that the sum over all
    /// processes is correct.
    pub limits: i64,
    /// Maximum number of jobs that were due and not started.
    pub longest: usize,
    /// Number of jobs that the market gave up because they failed repeatedly.
    pub given_up: usize,
}

/// The order numbers of this load process. The processes use consecutive numbers in rotation.
#[derive(Debug, Clone, Copy)]
pub struct OrderNumbers {
    pub first: i64,
    pub part: Part,
}

impl OrderNumbers {
    pub fn first_own(&self) -> i64 {
        self.first + self.part.number as i64
    }

    fn is_own(&self, trade: i64) -> bool {
        (trade - self.first_own()) % self.part.of as i64 == 0
    }
}

/// The market of one load process. Instants are in nanoseconds from the start of the trial.
pub struct Market {
    curve: Curve,
    securities: u64,
    rng: RowRng,
    /// Due time, sequence number and trade of each pending result. The sequence number keeps simultaneous results in
    /// order of arrival.
    delayed: BinaryHeap<Reverse<(u64, u64, i64)>>,
    /// Security and quantity of each submitted market order.
    submitted: HashMap<i64, (u64, i64)>,
    sequence: u64,
    /// Orders that wait for their price.
    limits: HashMap<i64, Order>,
    /// The waiting orders, each with the time at which the price meets its limit.
    meets: BinaryHeap<Reverse<(u64, i64)>>,
    /// Prices that met a limit and wait for a place in a batch.
    triggers: VecDeque<Entry>,
    ticker: Vec<Entry>,
    /// Orders of this process that a Market-Feed found before the client had received the reply to its commit.
    found_early: HashSet<i64>,
    ready: VecDeque<PendingJob>,
    /// Failed jobs, and when to retry them.
    failed: VecDeque<(u64, PendingJob)>,
    longest: usize,
    given_up: usize,
    trades: OrderNumbers,
    /// Number of orders of other processes that a Market-Feed of this process has found.
    found_for_others: usize,
}

impl Market {
    pub fn new(curve: Curve, securities: u64, rng: RowRng, trades: OrderNumbers) -> Self {
        Self {
            trades,
            found_for_others: 0,
            curve,
            securities,
            rng,
            delayed: BinaryHeap::new(),
            submitted: HashMap::new(),
            sequence: 0,
            limits: HashMap::new(),
            meets: BinaryHeap::new(),
            triggers: VecDeque::new(),
            ticker: Vec::with_capacity(BATCH),
            found_early: HashSet::new(),
            ready: VecDeque::new(),
            failed: VecDeque::new(),
            longest: 0,
            given_up: 0,
        }
    }

    /// Handles an order that has been committed.
    pub fn place(&mut self, order: Order, now: u64) {
        if self.found_early.remove(&order.trade) {
            return;
        }
        if order.kind.is_market() {
            self.submit(order.trade, order.security, order.quantity, now);
            return;
        }
        let (falls, time_ms) = (order.kind.waits_for_fall(), self.curve.ms(now));
        let waits_ms = market::meets_in_ms(order.security, falls, order.limit_cents, time_ms);
        self.limits.insert(order.trade, order);
        self.meets.push(Reverse((now + self.curve.ns(waits_ms), order.trade)));
    }

    /// Submits an order to the market. Returns false if the order was already submitted.
    fn submit(&mut self, trade: i64, security: u64, quantity: i64, now: u64) -> bool {
        if self.submitted.insert(trade, (security, quantity)).is_some() {
            return false;
        }
        let due = now + delay_ms(&mut self.rng) as u64 * MS;
        self.sequence += 1;
        self.delayed.push(Reverse((due, self.sequence, trade)));
        true
    }

    /// Returns the next due job, or the time at which to ask again.
    pub fn next(&mut self, now: u64) -> Result<PendingJob, u64> {
        while let Some(&Reverse((due, _, trade))) = self.delayed.peek()
            && due <= now
        {
            self.delayed.pop();
            let (security, quantity) = self.submitted[&trade];
            self.ready.push_back(PendingJob { since: due, tries: 0, work: Work::Result { trade, security, quantity } });
        }
        self.longest = self.longest.max(self.ready.len());
        if self.failed.front().is_some_and(|(from, ..)| *from <= now)
            && let Some((_, due)) = self.failed.pop_front()
        {
            return Ok(due);
        }
        self.ready.pop_front().ok_or_else(|| {
            let delayed = self.delayed.peek().map_or(u64::MAX, |Reverse((due, ..))| *due);
            delayed.min(self.failed.front().map_or(u64::MAX, |(from, ..)| *from))
        })
    }

    pub fn price_cents(&self, security: u64, now: u64) -> i64 {
        price_cents(security, self.curve.ms(now))
    }

    /// Handles a trade whose result has been stored. Adds its price and one other price to the ticker.
    pub fn traded(&mut self, trade: i64, price_cents: i64, now: u64) {
        let Some((security, quantity)) = self.submitted.remove(&trade) else { return };
        self.trigger_limits(now);
        self.add_to_ticker(Entry { security, price_cents, quantity, meets: None }, now);
        let other = self.triggers.pop_front().unwrap_or_else(|| {
            let (security, quantity) = (self.rng.below(self.securities), OTHER_QUANTITIES[self.rng.below(2) as usize]);
            Entry { security, price_cents: self.price_cents(security, now), quantity, meets: None }
        });
        self.add_to_ticker(other, now);
    }

    fn add_to_ticker(&mut self, entry: Entry, now: u64) {
        self.ticker.push(entry);
        if self.ticker.len() == BATCH {
            let batch = std::mem::replace(&mut self.ticker, Vec::with_capacity(BATCH));
            self.ready.push_back(PendingJob { since: now, tries: 0, work: Work::Feed(batch) });
        }
    }

    fn trigger_limits(&mut self, now: u64) {
        while let Some(&Reverse((at, trade))) = self.meets.peek()
            && at <= now
        {
            self.meets.pop();
            // The order is no longer in the list if an earlier price of the same security has sent it to the market.
            let Some(order) = self.limits.get(&trade) else { continue };
            let (security, price_cents) = (order.security, self.price_cents(order.security, at));
            self.triggers.push_back(Entry { security, price_cents, quantity: TRIGGER_QUANTITY, meets: Some(trade) });
        }
    }

    /// Handles the orders that a Market-Feed has sent to the market, given as `id symbol price,…`.
    pub fn fed(&mut self, triggered: &str, now: u64) {
        let order = |text: &str| {
            let mut words = text.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next().and_then(market::security_of)?))
        };
        let mut orders: Vec<(i64, u64)> = triggered.split(',').filter_map(order).collect();
        // Engines return the orders in different order. Sorting makes their delays depend on the seed only.
        orders.sort_unstable();
        for (trade, security) in orders {
            let order = self.limits.remove(&trade);
            let is_own = self.trades.is_own(trade);
            if is_own && order.is_none() {
                self.found_early.insert(trade);
            }
            let quantity = order.map_or(UNKNOWN_QUANTITY, |order| order.quantity);
            self.found_for_others += usize::from(self.submit(trade, security, quantity, now) && !is_own);
        }
    }

    /// Handles a Market-Feed on an engine without data, which cannot return the orders that it found. The orders come
    /// from this market's own list instead.
    pub fn met(&mut self, entries: &[Entry], now: u64) {
        for order in entries.iter().filter_map(|entry| entry.meets) {
            if let Some(Order { trade, security, quantity, .. }) = self.limits.remove(&order) {
                self.submit(trade, security, quantity, now);
            }
        }
    }

    /// Handles a failed job. The job is retried, so that no trade is lost. After `MAX_TRIES` tries, the market gives
    /// it up.
    pub fn failed(&mut self, due: PendingJob, now: u64) {
        let tries = due.tries + 1;
        if tries == MAX_TRIES {
            self.given_up += 1;
        } else {
            self.failed.push_back((now + RETRY_NS, PendingJob { tries, ..due }));
        }
    }

    pub fn counts(&self) -> Counts {
        Counts {
            pending: self.submitted.len(),
            limits: self.limits.len() as i64 - self.found_for_others as i64,
            longest: self.longest,
            given_up: self.given_up,
        }
    }
}
