//! The market: order types, exchanges, symbols, prices, and the calendar. All functions are pure.

use super::Brokerage;
use super::population::{COMPANIES, SECURITIES};

pub const EXCHANGES: u64 = 4;

/// The type of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    MarketBuy,
    MarketSell,
    StopLoss,
    LimitSell,
    LimitBuy,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::MarketBuy, Kind::MarketSell, Kind::StopLoss, Kind::LimitSell, Kind::LimitBuy];

    /// Returns the order type for a random number below 100. The types have their required proportions.
    pub fn of(percent: u64) -> Self {
        match percent {
            0..30 => Self::MarketBuy,
            30..60 => Self::MarketSell,
            60..80 => Self::LimitBuy,
            80..90 => Self::LimitSell,
            _ => Self::StopLoss,
        }
    }

    pub fn id(self) -> &'static str {
        ["TMB", "TMS", "TSL", "TLS", "TLB"][self as usize]
    }

    pub fn name(self) -> &'static str {
        ["buy at market", "sell at market", "sell to stop a loss", "sell at a limit", "buy at a limit"][self as usize]
    }

    pub fn is_sell(self) -> bool {
        matches!(self, Self::MarketSell | Self::LimitSell | Self::StopLoss)
    }

    pub fn is_market(self) -> bool {
        matches!(self, Self::MarketBuy | Self::MarketSell)
    }

    /// Whether a falling price (rather than a rising one) triggers the order.
    pub fn waits_for_fall(self) -> bool {
        matches!(self, Self::LimitBuy | Self::StopLoss)
    }
}

pub const LOWEST_CENTS: i64 = 2000;
pub const HIGHEST_CENTS: i64 = 3000;
const SPAN_CENTS: i64 = HIGHEST_CENTS - LOWEST_CENTS;
/// Time in which a price moves from the lowest value to the highest and back: 15 minutes.
pub const PERIOD_MS: i64 = 900_000;
const HALF_MS: i64 = PERIOD_MS / 2;

/// Returns the phase of a security's price: the time in milliseconds since its last turning point, and whether the
/// price rises.
pub fn phase(security: u64, time_ms: i64) -> (i64, bool) {
    // The factor is odd and not a multiple of 3 or 5, so that the phases of securities are spread over the period.
    let position = (time_ms + (security as i64 * 556_231) % PERIOD_MS).rem_euclid(PERIOD_MS);
    if position < HALF_MS { (position, true) } else { (position - HALF_MS, false) }
}

/// Returns the price, a triangular wave between $20 and $30.
pub fn price_cents(security: u64, time_ms: i64) -> i64 {
    let (since, rises) = phase(security, time_ms);
    let moved = since * SPAN_CENTS / HALF_MS;
    if rises { LOWEST_CENTS + moved } else { HIGHEST_CENTS - moved }
}

/// Returns the time in milliseconds until the price meets a limit. Returns 0 if the price meets it already.
pub fn meets_in_ms(security: u64, falls: bool, limit_cents: i64, time_ms: i64) -> i64 {
    let price = price_cents(security, time_ms);
    if if falls { price <= limit_cents } else { price >= limit_cents } {
        return 0;
    }
    let (since, rises) = phase(security, time_ms);
    // Distance that the price moves from its last turning point before the limit to the limit.
    let way = if falls { HIGHEST_CENTS - limit_cents } else { limit_cents - LOWEST_CENTS };
    let meets = (way * HALF_MS + SPAN_CENTS - 1) / SPAN_CENTS;
    // If the price moves away from the limit, the time until it turns is added.
    if rises != falls { meets - since } else { HALF_MS - since + meets }
}

pub fn exchange(security: u64) -> u64 {
    security % EXCHANGES
}

/// Returns the company of a security, and whether the security is a preferred share. The first 500 securities of a load
/// unit are common shares.
pub fn issuer(security: u64) -> (u64, bool) {
    let (unit, local) = (security / SECURITIES, security % SECURITIES);
    let preferred = local >= COMPANIES;
    let company = if preferred { (local - COMPANIES) * COMPANIES / (SECURITIES - COMPANIES) } else { local };
    (unit * COMPANIES + company, preferred)
}

pub fn issue(preferred: bool) -> &'static str {
    if preferred { "PREF" } else { "COMMON" }
}

const FIRST_SYMBOL: u64 = 2_718_281;
const SYMBOL_STEP: u64 = 7_345_679;
/// The multiplicative inverse of `SYMBOL_STEP` modulo 26⁵.
const SYMBOL_STEP_BACK: u64 = 5352239;

/// A security's symbol. The symbol consists of five letters for the company. The symbol of a preferred share also has a
/// `P`.
#[derive(Clone, Copy)]
pub struct Symbol {
    letters: [u8; 6],
    length: usize,
}

impl Symbol {
    pub fn of(security: u64) -> Self {
        let (company, preferred) = issuer(security);
        // The mapping is a bijection modulo 26⁵, because the factor is odd and not a multiple of 13.
        let mut rest = (company * SYMBOL_STEP + FIRST_SYMBOL) % 26u64.pow(5);
        let mut letters = [b'P'; 6];
        for letter in &mut letters[..5] {
            *letter = b'A' + (rest % 26) as u8;
            rest /= 26;
        }
        Self { letters, length: if preferred { 6 } else { 5 } }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.letters[..self.length]).expect("letters are ASCII")
    }
}

/// Returns the security of a symbol. Returns None if the symbol is malformed.
pub fn security_of(symbol: &str) -> Option<u64> {
    let (letters, rest) = symbol.as_bytes().split_at_checked(5)?;
    let preferred = match rest {
        [] => false,
        [b'P'] => true,
        _ => return None,
    };
    let all = 26u64.pow(5);
    let position = letters.iter().rev().try_fold(0, |position, letter| {
        letter.is_ascii_uppercase().then(|| position * 26 + u64::from(letter - b'A'))
    })?;
    let company = (position + all - FIRST_SYMBOL % all) % all * SYMBOL_STEP_BACK % all;
    let (unit, local) = (company / COMPANIES, company % COMPANIES);
    let preferred_local = || COMPANIES + (local * (SECURITIES - COMPANIES)).div_ceil(COMPANIES);
    let security = unit * SECURITIES + if preferred { preferred_local() } else { local };
    (issuer(security) == (company, preferred)).then_some(security)
}

/// First day with past prices, Monday 2000-01-03. Business days are Monday to Friday.
pub const PAST_FIRST_DAY: i64 = 10_959;
/// Number of days with past prices: five years.
pub const PAST_DAYS: u64 = 1305;
/// First day of the initial trades, Monday 2005-01-03.
pub const TRADE_FIRST_DAY: i64 = 12_786;
/// Length of a business day: eight hours.
pub const DAY_MS: i64 = 8 * 3_600_000;
const OPENS_MS: i64 = 9 * 3_600_000;

/// Converts a number of business days (from 0) to days since 1970-01-01.
pub fn business_day(first: i64, number: u64) -> i64 {
    first + (number / 5 * 7 + number % 5) as i64
}

/// Converts business time to milliseconds since 1970-01-01.
pub fn moment(time_ms: i64) -> i64 {
    day(time_ms) * 86_400_000 + OPENS_MS + time_ms % DAY_MS
}

/// Returns the day of a business time.
pub fn day(time_ms: i64) -> i64 {
    business_day(TRADE_FIRST_DAY, (time_ms / DAY_MS) as u64)
}

impl Brokerage {
    /// Returns the duration of the initial trades, in milliseconds of business time.
    pub fn span_ms(&self) -> i64 {
        self.days as i64 * DAY_MS
    }
}
