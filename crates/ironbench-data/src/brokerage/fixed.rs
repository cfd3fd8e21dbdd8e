//! Tables with the same rows at any scale, such as rates, types and places.

use super::costs::{self, BANDS, COUNTRIES, TIERS};
use super::market::{EXCHANGES, Kind};
use super::shapes::SECTORS;
use super::{Brokerage, id, words};
use crate::row::{Sink, TextBuffer};

/// Status codes and their meaning.
const STATUSES: [(&str, &str); 5] =
    [("CMPT", "completed"), ("ACTV", "active"), ("SBMT", "submitted"), ("PNDG", "pending"), ("CNCL", "cancelled")];
const EXCHANGE_NAMES: [(&str, &str); EXCHANGES as usize] = [
    ("NYSE", "New York Stock Exchange"),
    ("NASDAQ", "Nasdaq Stock Market"),
    ("AMEX", "American Stock Exchange"),
    ("PCX", "Pacific Exchange"),
];

pub fn exchange_id(exchange: u64) -> &'static str {
    EXCHANGE_NAMES[exchange as usize].0
}

pub fn sector_id(sector: u64, buffer: &mut TextBuffer) -> &str {
    buffer.of(format_args!("S{:02}", sector + 1))
}

pub fn industry_id(industry: u64, buffer: &mut TextBuffer) -> &str {
    buffer.of(format_args!("I{:03}", industry + 1))
}

/// Returns the ID of a tax rate. Countries come first, then divisions.
pub fn tax_id(rate: u64, buffer: &mut TextBuffer) -> &str {
    match rate.checked_sub(COUNTRIES) {
        None => buffer.of(format_args!("C{:03}", rate + 1)),
        Some(division) => buffer.of(format_args!("D{:03}", division + 1)),
    }
}

pub fn zip_code(number: u64, buffer: &mut TextBuffer) -> &str {
    buffer.of(format_args!("{:05}", 10_000 + number * 6))
}

/// Opening time, in minutes after midnight.
const OPENS: i16 = 9 * 60;
const CLOSES: i16 = 17 * 60;

impl Brokerage {
    /// Emits a row of one of these tables.
    pub(super) fn fixed<S: Sink>(
        &self,
        table: &str,
        number: u64,
        buffer: &mut TextBuffer,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let at = number as usize;
        match table {
            "charge" => {
                let (kind, tier) = (Kind::ALL[at / TIERS as usize], number % TIERS + 1);
                sink.text(kind.id());
                sink.smallint(tier as i16);
                sink.decimal(costs::charge_cents(kind, tier));
            }
            "commission_rate" => self.commission_rate(number, sink),
            "exchange" => {
                let (code, name) = EXCHANGE_NAMES[at];
                // Securities are assigned to exchanges in rotation.
                let listed = self.securities() / EXCHANGES + u64::from(number < self.securities() % EXCHANGES);
                sink.text(code);
                sink.text(name);
                sink.integer(listed as i32);
                sink.smallint(OPENS);
                sink.smallint(CLOSES);
                sink.text(buffer.of(format_args!("Lists {listed} securities of this workload")));
                sink.bigint(id(number));
            }
            "industry" => {
                let sector = number % SECTORS;
                sink.text(industry_id(number, buffer));
                let field = words::FIELDS[(number / SECTORS) as usize];
                sink.text(buffer.of(format_args!("{} {field}", words::SECTORS[sector as usize])));
                sink.text(sector_id(sector, buffer));
            }
            "sector" => {
                sink.text(sector_id(number, buffer));
                sink.text(words::SECTORS[at]);
            }
            "status_type" => {
                sink.text(STATUSES[at].0);
                sink.text(STATUSES[at].1);
            }
            "taxrate" => {
                sink.text(tax_id(number, buffer));
                let division = number.checked_sub(COUNTRIES);
                let (place, rate) = match division {
                    None => ("country", costs::country_rate(number)),
                    Some(division) => ("division", costs::division_rate(division)),
                };
                sink.text(buffer.of(format_args!("{place} {}, {rate} percent", division.unwrap_or(number) + 1)));
                sink.decimal(rate);
            }
            "trade_type" => {
                let kind = Kind::ALL[at];
                sink.text(kind.id());
                sink.text(kind.name());
                sink.smallint(kind.is_sell().into());
                sink.smallint(kind.is_market().into());
            }
            "zip_code" => {
                sink.text(zip_code(number, buffer));
                let ends = words::TOWN_ENDS.len();
                let (begin, end) =
                    (words::TOWN_BEGINS[at / ends % words::TOWN_BEGINS.len()], words::TOWN_ENDS[at % ends]);
                sink.text(buffer.of(format_args!("{begin}{end}")));
                sink.text(buffer.of(format_args!("division {}", number % costs::DIVISIONS + 1)));
            }
            _ => unreachable!("brokerage has no table {table}"),
        }
        sink.end_row()
    }

    fn commission_rate<S: Sink>(&self, number: u64, sink: &mut S) {
        let (rest, band) = (number / BANDS.len() as u64, (number % BANDS.len() as u64) as usize);
        let (rest, exchange) = (rest / EXCHANGES, rest % EXCHANGES);
        let (tier, kind) = (rest / Kind::ALL.len() as u64 + 1, Kind::ALL[rest as usize % Kind::ALL.len()]);
        sink.smallint(tier as i16);
        sink.text(kind.id());
        sink.text(exchange_id(exchange));
        sink.integer(BANDS[band].0 as i32);
        sink.integer(BANDS[band].1 as i32);
        sink.decimal(costs::commission_rate(tier, kind, exchange, band));
    }
}
