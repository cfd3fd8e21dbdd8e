//! Customers by activity, their accounts, and the number of their initial trades. All functions are pure.
//!
//! Numbers count from 0 here. The function `id` converts them to the identifiers in the tables.

use crate::row_rng::RowRng;

use super::{Brokerage, Purpose};

/// Number of customers of a load unit. The number of all customers is a multiple of it.
pub const LOAD_UNIT: u64 = 1000;
/// Number of customers in a group. The trades of a group are numbered consecutively
/// (docs/adr/0024-trades-by-groups.md).
pub const GROUP: u64 = 40;
pub const GROUPS: u64 = LOAD_UNIT / GROUP;
/// Number of initial trades of a load unit per business day. A business day has 8 hours, so there are two trades per
/// second.
pub const TRADES_PER_DAY: u64 = 57_600;
pub const BROKERS: u64 = 10;
pub const COMPANIES: u64 = 500;
pub const SECURITIES: u64 = 685;
/// Maximum number of accounts of a customer. Identifiers leave room for this many.
pub const MAX_ACCOUNTS: u64 = 10;
/// Maximum number of securities in which an account trades.
pub const MAX_HELD: u64 = 18;

/// Returns a customer's rank by activity in its load unit, 0 to 999. The customer with the last rank trades most.
///
/// The ratio 617 / 1000 is close to the golden ratio, so any few consecutive customers are spread over all ranks.
pub fn rank(customer: u64) -> u64 {
    (customer * 617 + 89) % LOAD_UNIT
}

/// Returns the tier of a rank. Of 1000 customers, 200 are in tier 1, 600 in tier 2 and 200 in tier 3.
pub fn tier(rank: u64) -> u64 {
    match rank {
        0..200 => 1,
        200..800 => 2,
        _ => 3,
    }
}

/// Returns the activity of the customer at this rank. The mean is 1000 in tier 1, 2000 in tier 2 and 3000 in tier 3.
/// Within each tier, the activity is linear in the rank.
pub fn activity(rank: u64) -> u64 {
    match tier(rank) {
        1 => 602 + 4 * rank,
        2 => 1401 + 2 * (rank - 200),
        _ => 2602 + 4 * (rank - 800),
    }
}

/// Total activity of a load unit.
pub const ALL_ACTIVITY: u64 = 2_000_000;

/// Returns the minimum and maximum number of accounts of a customer in the tier.
pub fn account_range(tier: u64) -> (u64, u64) {
    [(1, 4), (2, 8), (5, 10)][tier as usize - 1]
}

/// Returns the number of accounts of the customer at this rank. The numbers are uniform over the range of the tier. The
/// total of a load unit is 5000.
pub fn accounts(rank: u64) -> u64 {
    // The numbers are in an order in which an incomplete last round has the same mean as a complete one.
    let rounds: &[u64] = match tier(rank) {
        1 => &[1, 4, 2, 3],
        2 => &[5, 2, 8, 3, 7, 4, 6],
        _ => &[5, 10, 6, 9, 7, 8],
    };
    let in_tier = rank - [0, 200, 800][tier(rank) as usize - 1];
    rounds[in_tier as usize % rounds.len()]
}

/// Returns the minimum and maximum number of securities of an account, between 2 and 18. An account has fewer
/// securities if its owner has many accounts.
///
/// The mean over all accounts is 10.0.
pub fn held_range(tier: u64, accounts: u64) -> (u64, u64) {
    let (fewest, most) = account_range(tier);
    let share = |of: u64| (of * (accounts - fewest) * 2 + (most - fewest)) / ((most - fewest) * 2);
    (7 - share(5), MAX_HELD - share(3))
}

/// Cumulative number of initial trades over the customers of a load unit. The numbers are the same in every load unit.
///
/// The number of a customer's trades is proportional to the customer's activity. The cumulative number is rounded,
/// rather than each customer's number, so that the total is exact.
pub struct Trades {
    ends: Vec<u64>,
}

impl Trades {
    pub fn new(days: u64) -> Self {
        let total = u128::from(TRADES_PER_DAY * days);
        let mut active = 0;
        let ends = (0..=LOAD_UNIT).map(|customer| {
            let end = (total * active / u128::from(ALL_ACTIVITY)) as u64;
            active += u128::from(activity(rank(customer)));
            end
        });
        Self { ends: ends.collect() }
    }

    /// Returns the number of initial trades of a customer.
    pub fn of(&self, customer: u64) -> u64 {
        let local = (customer % LOAD_UNIT) as usize;
        self.ends[local + 1] - self.ends[local]
    }

    /// Returns the number of initial trades of all earlier customers. The trade numbers of a group start at this
    /// number.
    pub fn before(&self, customer: u64) -> u64 {
        let (unit, local) = (customer / LOAD_UNIT, customer % LOAD_UNIT);
        unit * self.ends[LOAD_UNIT as usize] + self.ends[local as usize]
    }
}

/// Distinct numbers below a bound in pseudo-random order. Each is `start + index · stride` modulo the bound.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    start: u64,
    stride: u64,
    total: u64,
    pub count: u64,
}

impl Selection {
    /// Draws a selection of `count` numbers below `total`.
    pub fn drawn(rng: &mut RowRng, total: u64, count: u64) -> Self {
        let start = rng.below(total);
        let mut stride = 1 + rng.below(total - 1);
        while gcd(stride, total) != 1 {
            stride = 1 + rng.below(total - 1);
        }
        Self { start, stride, total, count }
    }

    pub fn at(&self, index: u64) -> u64 {
        (self.start + index * self.stride) % self.total
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The properties of an account that its trades need.
#[derive(Debug, Clone)]
pub struct Account {
    /// Number of the account, from 0: the customer's number times `MAX_ACCOUNTS`, plus the index of the account.
    pub number: u64,
    pub broker: u64,
    pub tax_status: u64,
    pub securities: Selection,
    pub balance_cents: i64,
    /// Other people who may trade for the account, all different from each other and from the owner.
    pub trusted: [Option<u64>; 2],
}

impl Brokerage {
    pub fn load_units(&self) -> u64 {
        self.customers / LOAD_UNIT
    }

    pub fn securities(&self) -> u64 {
        self.load_units() * SECURITIES
    }

    pub fn companies(&self) -> u64 {
        self.load_units() * COMPANIES
    }

    /// Returns all accounts of a customer.
    pub fn accounts(&self, customer: u64) -> impl Iterator<Item = Account> + '_ {
        (0..accounts(rank(customer))).map(move |which| self.account(customer, which))
    }

    /// Returns an account of a customer.
    pub fn account(&self, customer: u64, which: u64) -> Account {
        let rank = rank(customer);
        let held = held_range(tier(rank), accounts(rank));
        let number = customer * MAX_ACCOUNTS + which;
        let mut rng = self.rng(Purpose::Account, number);
        let unit = customer / LOAD_UNIT;
        let broker = unit * BROKERS + rng.below(BROKERS);
        let tax_status = match rng.below(100) {
            0..20 => 0,
            20..70 => 1,
            _ => 2,
        };
        let count = held.0 + rng.below(held.1 - held.0 + 1);
        let securities = Selection::drawn(&mut rng, self.securities(), count);
        let size = rng.between(0, 999_999_999);
        let balance_cents = if rng.below(100) < 80 { size } else { -size };
        let neighbour = |steps| unit * LOAD_UNIT + (customer + steps) % LOAD_UNIT;
        let steps = 1 + rng.below(LOAD_UNIT - 1);
        let trusted = match rng.below(100) {
            0..60 => [None; 2],
            60..98 => [Some(neighbour(steps)), None],
            _ => [Some(neighbour(steps)), Some(neighbour(1 + steps % (LOAD_UNIT - 1)))],
        };
        Account { number, broker, tax_status, securities, balance_cents, trusted }
    }

    /// Returns the indexes of a customer's two tax rates: that of the country and that of the division.
    pub fn tax_rates(&self, customer: u64) -> (u64, u64) {
        let mut rng = self.rng(Purpose::TaxRates, customer);
        (rng.below(super::costs::COUNTRIES), rng.below(super::costs::DIVISIONS))
    }
}
