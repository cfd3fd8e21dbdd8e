//! Customers, their accounts, watch lists and addresses.

use super::fixed::{tax_id, zip_code};
use super::market::Symbol;
use super::population::{self, Account, COMPANIES, Selection};
use super::shapes::{EXCHANGE_ADDRESSES, ZIP_CODES};
use super::{Brokerage, Purpose, account_id, id, words};
use crate::row::{Sink, TextBuffer};
use crate::words::{FIRST_NAMES, LAST_NAMES, STREETS};

/// First and last birthday, 1935-01-01 to 1986-12-31, in days since 1970-01-01.
const BORN: (i64, i64) = (-12_784, 6_208);
/// Number of tax IDs, which have ten digits.
const TAX_IDS: u64 = 10_000_000_000;

/// Returns the tax ID of a customer. The mapping is a bijection, because the factor is odd and not a multiple of 5.
pub fn tax_number(customer: u64, buffer: &mut TextBuffer) -> &str {
    buffer.of(format_args!("T{:010}", (customer * 7_368_787_877 + 1_234_567_891) % TAX_IDS))
}

impl Brokerage {
    /// Returns the first and last name of a customer.
    pub(super) fn name(&self, customer: u64) -> (&'static str, &'static str) {
        let mut rng = self.rng(Purpose::Name, customer);
        (rng.pick(FIRST_NAMES), rng.pick(LAST_NAMES))
    }

    pub(super) fn customer<S: Sink>(&self, number: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Customer, number);
        let (first, last) = self.name(number);
        sink.bigint(id(number));
        sink.text(tax_number(number, buffer));
        sink.text("ACTV");
        sink.text(last);
        sink.text(first);
        sink.text(rng.pick(&["A", "B", "C", "E", "F", "J", "K", "L", "M", "R", "S", "T"]));
        sink.text(rng.pick(&["F", "M"]));
        sink.smallint(population::tier(population::rank(number)) as i16);
        sink.date(rng.between(BORN.0, BORN.1) as i32);
        sink.bigint(id(EXCHANGE_ADDRESSES + self.companies() + number));
        for line in 0..3 {
            sink.text(if rng.below(10) < 9 { "1" } else { "44" });
            sink.text(buffer.of(format_args!("{}", rng.between(200, 999))));
            sink.text(buffer.of(format_args!("{}", rng.between(2_000_000, 9_999_999))));
            // Only some work numbers have an extension.
            match line {
                0 if rng.below(4) == 0 => sink.text(buffer.of(format_args!("{}", rng.between(100, 999)))),
                _ => sink.text(""),
            }
        }
        sink.text(buffer.of(format_args!("{first}.{last}.{number}@mail.example")));
        sink.text(buffer.of(format_args!("{last}{number}@work.example")));
        sink.end_row()
    }

    pub(super) fn customer_accounts<S: Sink>(
        &self,
        number: u64,
        buffer: &mut TextBuffer,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (first, last) = self.name(number);
        for (which, account) in self.accounts(number).enumerate() {
            sink.bigint(account_id(account.number));
            sink.bigint(id(account.broker));
            sink.bigint(id(number));
            sink.text(buffer.of(format_args!("{first} {last}, account {}", which + 1)));
            sink.smallint(account.tax_status as i16);
            sink.decimal(account.balance_cents);
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn permissions<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut buffer = TextBuffer::default();
        for Account { number: account, trusted, .. } in self.accounts(number) {
            for who in std::iter::once(number).chain(trusted.into_iter().flatten()) {
                let (first, last) = self.name(who);
                sink.bigint(account_id(account));
                // There are three permissions: reading, trading and managing. Only the owner has the last one.
                sink.text(if who == number { "111" } else { "011" });
                sink.text(tax_number(who, &mut buffer));
                sink.text(last);
                sink.text(first);
                sink.end_row()?;
            }
        }
        Ok(())
    }

    pub(super) fn customer_taxrates<S: Sink>(
        &self,
        number: u64,
        buffer: &mut TextBuffer,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (country, division) = self.tax_rates(number);
        for rate in [country, super::costs::COUNTRIES + division] {
            sink.text(tax_id(rate, buffer));
            sink.bigint(id(number));
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn watch_list<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        sink.bigint(id(number));
        sink.bigint(id(number));
        sink.end_row()
    }

    /// Emits 50 to 150 securities for a watch list.
    pub(super) fn watch_items<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Watch, number);
        let count = 50 + rng.below(101);
        let watched = Selection::drawn(&mut rng, self.securities(), count);
        for index in 0..watched.count {
            sink.bigint(id(number));
            sink.text(Symbol::of(watched.at(index)).as_str());
            sink.end_row()?;
        }
        Ok(())
    }

    /// Emits an address. Addresses are numbered in this order: exchanges, companies, customers.
    pub(super) fn address<S: Sink>(&self, number: u64, buffer: &mut TextBuffer, sink: &mut S) -> Result<(), S::Error> {
        let mut rng = self.rng(Purpose::Address, number);
        let home = number >= EXCHANGE_ADDRESSES + self.load_units() * COMPANIES;
        sink.bigint(id(number));
        sink.text(buffer.of(format_args!("{} {}", rng.between(1, 999), rng.pick(STREETS))));
        let inside = rng.between(1, 99);
        match (home, rng.below(3)) {
            (true, 0) => sink.text(buffer.of(format_args!("flat {inside}"))),
            (true, _) => sink.text(""),
            (false, _) => sink.text(buffer.of(format_args!("floor {}", inside % 30 + 1))),
        }
        sink.text(zip_code(rng.below(ZIP_CODES), buffer));
        sink.text(words::COUNTRIES[usize::from(rng.below(10) == 0)]);
        sink.end_row()
    }
}
