//! Variables with which a transaction gets its inputs: their names, and how values are written.

use std::fmt::Arguments;

use pgbench_script::{Given, Program, Slot, Value, Variables};

use crate::brokerage::market;
use crate::row::Phrase;

macro_rules! names {
    ($($name:ident $text:literal)*) => {
        #[derive(Debug, Clone, Copy)]
        pub enum Input { $($name),* }

        /// Names of all variables, in the order of `Input`.
        pub const NAMES: &[&str] = &[$($text),*];
    };
}

names! {
    Account "account"
    Brokers "brokers"
    ByName "by_name"
    CaId "ca_id"
    CId "c_id"
    CoFirst "co_first"
    CoId "co_id"
    CoLast "co_last"
    CoName "co_name"
    Day "day"
    Days "days"
    ExecFirst "exec_first"
    ExecLast "exec_last"
    ExecTaxId "exec_tax_id"
    Frame "frame"
    FromTime "from_time"
    History "history"
    Industry "industry"
    IsOwner "is_owner"
    Issue "issue"
    Lifo "lifo"
    LimitPrice "limit_price"
    Lob "lob"
    Margin "margin"
    MarketPrice "market_price"
    MaxCaId "max_ca_id"
    Mode "mode"
    Most "most"
    MostUpdates "most_updates"
    NowTime "now_time"
    Placed "placed"
    Price "price"
    Quantity "quantity"
    RollBack "roll_back"
    Sector "sector"
    StartDay "start_day"
    Symbol "symbol"
    TableNo "table_no"
    TaxId "tax_id"
    Ticker "ticker"
    ToTime "to_time"
    TradeId "trade_id"
    TradeType "trade_type"
    Trades "trades"
    Triggered "triggered"
    TxId "tx_id"
    Volume "volume"
}

/// Slots of the variables, if the scripts mention them.
pub struct Slots(Vec<Option<Slot>>);

impl Slots {
    pub fn of(program: &Program) -> Self {
        Self(NAMES.iter().map(|name| program.symbols.get(name)).collect())
    }
}

/// The input variables of one client.
pub struct Sheet<'a> {
    pub slots: &'a Slots,
    pub variables: &'a mut Variables,
    pub phrase: &'a mut Phrase,
    /// Whether money is in integer cents, for engines without decimals.
    pub hundredths: bool,
}

impl Sheet<'_> {
    pub fn number(&mut self, name: Input, value: i64) {
        if let Some(slot) = self.slots.0[name as usize] {
            self.variables.set(slot, Value::Integer(value));
        }
    }

    pub fn flag(&mut self, name: Input, value: bool) {
        self.number(name, value.into());
    }

    pub fn text(&mut self, name: Input, value: &str) {
        if let Some(slot) = self.slots.0[name as usize] {
            self.variables.set_text(slot, value.as_bytes());
        }
    }

    pub fn words(&mut self, name: Input, value: Arguments<'_>) {
        if let Some(slot) = self.slots.0[name as usize] {
            self.variables.set_text(slot, self.phrase.of(value).as_bytes());
        }
    }

    /// Sets an amount of money, in the representation of the tables.
    pub fn cents(&mut self, name: Input, cents: i64) {
        if self.hundredths {
            self.number(name, cents);
        } else {
            self.words(name, format_args!("{}.{:02}", cents / 100, cents % 100));
        }
    }

    /// Sets a business time to the millisecond, in the format of the tables.
    pub fn moment(&mut self, name: Input, time_ms: i64) {
        if let Some(slot) = self.slots.0[name as usize] {
            self.variables.set_text(slot, self.phrase.moment(market::moment(time_ms)).as_bytes());
        }
    }

    /// Sets a day, counted from 1970-01-01.
    pub fn date(&mut self, name: Input, day: i64) {
        if let Some(slot) = self.slots.0[name as usize] {
            self.variables.set_text(slot, self.phrase.date(day).as_bytes());
        }
    }

    /// Reads a flag as the script left it; `otherwise` if no script mentions it.
    pub fn is_set_or(&mut self, name: Input, otherwise: bool) -> bool {
        let Some(slot) = self.slots.0[name as usize] else { return otherwise };
        matches!(self.variables.value(slot), Ok(value) if value.is_true())
    }

    /// Reads a text as the script left it.
    pub fn left(&self, name: Input) -> &str {
        let held = self.slots.0[name as usize].and_then(|slot| self.variables.held(slot));
        let Some(Given::Text(text)) = held else { return "" };
        std::str::from_utf8(text).unwrap_or_default()
    }
}
