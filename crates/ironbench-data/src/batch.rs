//! Data of `igen-batch`: products, and twelve months of their sales.

use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::Sink;
use crate::row_rng::RowRng;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    pub products: u64,
    pub months: u64,
    pub lines_per_month: u64,
    pub seed: u64,
}

/// Uses of random numbers. For the same row number, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Price = 101,
    Line,
}

const PRODUCT: &[&str] = &["product_id", "price_cents", "revision"];
const HISTORY: &[&str] = &["line_id", "month", "product_id", "quantity", "price_cents", "amount_cents"];
const MAX_QUANTITY: i64 = 9;

impl Batch {
    pub fn tables(&self) -> Vec<Table> {
        let table = |name, columns, units, bytes_per_unit| Table { name, columns, units, bytes_per_unit };
        vec![
            table("batch_history", HISTORY, self.months * self.lines_per_month, 36),
            table("batch_product", PRODUCT, self.products, 14),
        ]
    }

    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        for unit in units {
            match table {
                "batch_product" => {
                    sink.integer(unit as i32 + 1);
                    sink.integer(self.price(unit) as i32);
                    sink.integer(0);
                }
                "batch_history" => self.line(unit, sink),
                _ => unreachable!("igen-batch has no table {table}"),
            }
            sink.end_row()?;
        }
        Ok(())
    }

    fn price(&self, product: u64) -> i64 {
        RowRng::new(self.seed, Purpose::Price as u64, product).between(100, 99_999)
    }

    fn line<S: Sink>(&self, unit: u64, sink: &mut S) {
        let mut rng = RowRng::new(self.seed, Purpose::Line as u64, unit);
        let (product, quantity) = (rng.below(self.products), rng.between(1, MAX_QUANTITY));
        let price = self.price(product);
        sink.bigint(unit as i64 + 1);
        sink.integer((unit / self.lines_per_month) as i32 + 1);
        sink.integer(product as i32 + 1);
        sink.integer(quantity as i32);
        sink.integer(price as i32);
        sink.bigint(quantity * price);
    }
}
