//! The initial trades. Each is a pure function of its customer and its index among that customer's trades.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::costs;
use super::market::{self, HIGHEST_CENTS, Kind, LOWEST_CENTS};
use super::population::{self, Account, GROUP};
use super::{Brokerage, Purpose};
use crate::row_rng::RowRng;

/// Maximum time from the submission of an order to its trade. The next constant is the mean.
const LONGEST_DELAY_MS: u64 = 5000;
const MEAN_DELAY_MS: u64 = 1000;

/// A trade. Times are in milliseconds of business time since the first opening.
#[derive(Debug, Clone)]
pub struct Trade {
    /// Index of the account in the customer's accounts.
    pub account: usize,
    /// Index of the security in the account's securities.
    pub security_index: usize,
    pub security: u64,
    pub kind: Kind,
    pub cash: bool,
    pub lifo: bool,
    pub by_other: bool,
    pub quantity: i64,
    pub bid_cents: i64,
    pub price_cents: i64,
    pub charge_cents: i64,
    pub commission_cents: i64,
    /// Time at which the order was placed, if it had to wait for its price.
    pub placed_ms: Option<i64>,
    pub submitted_ms: i64,
    pub completed_ms: i64,
}

impl Trade {
    pub fn signed(&self) -> i64 {
        if self.kind.is_sell() { -self.quantity } else { self.quantity }
    }

    /// Returns the amount that the account receives. The amount is negative if the account pays.
    pub fn settled_cents(&self) -> i64 {
        -self.signed() * self.price_cents - self.charge_cents - self.commission_cents
    }
}

/// A customer, with the properties that its trades need.
pub struct Trader {
    pub number: u64,
    pub tier: u64,
    pub accounts: Vec<Account>,
    pub tax_hundredths: i64,
    trades: u64,
}

impl Trader {
    pub fn new(brokerage: &Brokerage, trades: &population::Trades, number: u64) -> Self {
        let (country, division) = brokerage.tax_rates(number);
        Self {
            number,
            tier: population::tier(population::rank(number)),
            accounts: brokerage.accounts(number).collect(),
            tax_hundredths: costs::country_rate(country) + costs::division_rate(division),
            trades: trades.of(number),
        }
    }

    /// Returns all trades in order of completion, without taxes.
    pub fn trades<'a>(&'a self, brokerage: &'a Brokerage) -> impl Iterator<Item = Trade> + 'a {
        (0..self.trades).map(|index| {
            let (completed_ms, rng) = self.completion(brokerage, index);
            self.trade(completed_ms, rng)
        })
    }

    /// Returns when trade number `index` completes, and the random generator for its other values.
    ///
    /// The time is divided into equal intervals, one per trade, so that trades are in order without sorting.
    fn completion(&self, brokerage: &Brokerage, index: u64) -> (i64, RowRng) {
        let mut rng = brokerage.rng(Purpose::Trade, (self.number << 32) + index);
        let span = brokerage.span_ms() as u64;
        let (begin, end) = (span * index / self.trades, span * (index + 1) / self.trades);
        ((begin + rng.below(end - begin)) as i64, rng)
    }

    fn trade(&self, completed_ms: i64, mut rng: RowRng) -> Trade {
        let account = rng.below(self.accounts.len() as u64) as usize;
        let owner = &self.accounts[account];
        let security_index = rng.below(owner.securities.count);
        let security = owner.securities.at(security_index);
        let kind = Kind::of(rng.below(100));
        let quantity = 100 << rng.below(4);
        let cash = kind.is_sell() || rng.below(100) >= 16;
        let lifo = rng.below(100) < 35;
        let by_other = owner.trusted[0].is_some() && rng.below(4) == 0;
        let submitted_ms = (completed_ms - delay_ms(&mut rng)).max(0);
        let price_cents = market::price_cents(security, completed_ms);
        let (bid_cents, placed_ms) = if kind.is_market() {
            (market::price_cents(security, submitted_ms), None)
        } else {
            let (bid, waited) = limit(kind, security, submitted_ms, &mut rng);
            (bid, Some((submitted_ms - waited).max(0)))
        };
        let rate = costs::commission_rate(self.tier, kind, market::exchange(security), costs::band(quantity));
        Trade {
            account,
            security_index: security_index as usize,
            security,
            kind,
            cash,
            lifo,
            by_other,
            quantity,
            bid_cents,
            price_cents,
            charge_cents: costs::charge_cents(kind, self.tier),
            commission_cents: costs::commission_cents(rate, quantity, price_cents),
            placed_ms,
            submitted_ms,
            completed_ms,
        }
    }
}

/// Returns the limit of an order that was submitted at this time, and how long the order had waited before.
///
/// There are two cases. If the price moves in the direction that triggers the order, it has just met the limit, and the
/// order waited for a random time before. Otherwise the limit was met already when the order was placed, so the order
/// did not wait.
fn limit(kind: Kind, security: u64, submitted_ms: i64, rng: &mut RowRng) -> (i64, i64) {
    let price = market::price_cents(security, submitted_ms);
    let (since, rises) = market::phase(security, submitted_ms);
    if rises != kind.waits_for_fall() {
        // The price has moved towards the limit since its turning point, and before the turning point it moved away
        // from it. It passed the limit twice `since` ago, so the order cannot have waited longer.
        return (price, rng.between(0, 2 * since));
    }
    let bid = if kind.waits_for_fall() { rng.between(price, HIGHEST_CENTS) } else { rng.between(LOWEST_CENTS, price) };
    (bid, 0)
}

/// Draws a delay from a negative exponential distribution with a maximum. Uses only integers, because logarithms differ
/// between machines.
///
/// The integer part of −log₂ of a uniform number is its number of leading zeros. For the remaining m in 0..1, the
/// parabola m + 0.3437 m (1 − m) is within 0.01 of log₂ (1 + m).
pub fn delay_ms(rng: &mut RowRng) -> i64 {
    let drawn = rng.below(1 << 32) | 1;
    let zeros = u64::from(drawn.leading_zeros()) - 32;
    let m = ((drawn << (zeros + 1)) & 0xffff_ffff) >> 20;
    let log = m * 4096 + 1408 * m * (4096 - m) / 4096;
    let halvings = (zeros + 1) * 4096 * 4096 - log;
    // ln 2 = 0.6931
    (halvings * (MEAN_DELAY_MS * 6931 / 10_000) / (4096 * 4096)).min(LONGEST_DELAY_MS) as i64
}

/// The trades of a group of customers in order of completion. The numbers of the trades are in the same order.
pub struct Group<'a> {
    brokerage: &'a Brokerage,
    pub traders: Vec<Trader>,
    /// Number of the next trade, from 0.
    next: u64,
    /// For each trader, the completion time of the next trade, and the index of the trader.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// Index and random generator of each trader's next trade.
    waiting: Vec<(u64, RowRng)>,
}

impl<'a> Group<'a> {
    pub fn new(brokerage: &'a Brokerage, trades: &population::Trades, group: u64) -> Self {
        let customers = group * GROUP..(group + 1) * GROUP;
        let next = trades.before(customers.start);
        let traders: Vec<Trader> = customers.map(|customer| Trader::new(brokerage, trades, customer)).collect();
        let (mut heads, mut waiting) = (BinaryHeap::with_capacity(traders.len()), Vec::with_capacity(traders.len()));
        for (who, trader) in traders.iter().enumerate() {
            let (completed_ms, rng) = trader.completion(brokerage, 0);
            heads.push(Reverse((completed_ms, who)));
            waiting.push((0, rng));
        }
        Self { brokerage, traders, next, heads, waiting }
    }

    /// Returns the next trade, with its number and the index of its trader in the group.
    pub fn advance(&mut self) -> Option<(u64, usize, Trade)> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((completed_ms, who)) = *head;
        let (trader, (index, rng)) = (&self.traders[who], &mut self.waiting[who]);
        let drawn = rng.clone();
        *index += 1;
        if *index < trader.trades {
            let (completed_ms, after) = trader.completion(self.brokerage, *index);
            *rng = after;
            head.0.0 = completed_ms;
            drop(head);
        } else {
            std::collections::binary_heap::PeekMut::pop(head);
        }
        let number = self.next;
        self.next += 1;
        Some((number, who, trader.trade(completed_ms, drawn)))
    }
}
