//! Draws the inputs of each transaction. Customers are drawn in proportion to activity.
//! Everything else comes from the data model and random numbers, so no query is needed.

use super::names::Input;
use crate::brokerage::fixed::tax_id;
use crate::brokerage::market::{self, DAY_MS, HIGHEST_CENTS, Kind, LOWEST_CENTS, PAST_DAYS, PAST_FIRST_DAY, Symbol};
use crate::brokerage::population::{self, ALL_ACTIVITY, BROKERS, LOAD_UNIT, MAX_ACCOUNTS, Selection, TRADES_PER_DAY};
use crate::brokerage::shapes::{INDUSTRIES, SECTORS};
use crate::brokerage::{Brokerage, account_id, costs, id, trade_id, words};
use crate::input_variables::InputVariables;
use crate::row::TextBuffer;
use crate::row_rng::RowRng;

/// Maximum number of trades in a lookup or update.
const MAX_TRADES: usize = 20;
/// Minimum and maximum number of brokers in a list.
const BROKER_LIST: (u64, u64) = (20, 40);
/// Number of consecutive companies in a query by industry.
const COMPANY_RANGE: u64 = 5000;
/// Number of possible start weeks of a query of past prices.
const PAST_WEEKS: u64 = 260;
/// Business time at the end of the initial trades that no lookup by account starts in. The next constants are for
/// lookups by security and by holding.
const BACK_ACCOUNT_MS: i64 = 32 * 3_600_000;
const BACK_SYMBOL_MS: i64 = 200 * 60_000;
const BACK_HOLDING_MS: i64 = 500 * 60_000;
/// One of this many orders is rolled back on purpose.
const ROLLED_BACK: u64 = 101;

/// Customers of a load unit with their cumulative activity, in order of rank.
pub struct Activity {
    ends: Vec<u64>,
    customers: Vec<u64>,
}

impl Activity {
    pub fn new() -> Self {
        let mut customers = vec![0; LOAD_UNIT as usize];
        for customer in 0..LOAD_UNIT {
            customers[population::rank(customer) as usize] = customer;
        }
        let mut end = 0;
        let ends = (0..LOAD_UNIT).map(|index| {
            end += population::activity(index);
            end
        });
        Self { ends: ends.collect(), customers }
    }

    /// Draws a load unit uniformly, and a customer in it in proportion to activity.
    pub fn customer(&self, units: u64, rng: &mut RowRng) -> u64 {
        let unit = rng.below(units);
        let drawn = rng.below(ALL_ACTIVITY);
        unit * LOAD_UNIT + self.customers[self.ends.partition_point(|end| *end <= drawn)]
    }
}

/// An order, with the properties that the market needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    pub trade: i64,
    pub security: u64,
    pub kind: Kind,
    pub quantity: i64,
    pub limit_cents: i64,
}

/// The start of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Business time, as stored in rows.
    pub now_ms: i64,
    /// Position on the price curve.
    pub curve_ms: i64,
}

/// Draws the inputs of one client.
pub struct Inputs<'a> {
    brokerage: &'a Brokerage,
    activity: &'a Activity,
    pub rng: RowRng,
    list: String,
    ids: Vec<u64>,
    buffer: TextBuffer,
}

/// Draws from `low..=high` non-uniformly (the standard's NURand). In the drawn number, the bits from position `shift`
/// on are ones more often than zeros.
pub fn uneven(rng: &mut RowRng, low: u64, high: u64, most: u64, shift: u32) -> u64 {
    let even = low + rng.below(high - low + 1);
    (even | (rng.below(most + 1) << shift)) % (high - low + 1) + low
}

impl<'a> Inputs<'a> {
    pub fn new(brokerage: &'a Brokerage, activity: &'a Activity, rng: RowRng) -> Self {
        Self { brokerage, activity, rng, list: String::new(), ids: Vec::new(), buffer: TextBuffer::default() }
    }

    fn customer(&mut self) -> u64 {
        self.activity.customer(self.brokerage.load_units(), &mut self.rng)
    }

    /// Draws one of the customer's accounts.
    fn account_of(&mut self, customer: u64) -> u64 {
        self.rng.below(population::accounts(population::rank(customer)))
    }

    fn account(&mut self) -> i64 {
        let customer = self.customer();
        account_id(customer * MAX_ACCOUNTS + self.account_of(customer))
    }

    fn security(&mut self) -> u64 {
        self.rng.below(self.brokerage.securities())
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub fn broker_volume(&mut self, vars: &mut InputVariables) {
        let total = self.brokerage.load_units() * BROKERS;
        // A small brokerage has fewer brokers than the longest list. In this case, the list contains at least half of
        // them.
        let most = BROKER_LIST.1.min(total);
        let count = self.rng.between((BROKER_LIST.0.min(total.div_ceil(2))) as i64, most as i64) as u64;
        let chosen = Selection::drawn(&mut self.rng, total, count);
        self.list.clear();
        for index in 0..chosen.count {
            let broker = chosen.at(index);
            let (first, last) = self.brokerage.broker_name(broker);
            self.list.push_str(if index == 0 { "[\"" } else { ",\"" });
            self.list.push_str(self.buffer.of(format_args!("{first} {last} {}\"", broker + 1)));
        }
        self.list.push(']');
        vars.text(Input::Brokers, &self.list);
        vars.text(Input::Sector, words::SECTORS[self.rng.below(SECTORS) as usize]);
    }

    pub fn customer_position(&mut self, vars: &mut InputVariables) {
        let customer = self.customer();
        let by_tax_id = self.chance(50);
        vars.number(Input::CId, if by_tax_id { 0 } else { id(customer) });
        vars.text(Input::TaxId, if by_tax_id { self.tax_id(customer) } else { "" });
        let history = self.chance(50);
        vars.flag(Input::History, history);
        let account = self.account_of(customer);
        vars.number(Input::Account, account as i64);
    }

    pub fn market_watch(&mut self, vars: &mut InputVariables) {
        let mode = match self.rng.below(100) {
            0..60 => 1,
            60..95 => 2,
            _ => 3,
        };
        let customer = self.customer();
        let account = account_id(customer * MAX_ACCOUNTS + self.account_of(customer));
        vars.number(Input::Mode, mode);
        vars.number(Input::CId, if mode == 1 { id(customer) } else { 0 });
        vars.number(Input::CaId, if mode == 2 { account } else { 0 });
        let (industry, companies) = (self.rng.below(INDUSTRIES) as usize, self.brokerage.companies());
        let range = COMPANY_RANGE.min(companies);
        let first = self.rng.below(companies - range + 1);
        let (sector, field) = (industry % SECTORS as usize, industry / SECTORS as usize);
        let industry = self.buffer.of(format_args!("{} {}", words::SECTORS[sector], words::FIELDS[field]));
        vars.text(Input::Industry, if mode == 3 { industry } else { "" });
        vars.number(Input::CoFirst, if mode == 3 { id(first) } else { 0 });
        vars.number(Input::CoLast, if mode == 3 { id(first + range - 1) } else { 0 });
        let week = uneven(&mut self.rng, 0, PAST_WEEKS - 1, 255, 0) as i64;
        let weekday = match self.rng.below(100) {
            0..20 => 0,
            20..27 => 1,
            27..33 => 2,
            33..40 => 3,
            _ => 4,
        };
        vars.date(Input::StartDay, PAST_FIRST_DAY + week * 7 + weekday);
    }

    pub fn security_detail(&mut self, vars: &mut InputVariables) {
        let security = self.security();
        vars.text(Input::Symbol, Symbol::of(security).as_str());
        let days = self.rng.between(5, 20);
        let start = self.rng.below(PAST_DAYS - days as u64 + 1);
        vars.number(Input::Days, days);
        vars.date(Input::StartDay, market::business_day(PAST_FIRST_DAY, start));
        let lob = self.chance(1);
        vars.flag(Input::Lob, lob);
    }

    pub fn trade_lookup(&mut self, vars: &mut InputVariables) {
        let frame = match self.rng.below(100) {
            0..30 => 1,
            30..60 => 2,
            60..90 => 3,
            _ => 4,
        };
        self.old_trades(frame, vars);
    }

    pub fn trade_update(&mut self, vars: &mut InputVariables) {
        let frame = match self.rng.below(100) {
            0..33 => 1,
            33..66 => 2,
            _ => 3,
        };
        self.old_trades(frame, vars);
        vars.number(Input::MostUpdates, MAX_TRADES as i64);
    }

    /// Draws trades by ID, account, security, or holding, depending on `frame`.
    fn old_trades(&mut self, frame: i64, vars: &mut InputVariables) {
        vars.number(Input::Frame, frame);
        vars.number(Input::Most, MAX_TRADES as i64);
        self.list.clear();
        self.list.push('[');
        if frame == 1 {
            self.draw_trades();
        }
        self.list.push(']');
        vars.text(Input::Trades, &self.list);
        let account = if frame == 2 || frame == 4 { self.account() } else { 0 };
        vars.number(Input::CaId, account);
        let security = self.security();
        let symbol = Symbol::of(security);
        vars.text(Input::Symbol, if frame == 3 { symbol.as_str() } else { "" });
        vars.number(Input::MaxCaId, account_id(self.brokerage.customers * MAX_ACCOUNTS - 1));
        let span = self.brokerage.span_ms();
        let back = match frame {
            2 => BACK_ACCOUNT_MS,
            3 => BACK_SYMBOL_MS,
            _ => BACK_HOLDING_MS,
        };
        // If there are too few days for `back`, the lookup starts in the first half of the period.
        let last = (span - back).max(span / 2) as u64;
        let from = uneven(&mut self.rng, 0, last - 1, 4095, 16) as i64;
        vars.moment(Input::FromTime, market::moment(from));
        vars.moment(Input::ToTime, market::moment(span - 1));
    }

    /// Draws distinct initial trades.
    fn draw_trades(&mut self) {
        let total = self.brokerage.load_units() * TRADES_PER_DAY * self.brokerage.days;
        self.ids.clear();
        while self.ids.len() < MAX_TRADES {
            let trade = uneven(&mut self.rng, 0, total - 1, 65_535, 7);
            if self.ids.contains(&trade) {
                continue;
            }
            if !self.ids.is_empty() {
                self.list.push(',');
            }
            self.list.push_str(self.buffer.of(format_args!("{}", trade_id(trade))));
            self.ids.push(trade);
        }
    }

    pub fn trade_status(&mut self, vars: &mut InputVariables) {
        let account = self.account();
        vars.number(Input::CaId, account);
    }

    /// Draws an order. Also returns whether the order is rolled back on purpose.
    pub fn trade_order(&mut self, trade: i64, times: Times, vars: &mut InputVariables) -> (Order, bool) {
        let customer = self.customer();
        let which = self.account_of(customer);
        let account = self.brokerage.account(customer, which);
        let security = account.securities.at(self.rng.below(account.securities.count));
        let kind = Kind::of(self.rng.below(100));
        let quantity = 100 << self.rng.below(4);
        // In 40% of the accounts, other people may place orders. These people place a quarter of the orders of these
        // accounts, which is a tenth of all orders.
        let executor = account.trusted[0].filter(|_| self.rng.below(4) == 0);
        let market_cents = market::price_cents(security, times.curve_ms);
        let drawn_cents = self.rng.between(LOWEST_CENTS, HIGHEST_CENTS);
        let limit_cents = if kind.is_market() { market_cents } else { drawn_cents };
        let roll_back = self.rng.below(ROLLED_BACK) == 0;
        let margin = self.chance(16) && !kind.is_sell();
        let lifo = self.chance(35);
        let by_name = self.chance(40);
        let who = executor.unwrap_or(customer);
        let (first, last) = self.brokerage.name(who);
        vars.number(Input::CaId, account_id(account.number));
        vars.text(Input::ExecTaxId, self.tax_id(who));
        vars.text(Input::ExecFirst, first);
        vars.text(Input::ExecLast, last);
        vars.flag(Input::IsOwner, executor.is_none());
        vars.flag(Input::ByName, by_name);
        let (company, preferred) = market::issuer(security);
        let symbol = Symbol::of(security);
        vars.text(Input::Symbol, if by_name { "" } else { symbol.as_str() });
        let firm = crate::brokerage::firms::firm(company, "", &mut self.buffer);
        vars.text(Input::CoName, if by_name { firm } else { "" });
        vars.text(Input::Issue, if by_name { market::issue(preferred) } else { "" });
        vars.text(Input::TradeType, kind.id());
        vars.number(Input::Quantity, quantity);
        vars.cents(Input::LimitPrice, limit_cents);
        vars.cents(Input::MarketPrice, market_cents);
        vars.flag(Input::Margin, margin);
        vars.flag(Input::Lifo, lifo);
        vars.flag(Input::RollBack, roll_back);
        vars.moment(Input::NowTime, market::moment(times.now_ms));
        vars.number(Input::TradeId, trade);
        vars.flag(Input::Placed, !roll_back);
        (Order { trade, security, kind, quantity, limit_cents }, roll_back)
    }

    /// Draws the inputs of Data-Maintenance. `table` is 1 to 12, in the order of the standard.
    pub fn data_maintenance(&mut self, table: i64, vars: &mut InputVariables) {
        let customer = self.rng.below(self.brokerage.customers);
        let account = account_id(customer * MAX_ACCOUNTS + self.account_of(customer));
        let company = self.rng.below(self.brokerage.companies());
        let security = self.security();
        let of_customer = table != 2 || self.chance(67);
        vars.number(Input::TableNo, table);
        vars.number(Input::CId, if of_customer { id(customer) } else { 0 });
        vars.number(Input::CaId, account);
        vars.number(Input::CoId, id(company));
        vars.text(Input::Symbol, Symbol::of(security).as_str());
        let (day, volume) = (self.rng.between(1, 31), self.rng.between(-3, 3));
        vars.number(Input::Day, day);
        vars.number(Input::Volume, volume);
        let rate = self.rng.below(costs::COUNTRIES + costs::DIVISIONS);
        vars.text(Input::TxId, tax_id(rate, &mut self.buffer));
    }

    fn tax_id(&mut self, customer: u64) -> &str {
        crate::brokerage::people::tax_number(customer, &mut self.buffer)
    }
}

/// Returns the start of a trial's orders, which is the morning after the initial trades.
pub fn morning(brokerage: &Brokerage) -> i64 {
    brokerage.days as i64 * DAY_MS
}
