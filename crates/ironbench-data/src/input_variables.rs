//! Variables through which a transaction gets its inputs. This module defines their names and the format of their
//! values.

use std::fmt::Arguments;

use pgbench_script::{Given, Program, Slot, Value, Variables};

use crate::row::TextBuffer;

/// The name of an input variable.
pub trait Name: Copy {
    /// Names of all variables of the workload.
    const ALL: &'static [&'static str];

    /// Returns the index of this name in `ALL`.
    fn index(self) -> usize;
}

/// Declares an enumeration of input variables, each with its name in scripts.
macro_rules! names {
    ($(#[$attribute:meta])* $type:ident: $($name:ident $text:literal)*) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy)]
        pub enum $type { $($name),* }

        impl $crate::input_variables::Name for $type {
            const ALL: &'static [&'static str] = &[$($text),*];

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
pub(crate) use names;

/// Slot of each variable, or None if no script mentions the variable.
pub struct Slots(Vec<Option<Slot>>);

impl Slots {
    pub fn of<N: Name>(program: &Program) -> Self {
        Self(N::ALL.iter().map(|name| program.symbols.get(name)).collect())
    }
}

/// The input variables of one client.
pub struct InputVariables<'a> {
    pub slots: &'a Slots,
    pub variables: &'a mut Variables,
    pub buffer: &'a mut TextBuffer,
    /// Whether money is in integer cents, for engines without decimals.
    pub hundredths: bool,
}

impl InputVariables<'_> {
    /// Whether a script mentions the variable.
    pub fn mentions(&self, name: impl Name) -> bool {
        self.slots.0[name.index()].is_some()
    }

    pub fn number(&mut self, name: impl Name, value: i64) {
        if let Some(slot) = self.slots.0[name.index()] {
            self.variables.set(slot, Value::Integer(value));
        }
    }

    pub fn flag(&mut self, name: impl Name, value: bool) {
        self.number(name, value.into());
    }

    pub fn text(&mut self, name: impl Name, value: &str) {
        if let Some(slot) = self.slots.0[name.index()] {
            self.variables.set_text(slot, value.as_bytes());
        }
    }

    pub fn words(&mut self, name: impl Name, value: Arguments<'_>) {
        if let Some(slot) = self.slots.0[name.index()] {
            self.variables.set_text(slot, self.buffer.of(value).as_bytes());
        }
    }

    /// Sets an amount of money, in the representation of the tables.
    pub fn cents(&mut self, name: impl Name, cents: i64) {
        if self.hundredths {
            self.number(name, cents);
        } else {
            self.words(name, format_args!("{}.{:02}", cents / 100, cents % 100));
        }
    }

    /// Sets a time in milliseconds since 1970-01-01, in the format of the tables.
    pub fn moment(&mut self, name: impl Name, millisecond: i64) {
        if let Some(slot) = self.slots.0[name.index()] {
            self.variables.set_text(slot, self.buffer.moment(millisecond).as_bytes());
        }
    }

    /// Sets a day, counted from 1970-01-01.
    pub fn date(&mut self, name: impl Name, day: i64) {
        if let Some(slot) = self.slots.0[name.index()] {
            self.variables.set_text(slot, self.buffer.date(day).as_bytes());
        }
    }

    /// Returns the value of a flag after the script has run. Returns `otherwise` if no script mentions the variable.
    pub fn is_set_or(&mut self, name: impl Name, otherwise: bool) -> bool {
        let Some(slot) = self.slots.0[name.index()] else { return otherwise };
        matches!(self.variables.value(slot), Ok(value) if value.is_true())
    }

    /// Returns the value of an integer variable after the script has run. Returns None if no script mentions the
    /// variable, or if its value is not an integer.
    pub fn number_after(&self, name: impl Name) -> Option<i64> {
        match self.variables.held(self.slots.0[name.index()]?)? {
            Given::Value(Value::Integer(value)) => Some(value),
            Given::Value(_) => None,
            Given::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        }
    }

    /// Returns the value of a text variable after the script has run.
    pub fn text_after(&self, name: impl Name) -> &str {
        let held = self.slots.0[name.index()].and_then(|slot| self.variables.held(slot));
        let Some(Given::Text(text)) = held else { return "" };
        std::str::from_utf8(text).unwrap_or_default()
    }
}
