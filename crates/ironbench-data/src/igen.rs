//! The order-entry data of `igen-oltp`: customers in world regions, products, stock, orders and order lines.
//!
//! Customers are numbered from 1, one region after the other. A customer's orders are numbered from 1 without gaps. The
//! number of orders per customer is uniform in 1..=`most_orders`. The workload's inserts and deletes maintain this
//! distribution (docs/workloads/igen-oltp.md), so a fresh database is already in the steady state of the workload.

use serde::{Deserialize, Serialize};

use crate::plan::Table;
use crate::row::{Sink, TextBuffer};
use crate::row_rng::RowRng;
use crate::words;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Igen {
    /// Number of the last customer of each region, ascending. The last element is the number of all customers.
    pub region_ends: [u64; REGIONS as usize],
    pub products: u64,
    pub categories: u64,
    pub most_orders: u64,
    pub most_lines: u64,
    pub seed: u64,
}

pub const REGIONS: u64 = 6;

/// Uses of random numbers. For the same row number, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Customer = 1,
    Product,
    Price,
    Stock,
    OrderCount,
    Order,
}

const CUSTOMER: &[&str] = &["customer_id", "region_id", "name", "email", "street", "city", "since", "spent_cents"];
const PRODUCT: &[&str] = &["product_id", "category_id", "price_cents", "name", "description"];
const STOCK: &[&str] = &["product_id", "region_id", "quantity"];
const ORDER: &[&str] = &["total_cents", "placed_at", "customer_id", "order_no", "line_count", "status"];
const LINE: &[&str] = &["customer_id", "order_no", "line_no", "quantity", "product_id", "price_cents"];

/// 2025-01-01 in days since 1970-01-01, the day of the first order.
const FIRST_DAY: i64 = 20_089;

/// A generated order. The products of its lines have consecutive numbers.
struct Order {
    first_product: u64,
    lines: u64,
    quantity: i64,
    placed_at: i64,
}

impl Igen {
    pub fn customers(&self) -> u64 {
        self.region_ends[self.region_ends.len() - 1]
    }

    pub fn tables(&self) -> Vec<Table> {
        let table = |name, columns, units, bytes_per_unit| Table { name, columns, units, bytes_per_unit };
        let orders = self.most_orders.div_ceil(2);
        let lines = orders * self.most_lines.div_ceil(2);
        vec![
            table("igen_order_line", LINE, self.customers(), lines * 26),
            table("igen_order", ORDER, self.customers(), orders * 47),
            table("igen_customer", CUSTOMER, self.customers(), 95),
            table("igen_product", PRODUCT, self.products, 190),
            table("igen_stock", STOCK, self.products, REGIONS * 12),
        ]
    }

    pub fn emit<S: Sink>(&self, table: &str, units: std::ops::Range<u64>, sink: &mut S) -> Result<(), S::Error> {
        let mut buffer = TextBuffer::default();
        for number in units.start + 1..=units.end {
            match table {
                "igen_order_line" => self.lines(number, sink)?,
                "igen_order" => self.orders(number, sink)?,
                "igen_customer" => self.customer(number, &mut buffer, sink)?,
                "igen_product" => self.product(number, &mut buffer, sink)?,
                "igen_stock" => self.stock(number, sink)?,
                _ => unreachable!("igen-oltp has no table {table}"),
            }
        }
        Ok(())
    }

    fn rng(&self, purpose: Purpose, number: u64) -> RowRng {
        RowRng::new(self.seed, purpose as u64, number)
    }

    /// Returns how many orders the customer has.
    fn order_count(&self, customer: u64) -> u64 {
        1 + self.rng(Purpose::OrderCount, customer).below(self.most_orders)
    }

    fn price_cents(&self, product: u64) -> i64 {
        self.rng(Purpose::Price, product).between(99, 49_999)
    }

    fn order(&self, customer: u64, order_no: u64) -> Order {
        let mut rng = self.rng(Purpose::Order, customer * self.most_orders + order_no);
        let lines = 1 + rng.below(self.most_lines);
        Order {
            first_product: 1 + rng.below(self.products - self.most_lines + 1),
            lines,
            quantity: rng.between(1, 5),
            // Each order has its own period of three weeks, so that the orders of a customer are in the order of their
            // numbers.
            placed_at: (FIRST_DAY + order_no as i64 * 21) * 86_400 + rng.between(0, 20 * 86_400),
        }
    }

    fn customer<S: Sink>(&self, customer: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Customer, customer);
        let region = self.region_ends.partition_point(|&end| end < customer);
        let (first, last) = (rng.pick(words::FIRST_NAMES), rng.pick(words::LAST_NAMES));
        sink.integer(customer as i32);
        sink.smallint(region as i16 + 1);
        sink.text(buffer.of(format_args!("{first} {last}")));
        sink.text(buffer.of(format_args!("{first}.{last}.{customer}@example.com")));
        sink.text(buffer.of(format_args!("{} {}", rng.between(1, 999), rng.pick(words::STREETS))));
        sink.text(rng.pick(words::CITIES[region]));
        sink.date((FIRST_DAY - rng.between(1, 3650)) as i32);
        sink.bigint(0);
        sink.end_row()
    }

    fn product<S: Sink>(&self, product: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Product, product);
        let (quality, material, thing) =
            (rng.pick(words::QUALITIES), rng.pick(words::MATERIALS), rng.pick(words::THINGS));
        sink.integer(product as i32);
        // Consecutive products share a category, like products on a shelf.
        sink.integer(((product - 1) * self.categories / self.products) as i32 + 1);
        sink.integer(self.price_cents(product) as i32);
        sink.text(buffer.of(format_args!("{quality} {material} {thing} {product}")));
        sink.text(buffer.of(format_args!(
            "A {quality} {thing} made of {material}: {}, {} and {}. Goes well with our {} {} and the {} {}. {} years of warranty.",
            rng.pick(words::QUALITIES),
            rng.pick(words::QUALITIES),
            rng.pick(words::QUALITIES),
            rng.pick(words::MATERIALS),
            rng.pick(words::THINGS),
            rng.pick(words::QUALITIES),
            rng.pick(words::THINGS),
            rng.between(1, 9),
        )));
        sink.end_row()
    }

    fn stock<S: Sink>(&self, product: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Stock, product);
        for region in 1..=REGIONS {
            sink.integer(product as i32);
            sink.smallint(region as i16);
            sink.integer(rng.between(10, 109) as i32);
            sink.end_row()?;
        }
        Ok(())
    }

    fn orders<S: Sink>(&self, customer: u64, sink: &mut S) -> Result<(), S::Error> {
        for order_no in 1..=self.order_count(customer) {
            let order = self.order(customer, order_no);
            let products = order.first_product..order.first_product + order.lines;
            let prices: i64 = products.map(|product| self.price_cents(product)).sum();
            sink.bigint(prices * order.quantity);
            sink.timestamp(order.placed_at);
            sink.integer(customer as i32);
            sink.integer(order_no as i32);
            sink.smallint(order.lines as i16);
            sink.text("delivered");
            sink.end_row()?;
        }
        Ok(())
    }

    fn lines<S: Sink>(&self, customer: u64, sink: &mut S) -> Result<(), S::Error> {
        for order_no in 1..=self.order_count(customer) {
            let order = self.order(customer, order_no);
            for line in 0..order.lines {
                let product = order.first_product + line;
                sink.integer(customer as i32);
                sink.integer(order_no as i32);
                sink.smallint(line as i16 + 1);
                sink.smallint(order.quantity as i16);
                sink.integer(product as i32);
                sink.integer(self.price_cents(product) as i32);
                sink.end_row()?;
            }
        }
        Ok(())
    }
}
