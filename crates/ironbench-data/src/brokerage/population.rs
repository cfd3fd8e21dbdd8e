//! Who trades, and how much: customers by activity, their accounts, and how many trades each has at the start. Pure.
//!
//! Everything is numbered from 0 here; `ids` says what the tables call it.

use crate::dice::Dice;

use super::{Brokerage, Purpose};

/// Customers of a load unit: the scale goes by whole ones.
pub const LOAD_UNIT: u64 = 1000;
/// Customers of a group: their trades are numbered one after the other (docs/adr/0024-trades-by-groups.md).
pub const GROUP: u64 = 40;
pub const GROUPS: u64 = LOAD_UNIT / GROUP;
/// Initial trades of a load unit in a business day of 8 hours: two per second.
pub const TRADES_PER_DAY: u64 = 57_600;
pub const BROKERS: u64 = 10;
pub const COMPANIES: u64 = 500;
pub const SECURITIES: u64 = 685;
/// Of a customer; identifiers leave room for so many.
pub const MOST_ACCOUNTS: u64 = 10;
/// Securities that an account trades in.
pub const MOST_HELD: u64 = 18;

/// The place of a customer in the order of activity of its load unit, 0 to 999; the last trades most.
///
/// 617 / 1000 is near the golden section: any few neighbours are spread over all of the order.
pub fn place(customer: u64) -> u64 {
    (customer * 617 + 89) % LOAD_UNIT
}

/// 200 of 1000 customers are of tier 1, 600 of tier 2, 200 of tier 3.
pub fn tier(place: u64) -> u64 {
    match place {
        0..200 => 1,
        200..800 => 2,
        _ => 3,
    }
}

/// How active the customer at this place is; 1000 on average in tier 1, 2000 and 3000 in the others, and linear within.
pub fn activity(place: u64) -> u64 {
    match tier(place) {
        1 => 602 + 4 * place,
        2 => 1401 + 2 * (place - 200),
        _ => 2602 + 4 * (place - 800),
    }
}

/// The activity of all customers of a load unit.
pub const ALL_ACTIVITY: u64 = 2_000_000;

/// Fewest and most accounts of a customer of the tier.
pub fn account_range(tier: u64) -> (u64, u64) {
    [(1, 4), (2, 8), (5, 10)][tier as usize - 1]
}

/// How many accounts the customer at this place has: even over the range of its tier, 5000 in a load unit.
pub fn accounts(place: u64) -> u64 {
    // An order in which also a part of the last round has its mean.
    let rounds: &[u64] = match tier(place) {
        1 => &[1, 4, 2, 3],
        2 => &[5, 2, 8, 3, 7, 4, 6],
        _ => &[5, 10, 6, 9, 7, 8],
    };
    let in_tier = place - [0, 200, 800][tier(place) as usize - 1];
    rounds[in_tier as usize % rounds.len()]
}

/// Fewest and most securities that an account trades in, 2 to 18: fewer where its owner has many accounts.
///
/// The mean over all accounts is 10.0.
pub fn held_range(tier: u64, accounts: u64) -> (u64, u64) {
    let (fewest, most) = account_range(tier);
    let share = |of: u64| (of * (accounts - fewest) * 2 + (most - fewest)) / ((most - fewest) * 2);
    (7 - share(5), MOST_HELD - share(3))
}

/// The initial trades of each customer of a load unit, as running ends: the same in every load unit.
///
/// In proportion to activity; each end is rounded down, so that the sum is exact.
pub struct Trades {
    ends: Vec<u64>,
}

impl Trades {
    pub fn new(days: u64) -> Self {
        let total = u128::from(TRADES_PER_DAY * days);
        let mut active = 0;
        let ends = (0..=LOAD_UNIT).map(|customer| {
            let end = (total * active / u128::from(ALL_ACTIVITY)) as u64;
            active += u128::from(activity(place(customer)));
            end
        });
        Self { ends: ends.collect() }
    }

    /// Of any customer.
    pub fn of(&self, customer: u64) -> u64 {
        let local = (customer % LOAD_UNIT) as usize;
        self.ends[local + 1] - self.ends[local]
    }

    /// Initial trades of all customers before this one: where the numbers of a group's trades begin.
    pub fn before(&self, customer: u64) -> u64 {
        let (unit, local) = (customer / LOAD_UNIT, customer % LOAD_UNIT);
        unit * self.ends[LOAD_UNIT as usize] + self.ends[local as usize]
    }
}

/// Different numbers below a bound, in an order of their own: `start + place · stride` modulo the bound.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    start: u64,
    stride: u64,
    total: u64,
    pub count: u64,
}

impl Selection {
    /// So many, at most `total`.
    pub fn drawn(dice: &mut Dice, total: u64, count: u64) -> Self {
        let start = dice.below(total);
        let mut stride = 1 + dice.below(total - 1);
        while gcd(stride, total) != 1 {
            stride = 1 + dice.below(total - 1);
        }
        Self { start, stride, total, count }
    }

    pub fn at(&self, place: u64) -> u64 {
        (self.start + place * self.stride) % self.total
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What trades of an account need to know of it.
#[derive(Debug, Clone)]
pub struct Account {
    /// From 0: the customer's number times `MOST_ACCOUNTS`, and which of its accounts it is.
    pub number: u64,
    pub broker: u64,
    pub tax_status: u64,
    pub securities: Selection,
    pub balance_cents: i64,
    /// Others who may trade for it; all different, none is the owner.
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

    /// All accounts of a customer.
    pub fn accounts(&self, customer: u64) -> impl Iterator<Item = Account> + '_ {
        (0..accounts(place(customer))).map(move |which| self.account(customer, which))
    }

    /// One of them.
    pub fn account(&self, customer: u64, which: u64) -> Account {
        let place = place(customer);
        let held = held_range(tier(place), accounts(place));
        let number = customer * MOST_ACCOUNTS + which;
        let mut dice = self.dice(Purpose::Account, number);
        let unit = customer / LOAD_UNIT;
        let broker = unit * BROKERS + dice.below(BROKERS);
        let tax_status = match dice.below(100) {
            0..20 => 0,
            20..70 => 1,
            _ => 2,
        };
        let count = held.0 + dice.below(held.1 - held.0 + 1);
        let securities = Selection::drawn(&mut dice, self.securities(), count);
        let size = dice.between(0, 999_999_999);
        let balance_cents = if dice.below(100) < 80 { size } else { -size };
        let neighbour = |steps| unit * LOAD_UNIT + (customer + steps) % LOAD_UNIT;
        let steps = 1 + dice.below(LOAD_UNIT - 1);
        let trusted = match dice.below(100) {
            0..60 => [None; 2],
            60..98 => [Some(neighbour(steps)), None],
            _ => [Some(neighbour(steps)), Some(neighbour(1 + steps % (LOAD_UNIT - 1)))],
        };
        Account { number, broker, tax_status, securities, balance_cents, trusted }
    }

    /// What one pays of a gain, in hundredths: the rates of a country and of a division.
    pub fn tax_rates(&self, customer: u64) -> (u64, u64) {
        let mut dice = self.dice(Purpose::TaxRates, customer);
        (dice.below(super::costs::COUNTRIES), dice.below(super::costs::DIVISIONS))
    }
}
