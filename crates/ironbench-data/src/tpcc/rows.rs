//! The rows of each table (clause 4.3.3.1). Units count from 0, and the numbers in the tables count from 1.

use super::random_values::{OF_NAMES, RandomText, nurand};
use super::{CUSTOMERS, DELIVERED, DISTRICTS, ITEMS, LAST_NAMES, Tpcc};
use crate::row::Sink;
use crate::row_rng::RowRng;

/// Time of everything that is loaded, 2026-01-01 00:00:00, in seconds since 1970-01-01. The time is constant, because
/// the rows must not depend on the time at which they are generated.
const LOADED_AT: i64 = 1_767_225_600;

/// Amounts and rates of the loaded rows. Amounts are in hundredths, and rates in ten-thousandths.
const PAID: i64 = 1_000;
const DISTRICT_YTD: i64 = PAID * CUSTOMERS as i64;
const WAREHOUSE_YTD: i64 = DISTRICT_YTD * DISTRICTS as i64;
const CREDIT_LIMIT: i64 = 5_000_000;
const HIGHEST_TAX: i64 = 2_000;
const HIGHEST_DISCOUNT: i64 = 5_000;

/// Uses of random numbers. For the same row number, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Item = 401,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    OrderCustomers,
    Order,
    OrderLines,
}

/// Returns the number of a district in its warehouse, and the number of the warehouse.
fn place(district: u64) -> (i32, i32) {
    ((district % DISTRICTS) as i32 + 1, (district / DISTRICTS) as i32 + 1)
}

/// Emits the orders of a district that are not delivered.
pub(super) fn new_orders<S: Sink>(district: u64, sink: &mut S) -> Result<(), S::Error> {
    let (number, warehouse) = place(district);
    for order in DELIVERED..CUSTOMERS {
        sink.integer(order as i32 + 1);
        sink.integer(number);
        sink.integer(warehouse);
        sink.end_row()?;
    }
    Ok(())
}

/// The random values of an order.
struct Order {
    lines: i32,
    carrier: i32,
}

impl Tpcc {
    fn rng(&self, purpose: Purpose, number: u64) -> RowRng {
        RowRng::new(self.seed, purpose as u64, number)
    }

    pub(super) fn item<S: Sink>(&self, item: u64, text: &mut RandomText, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Item, item);
        sink.integer(item as i32 + 1);
        sink.integer(rng.between(1, 10_000) as i32);
        sink.text(text.letters(&mut rng, 14, 24));
        sink.decimal(rng.between(100, 10_000));
        sink.text(text.maybe_original(&mut rng, 26, 50));
        sink.end_row()
    }

    pub(super) fn warehouse<S: Sink>(
        &self,
        warehouse: u64,
        text: &mut RandomText,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Warehouse, warehouse);
        sink.integer(warehouse as i32 + 1);
        sink.text(text.letters(&mut rng, 6, 10));
        address(&mut rng, text, sink);
        sink.rate(rng.between(0, HIGHEST_TAX));
        sink.decimal(WAREHOUSE_YTD);
        sink.end_row()
    }

    pub(super) fn stock<S: Sink>(&self, unit: u64, text: &mut RandomText, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Stock, unit);
        sink.integer((unit % ITEMS) as i32 + 1);
        sink.integer((unit / ITEMS) as i32 + 1);
        sink.integer(rng.between(10, 100) as i32);
        for _ in 0..DISTRICTS {
            sink.text(text.letters(&mut rng, 24, 24));
        }
        sink.integer(0);
        sink.integer(0);
        sink.integer(0);
        sink.text(text.maybe_original(&mut rng, 26, 50));
        sink.end_row()
    }

    pub(super) fn district<S: Sink>(&self, district: u64, text: &mut RandomText, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::District, district);
        let (number, warehouse) = place(district);
        sink.integer(number);
        sink.integer(warehouse);
        sink.text(text.letters(&mut rng, 6, 10));
        address(&mut rng, text, sink);
        sink.rate(rng.between(0, HIGHEST_TAX));
        sink.decimal(DISTRICT_YTD);
        sink.integer(CUSTOMERS as i32 + 1);
        sink.end_row()
    }

    pub(super) fn customer<S: Sink>(&self, unit: u64, text: &mut RandomText, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Customer, unit);
        let (customer, (district, warehouse)) = (unit % CUSTOMERS, place(unit / CUSTOMERS));
        // Among the first customers, every last name occurs once.
        let name = match customer {
            0..LAST_NAMES => customer,
            _ => nurand(&mut rng, OF_NAMES, 0, LAST_NAMES - 1, self.c_load),
        };
        sink.integer(customer as i32 + 1);
        sink.integer(district);
        sink.integer(warehouse);
        sink.text(text.letters(&mut rng, 8, 16));
        sink.text("OE");
        sink.text(text.last_name(name));
        address(&mut rng, text, sink);
        sink.text(text.digits(&mut rng, 16));
        sink.timestamp(LOADED_AT);
        sink.text(if rng.below(10) == 0 { "BC" } else { "GC" });
        sink.decimal(CREDIT_LIMIT);
        sink.rate(rng.between(0, HIGHEST_DISCOUNT));
        sink.decimal(-PAID);
        sink.decimal(PAID);
        sink.integer(1);
        sink.integer(0);
        sink.text(text.letters(&mut rng, 300, 500));
        sink.end_row()
    }

    /// Emits the payment of a customer.
    pub(super) fn history<S: Sink>(&self, unit: u64, text: &mut RandomText, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::History, unit);
        let (customer, (district, warehouse)) = (unit % CUSTOMERS, place(unit / CUSTOMERS));
        sink.integer(customer as i32 + 1);
        sink.integer(district);
        sink.integer(warehouse);
        sink.integer(district);
        sink.integer(warehouse);
        sink.timestamp(LOADED_AT);
        sink.decimal(PAID);
        sink.text(text.letters(&mut rng, 12, 24));
        sink.end_row()
    }

    pub(super) fn orders<S: Sink>(&self, district: u64, sink: &mut S) -> Result<(), S::Error> {
        let (number, warehouse) = place(district);
        for (order, customer) in self.order_customers(district).into_iter().enumerate() {
            let Order { lines, carrier } = self.order(district, order as u64);
            sink.integer(order as i32 + 1);
            sink.integer(number);
            sink.integer(warehouse);
            sink.integer(customer);
            sink.timestamp(LOADED_AT);
            if (order as u64) < DELIVERED {
                sink.integer(carrier);
            } else {
                sink.null();
            }
            sink.integer(lines);
            sink.integer(1);
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn order_lines<S: Sink>(
        &self,
        district: u64,
        text: &mut RandomText,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (number, warehouse) = place(district);
        for order in 0..CUSTOMERS {
            let mut rng = self.rng(Purpose::OrderLines, district * CUSTOMERS + order);
            for line in 1..=self.order(district, order).lines {
                sink.integer(order as i32 + 1);
                sink.integer(number);
                sink.integer(warehouse);
                sink.integer(line);
                sink.integer(rng.between(1, ITEMS as i64) as i32);
                sink.integer(warehouse);
                if order < DELIVERED {
                    sink.timestamp(LOADED_AT);
                } else {
                    sink.null();
                }
                sink.integer(5);
                sink.decimal(if order < DELIVERED { 0 } else { rng.between(1, 999_999) });
                sink.text(text.letters(&mut rng, 24, 24));
                sink.end_row()?;
            }
        }
        Ok(())
    }

    fn order(&self, district: u64, order: u64) -> Order {
        let mut rng = self.rng(Purpose::Order, district * CUSTOMERS + order);
        Order { lines: rng.between(5, 15) as i32, carrier: rng.between(1, 10) as i32 }
    }

    /// Returns the customers of a district in the order of their orders. The order is a random permutation
    /// (Fisher–Yates).
    fn order_customers(&self, district: u64) -> Vec<i32> {
        let mut rng = self.rng(Purpose::OrderCustomers, district);
        let mut customers: Vec<i32> = (1..=CUSTOMERS as i32).collect();
        for last in (1..customers.len()).rev() {
            customers.swap(last, rng.below(last as u64 + 1) as usize);
        }
        customers
    }
}

/// Emits two streets, a city, a state and a zip code.
fn address<S: Sink>(rng: &mut RowRng, text: &mut RandomText, sink: &mut S) {
    for _ in 0..3 {
        sink.text(text.letters(rng, 10, 20));
    }
    sink.text(text.letters(rng, 2, 2));
    sink.text(text.zip(rng));
}
