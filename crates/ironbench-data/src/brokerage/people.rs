//! Customers, their accounts, watch lists and addresses.

use super::fixed::{tax_id, zip_code};
use super::market::Symbol;
use super::population::{self, Account, COMPANIES, Selection};
use super::shapes::{EXCHANGE_ADDRESSES, ZIP_CODES};
use super::{Brokerage, Purpose, account_id, id, words};
use crate::row::{Phrase, Sink};
use crate::words::{FIRST_NAMES, LAST_NAMES, STREETS};

/// First and last birthday, 1935-01-01 to 1986-12-31, in days since 1970-01-01.
const BORN: (i64, i64) = (-12_784, 6_208);
/// Number of tax IDs, which have ten digits.
const TAX_IDS: u64 = 10_000_000_000;

/// Returns the tax ID of a customer. The mapping is a bijection, because the factor is odd and not a multiple of 5.
pub fn tax_number(customer: u64, phrase: &mut Phrase) -> &str {
    phrase.of(format_args!("T{:010}", (customer * 7_368_787_877 + 1_234_567_891) % TAX_IDS))
}

impl Brokerage {
    /// Returns the first and last name of a customer.
    pub(super) fn name(&self, customer: u64) -> (&'static str, &'static str) {
        let mut dice = self.dice(Purpose::Name, customer);
        (dice.pick(FIRST_NAMES), dice.pick(LAST_NAMES))
    }

    pub(super) fn customer<S: Sink>(&self, number: u64, phrase: &mut Phrase, sink: &mut S) -> Result<(), S::Error> {
        let mut dice = self.dice(Purpose::Customer, number);
        let (first, last) = self.name(number);
        sink.bigint(id(number));
        sink.text(tax_number(number, phrase));
        sink.text("ACTV");
        sink.text(last);
        sink.text(first);
        sink.text(dice.pick(&["A", "B", "C", "E", "F", "J", "K", "L", "M", "R", "S", "T"]));
        sink.text(dice.pick(&["F", "M"]));
        sink.smallint(population::tier(population::place(number)) as i16);
        sink.date(dice.between(BORN.0, BORN.1) as i32);
        sink.bigint(id(EXCHANGE_ADDRESSES + self.companies() + number));
        for line in 0..3 {
            sink.text(if dice.below(10) < 9 { "1" } else { "44" });
            sink.text(phrase.of(format_args!("{}", dice.between(200, 999))));
            sink.text(phrase.of(format_args!("{}", dice.between(2_000_000, 9_999_999))));
            // Only some work numbers have an extension.
            match line {
                0 if dice.below(4) == 0 => sink.text(phrase.of(format_args!("{}", dice.between(100, 999)))),
                _ => sink.text(""),
            }
        }
        sink.text(phrase.of(format_args!("{first}.{last}.{number}@mail.example")));
        sink.text(phrase.of(format_args!("{last}{number}@work.example")));
        sink.end_row()
    }

    pub(super) fn customer_accounts<S: Sink>(
        &self,
        number: u64,
        phrase: &mut Phrase,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (first, last) = self.name(number);
        for (which, account) in self.accounts(number).enumerate() {
            sink.bigint(account_id(account.number));
            sink.bigint(id(account.broker));
            sink.bigint(id(number));
            sink.text(phrase.of(format_args!("{first} {last}, account {}", which + 1)));
            sink.smallint(account.tax_status as i16);
            sink.decimal(account.balance_cents);
            sink.end_row()?;
        }
        Ok(())
    }

    pub(super) fn permissions<S: Sink>(&self, number: u64, sink: &mut S) -> Result<(), S::Error> {
        let mut phrase = Phrase::default();
        for Account { number: account, trusted, .. } in self.accounts(number) {
            for who in std::iter::once(number).chain(trusted.into_iter().flatten()) {
                let (first, last) = self.name(who);
                sink.bigint(account_id(account));
                // There are three permissions: reading, trading and managing. Only the owner has the last one.
                sink.text(if who == number { "111" } else { "011" });
                sink.text(tax_number(who, &mut phrase));
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
        phrase: &mut Phrase,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        let (country, division) = self.tax_rates(number);
        for rate in [country, super::costs::COUNTRIES + division] {
            sink.text(tax_id(rate, phrase));
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
        let mut dice = self.dice(Purpose::Watch, number);
        let count = 50 + dice.below(101);
        let watched = Selection::drawn(&mut dice, self.securities(), count);
        for place in 0..watched.count {
            sink.bigint(id(number));
            sink.text(Symbol::of(watched.at(place)).as_str());
            sink.end_row()?;
        }
        Ok(())
    }

    /// Emits an address. Addresses are numbered in this order: exchanges, companies, customers.
    pub(super) fn address<S: Sink>(&self, number: u64, phrase: &mut Phrase, sink: &mut S) -> Result<(), S::Error> {
        let mut dice = self.dice(Purpose::Address, number);
        let home = number >= EXCHANGE_ADDRESSES + self.load_units() * COMPANIES;
        sink.bigint(id(number));
        sink.text(phrase.of(format_args!("{} {}", dice.between(1, 999), dice.pick(STREETS))));
        let inside = dice.between(1, 99);
        match (home, dice.below(3)) {
            (true, 0) => sink.text(phrase.of(format_args!("flat {inside}"))),
            (true, _) => sink.text(""),
            (false, _) => sink.text(phrase.of(format_args!("floor {}", inside % 30 + 1))),
        }
        sink.text(zip_code(dice.below(ZIP_CODES), phrase));
        sink.text(words::COUNTRIES[usize::from(dice.below(10) == 0)]);
        sink.end_row()
    }
}
