//! The brokerage: customers, brokers and a market, in the 33 tables that TPC-E describes. The rows are ironbench's own.
//!
//! As in all generators, most rows are functions of their numbers. Rows that are derived from initial trades are
//! generated in groups of 40 customers. The trades of a group are simulated in order of time. The file
//! docs/adr/0024-trades-by-groups.md explains why.

pub mod costs;
mod firms;
mod fixed;
pub mod holdings;
pub mod market;
mod people;
pub mod population;
pub mod roles;
mod shapes;
#[cfg(test)]
pub(crate) mod tests;
mod trade_effects;
pub mod trades;
mod words;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::{Sink, TextBuffer};
use crate::row_rng::RowRng;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brokerage {
    /// Number of customers, a multiple of 1000 (whole load units).
    pub customers: u64,
    /// Number of business days with initial trades, at least 1.
    pub days: u64,
    pub lob: Lob,
    pub seed: u64,
}

/// Length of the text of a news item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lob {
    /// Texts of 100,000 bytes per item, 100 MB for 1000 customers.
    Full,
    Small,
    None,
}

impl Lob {
    pub fn bytes(self) -> usize {
        match self {
            Self::Full => 100_000,
            Self::Small => 1_000,
            Self::None => 0,
        }
    }
}

/// Uses of random numbers. For the same row number, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Account = 201,
    Trade,
    TaxRates,
    Customer,
    Name,
    Address,
    Watch,
    Company,
    Security,
    Prices,
    Financial,
    News,
    Broker,
    Deck,
    Inputs,
    Delays,
    Maintenance,
}

/// Start of the identifiers. The identifiers exceed 32 bits, so that an engine cannot store them as 32-bit integers.
const IDS: i64 = 4_300_000_000;
const TRADE_IDS: i64 = 200_000_000_000_000;

/// Returns the identifier of a customer, company, broker, … in the tables.
pub fn id(number: u64) -> i64 {
    IDS + 1 + number as i64
}

pub fn account_id(number: u64) -> i64 {
    IDS * population::MAX_ACCOUNTS as i64 + 1 + number as i64
}

pub fn trade_id(number: u64) -> i64 {
    TRADE_IDS + 1 + number as i64
}

impl Brokerage {
    pub fn tables(&self) -> Vec<Table> {
        shapes::SHAPES.iter().map(|shape| shape.table(self)).collect()
    }

    fn rng(&self, purpose: Purpose, number: u64) -> RowRng {
        RowRng::new(self.seed, purpose as u64, number)
    }

    pub fn emit<S: Sink>(&self, table: &str, units: Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        if let Some(table) = trade_effects::DerivedTable::of(table) {
            return self.emit_derived(table, units, sink);
        }
        let mut buffer = TextBuffer::default();
        for number in units {
            match table {
                "broker" => self.broker(number, &mut buffer, sink)?,
                "account_permission" => self.permissions(number, sink)?,
                "customer" => self.customer(number, &mut buffer, sink)?,
                "customer_account" => self.customer_accounts(number, &mut buffer, sink)?,
                "customer_taxrate" => self.customer_taxrates(number, &mut buffer, sink)?,
                "watch_list" => self.watch_list(number, sink)?,
                "watch_item" => self.watch_items(number, sink)?,
                "address" => self.address(number, &mut buffer, sink)?,
                "company" => self.company(number, &mut buffer, sink)?,
                "company_competitor" => self.competitors(number, &mut buffer, sink)?,
                "daily_market" => self.daily_market(number, sink)?,
                "financial" => self.financial(number, sink)?,
                "last_trade" => self.last_trade(number, sink)?,
                "news_item" => self.news_item(number, &mut buffer, sink)?,
                "news_xref" => self.news_xref(number, sink)?,
                "security" => self.security(number, &mut buffer, sink)?,
                "trade_request" => unreachable!("no order waits at the start"),
                _ => self.fixed(table, number, &mut buffer, sink)?,
            }
        }
        Ok(())
    }
}
