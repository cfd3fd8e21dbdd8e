//! Options of one part of an expression.

use ironbench_core::{Error, Result};
use pgbench_script::nearest;

use crate::text::{Expression, OptionSetting, Value};

pub struct Options<'e> {
    whole: String,
    settings: &'e [OptionSetting],
}

impl<'e> Options<'e> {
    /// Creates the options of a part, and rejects those that are not `known`.
    pub fn new(whole: &Expression, part: &'e Expression, known: &[&str]) -> Result<Self> {
        let options = Self { whole: whole.source.clone(), settings: &part.options };
        match part.options.iter().find(|option| !known.contains(&option.key.as_str())) {
            None => Ok(options),
            Some(option) => {
                let hint = if known.is_empty() { String::new() } else { nearest(&option.key, known.iter().copied()) };
                let cause = format!("{} has no option {}", part.name, option.key);
                Err(options.at(option.column, cause).hint(hint))
            }
        }
    }

    pub fn number(&self, key: &str) -> Result<Option<u64>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Number(0)) => Err(self.fault(key, format!("{key} must be greater than 0"))),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(self.fault(key, format!("{key} must be a number or size"))),
        }
    }

    /// Returns a percentage as a number from 0 to 1.
    pub fn fraction(&self, key: &str) -> Result<Option<f64>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Percent(share)) => Ok(Some(share / 100.0)),
            Some(_) => Err(self.fault(key, format!("{key} must be a percentage, for example {key}=80%"))),
        }
    }

    /// Returns the value of an option that is `on` or `off`.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Word(word)) if word == "on" => Ok(Some(true)),
            Some(Value::Word(word)) if word == "off" => Ok(Some(false)),
            Some(_) => Err(self.fault(key, format!("{key} must be on or off"))),
        }
    }

    pub fn fault(&self, key: &str, cause: String) -> Error {
        let column = self.settings.iter().find(|option| option.key == key).map_or(1, |option| option.column);
        self.at(column, cause)
    }

    fn at(&self, column: usize, cause: String) -> Error {
        Error::input(format!("device \"{}\"", self.whole), format!("column {column}: {cause}"))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.settings.iter().find(|option| option.key == key).map(|option| &option.value)
    }
}
