//! Costs of a trade: charges, commissions and taxes. The same functions fill the rate tables. All of them are pure.

use super::market::{EXCHANGES, Kind};

pub const COUNTRIES: u64 = 9;
pub const DIVISIONS: u64 = 311;
pub const TIERS: u64 = 3;

/// First and last quantity of each commission band.
pub const BANDS: [(i64, i64); 4] = [(1, 200), (201, 500), (501, 2000), (2001, 9_999_999)];

/// Returns the charge for an order, $2.50 to $6.50. Active customers pay less. Order types that the broker must watch
/// cost more.
pub fn charge_cents(kind: Kind, tier: u64) -> i64 {
    let most = match kind {
        Kind::MarketBuy | Kind::MarketSell => 450,
        Kind::LimitBuy | Kind::LimitSell => 550,
        Kind::StopLoss => 650,
    };
    most - 100 * (tier as i64 - 1)
}

/// Returns the commission in hundredths of a percent. The commission decreases with the quantity band and with the
/// tier.
pub fn commission_rate(tier: u64, kind: Kind, exchange: u64, band: usize) -> i64 {
    let watched = if kind.is_market() { 0 } else { 5 };
    95 + watched - 12 * band as i64 - 8 * (tier as i64 - 1) - 2 * (EXCHANGES - 1 - exchange) as i64
}

/// Returns the commission, rounded to the nearest cent, half upwards.
pub fn commission_cents(rate: i64, quantity: i64, price_cents: i64) -> i64 {
    (rate * quantity * price_cents + 5000) / 10_000
}

pub fn band(quantity: i64) -> usize {
    BANDS.iter().position(|&(_, last)| quantity <= last).unwrap_or(BANDS.len() - 1)
}

/// Returns the tax rate of a country in percent.
pub fn country_rate(country: u64) -> i64 {
    9 + country as i64
}

/// Returns the tax rate of a division of a country in percent.
pub fn division_rate(division: u64) -> i64 {
    1 + division as i64 % 9
}

/// Returns the tax on a gain. The rate `hundredths` is in percent. A loss is not taxed.
pub fn tax_cents(gain_cents: i64, hundredths: i64) -> i64 {
    (gain_cents.max(0) * hundredths + 50) / 100
}
