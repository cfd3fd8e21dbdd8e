//! What a trade costs: charges, commissions and taxes. The same figures fill the tables of rates. Pure.

use super::market::{EXCHANGES, Kind};

pub const COUNTRIES: u64 = 9;
pub const DIVISIONS: u64 = 311;
pub const TIERS: u64 = 3;

/// First quantity of each band of commissions, and the last.
pub const BANDS: [(i64, i64); 4] = [(1, 200), (201, 500), (501, 2000), (2001, 9_999_999)];

/// The charge for an order, $2.50 to $6.50: less for active customers, more for what has to be watched.
pub fn charge_cents(kind: Kind, tier: u64) -> i64 {
    let most = match kind {
        Kind::MarketBuy | Kind::MarketSell => 450,
        Kind::LimitBuy | Kind::LimitSell => 550,
        Kind::StopLoss => 650,
    };
    most - 100 * (tier as i64 - 1)
}

/// The commission in hundredths of a percent; falls with the band of quantity and with the tier.
pub fn commission_rate(tier: u64, kind: Kind, exchange: u64, band: usize) -> i64 {
    let watched = if kind.is_market() { 0 } else { 5 };
    95 + watched - 12 * band as i64 - 8 * (tier as i64 - 1) - 2 * (EXCHANGES - 1 - exchange) as i64
}

/// Rounded to the next cent, half upwards.
pub fn commission_cents(rate: i64, quantity: i64, price_cents: i64) -> i64 {
    (rate * quantity * price_cents + 5000) / 10_000
}

pub fn band(quantity: i64) -> usize {
    BANDS.iter().position(|&(_, last)| quantity <= last).unwrap_or(BANDS.len() - 1)
}

/// In hundredths: what a country takes of a gain.
pub fn country_rate(country: u64) -> i64 {
    9 + country as i64
}

/// In hundredths: what a division of a country takes.
pub fn division_rate(division: u64) -> i64 {
    1 + division as i64 % 9
}

/// The tax on a gain at these hundredths; a loss pays none.
pub fn tax_cents(gain_cents: i64, hundredths: i64) -> i64 {
    (gain_cents.max(0) * hundredths + 50) / 100
}
