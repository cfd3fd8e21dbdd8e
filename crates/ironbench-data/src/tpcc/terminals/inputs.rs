//! Draws the inputs of each transaction (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1).

use std::fmt::Write;

use super::names::{Input, LineField, LineVariable};
use crate::input_variables::InputVariables;
use crate::row_rng::RowRng;
use crate::tpcc::random_values::{OF_CUSTOMERS, OF_ITEMS, OF_NAMES, RandomText, nurand};
use crate::tpcc::{CUSTOMERS, DISTRICTS, ITEMS, LAST_NAMES};

/// Minimum and maximum number of lines of an order.
const LINES: (i64, i64) = (5, 15);
pub(super) const MAX_LINES: usize = LINES.1 as usize;
/// Number of an item that does not exist. An order with this item is rolled back.
const UNKNOWN_ITEM: u64 = ITEMS + 1;

/// The constants C of NURand, which all terminals of a trial share (clause 2.1.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    names: u64,
    customers: u64,
    items: u64,
}

impl Constants {
    /// Draws the constants. `c_load` is the constant for last names with which the data were generated. The new
    /// constant for last names differs from it by 65 to 119, but not by 96 or 112.
    pub fn drawn(rng: &mut RowRng, c_load: u64) -> Self {
        let differs = |c: &u64| matches!(c.abs_diff(c_load), 65..=95 | 97..=111 | 113..=119);
        let possible: Vec<u64> = (0..=OF_NAMES).filter(differs).collect();
        Self {
            names: possible[rng.below(possible.len() as u64) as usize],
            customers: rng.below(OF_CUSTOMERS + 1),
            items: rng.below(OF_ITEMS + 1),
        }
    }
}

/// The warehouses and the district that a terminal works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Home {
    /// Number of the terminal's first warehouse, from 0. The other warehouses are `first + step`, `first + 2 * step`,
    /// and so on.
    pub first: u64,
    pub step: u64,
    /// District that Stock-Level examines, from 0. With None, each transaction draws a random district.
    pub district: Option<u64>,
}

impl Home {
    /// Every warehouse, and a random district in each transaction.
    pub const ANY: Self = Self { first: 0, step: 1, district: None };

    /// Returns the home of one of `terminals` terminals. If there are fewer terminals than warehouses, each terminal
    /// has several warehouses, and no two terminals share one. The standard has ten terminals for each warehouse, one
    /// for each district.
    pub fn of(terminal: u64, terminals: u64, warehouses: u64) -> Self {
        let district = (terminals >= warehouses * DISTRICTS).then_some(terminal / warehouses % DISTRICTS);
        Self { first: terminal % warehouses, step: terminals.min(warehouses), district }
    }
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OrderLine {
    supplier: u64,
    item: u64,
    quantity: i64,
}

/// Draws the inputs of one terminal.
pub struct Inputs {
    warehouses: u64,
    constants: Constants,
    home: Home,
    pub rng: RowRng,
    lines: Vec<OrderLine>,
    list: String,
    text: RandomText,
}

impl Inputs {
    pub fn new(warehouses: u64, constants: Constants, home: Home, rng: RowRng) -> Self {
        let (lines, list) = (Vec::with_capacity(MAX_LINES), String::new());
        Self { warehouses, constants, home, rng, lines, list, text: RandomText::default() }
    }

    /// Draws one of the terminal's warehouses.
    fn warehouse(&mut self) -> u64 {
        let Home { first, step, .. } = self.home;
        let own = (self.warehouses - first).div_ceil(step);
        first + step * if own > 1 { self.rng.below(own) } else { 0 } + 1
    }

    /// Draws any warehouse except this one. There must be at least two.
    fn other_warehouse(&mut self, than: u64) -> u64 {
        let other = self.rng.below(self.warehouses - 1) + 1;
        other + u64::from(other >= than)
    }

    fn district(&mut self) -> i64 {
        self.rng.between(1, DISTRICTS as i64)
    }

    fn customer(&mut self) -> i64 {
        nurand(&mut self.rng, OF_CUSTOMERS, 1, CUSTOMERS, self.constants.customers) as i64
    }

    fn percent(&mut self) -> u64 {
        self.rng.below(100)
    }

    /// Draws how a customer is found. In 60% of the cases, this is by last name.
    fn customer_or_name(&mut self, vars: &mut InputVariables) {
        let by_name = self.percent() < 60;
        vars.flag(Input::ByName, by_name);
        if by_name {
            let number = nurand(&mut self.rng, OF_NAMES, 0, LAST_NAMES - 1, self.constants.names);
            vars.text(Input::CLast, self.text.last_name(number));
            vars.number(Input::CId, 0);
        } else {
            vars.text(Input::CLast, "");
            let customer = self.customer();
            vars.number(Input::CId, customer);
        }
    }

    /// Draws a New-Order. Returns whether the order has an unknown item and so has to be rolled back.
    ///
    /// Lines are sorted by the stock that they change, so that all orders lock stock in the same sequence and cause no
    /// deadlocks.
    pub fn new_order(&mut self, vars: &mut InputVariables) -> bool {
        let warehouse = self.warehouse();
        vars.number(Input::WId, warehouse as i64);
        let (district, customer) = (self.district(), self.customer());
        vars.number(Input::DId, district);
        vars.number(Input::CId, customer);
        let rolled_back = self.percent() == 0;
        self.lines.clear();
        for _ in 0..self.rng.between(LINES.0, LINES.1) {
            let item = nurand(&mut self.rng, OF_ITEMS, 1, ITEMS, self.constants.items);
            let remote = self.warehouses > 1 && self.percent() == 0;
            let supplier = if remote { self.other_warehouse(warehouse) } else { warehouse };
            let quantity = self.rng.between(1, 10);
            self.lines.push(OrderLine { supplier, item, quantity });
        }
        if rolled_back {
            self.lines.last_mut().expect("an order has lines").item = UNKNOWN_ITEM;
        }
        let known = self.lines.len() - usize::from(rolled_back);
        self.lines[..known].sort_unstable();
        vars.flag(Input::Local, self.lines.iter().all(|line| line.supplier == warehouse));
        self.set_lines(vars);
        rolled_back
    }

    fn set_lines(&mut self, vars: &mut InputVariables) {
        let Self { lines, list, .. } = self;
        vars.number(Input::Lines, lines.len() as i64);
        let new = |place: usize| lines[..place].iter().all(|line| line.item != lines[place].item);
        vars.number(Input::Different, (0..lines.len()).filter(|place| new(*place)).count() as i64);
        for place in 0..MAX_LINES {
            // If the order has fewer lines than variables, the first line is repeated.
            let OrderLine { supplier, item, quantity } = lines.get(place).copied().unwrap_or(lines[0]);
            vars.number(LineVariable(place, LineField::Item), item as i64);
            vars.number(LineVariable(place, LineField::Supplier), supplier as i64);
            vars.number(LineVariable(place, LineField::Quantity), quantity);
        }
        let mut listed = |name: Input, values: fn(&OrderLine, &mut String) -> std::fmt::Result| {
            if !vars.mentions(name) {
                return;
            }
            list.clear();
            for (place, line) in lines.iter().enumerate() {
                if place > 0 {
                    list.push(',');
                }
                // Writing to a String cannot fail.
                let _ = values(line, list);
            }
            vars.text(name, list);
        };
        listed(Input::Items, |line, list| write!(list, "{}", line.item));
        listed(Input::Suppliers, |line, list| write!(list, "{}", line.supplier));
        listed(Input::Quantities, |line, list| write!(list, "{}", line.quantity));
        listed(Input::OrderLines, |OrderLine { supplier, item, quantity }, list| {
            write!(list, "[{item},{supplier},{quantity}]")
        });
    }

    pub fn payment(&mut self, vars: &mut InputVariables) {
        let (warehouse, district) = (self.warehouse(), self.district());
        vars.number(Input::WId, warehouse as i64);
        vars.number(Input::DId, district);
        let remote = self.percent() < 15 && self.warehouses > 1;
        let of_customer =
            if remote { (self.other_warehouse(warehouse), self.district()) } else { (warehouse, district) };
        vars.number(Input::CWId, of_customer.0 as i64);
        vars.number(Input::CDId, of_customer.1);
        self.customer_or_name(vars);
        let cents = self.rng.between(100, 500_000);
        vars.cents(Input::Amount, cents);
    }

    pub fn order_status(&mut self, vars: &mut InputVariables) {
        let (warehouse, district) = (self.warehouse(), self.district());
        vars.number(Input::CWId, warehouse as i64);
        vars.number(Input::CDId, district);
        self.customer_or_name(vars);
    }

    /// Draws the inputs of a Delivery: its warehouse and its carrier.
    pub fn delivery(&mut self) -> (u64, i64) {
        (self.warehouse(), self.rng.between(1, 10))
    }

    pub fn stock_level(&mut self, vars: &mut InputVariables) {
        let warehouse = self.warehouse();
        let district = self.home.district.map_or_else(|| self.district(), |own| own as i64 + 1);
        let threshold = self.rng.between(10, 20);
        vars.number(Input::WId, warehouse as i64);
        vars.number(Input::DId, district);
        vars.number(Input::Threshold, threshold);
    }
}
