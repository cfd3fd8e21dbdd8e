//! What an option may be set to: a number or size, a share, a word.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A plain number, or bytes: `4000`, `64K`, `20G` in powers of 1024.
    Number(u64),
    /// `80%`, as 80.
    Percent(f64),
    /// `on`, `off`.
    Word(String),
}

const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl Value {
    /// None where it is no value.
    pub fn read(text: &str) -> Option<Self> {
        if let Some(share) = text.strip_suffix('%') {
            let share: f64 = decimal(share)?.parse().ok()?;
            return (0.0..=100.0).contains(&share).then_some(Self::Percent(share));
        }
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Some(Self::Word(text.to_ascii_lowercase()));
        }
        let letters = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(letters);
        let unit = unit.to_ascii_uppercase();
        let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
        let shift = match unit {
            "" => 0,
            letter => UNITS.iter().find(|(known, _)| *letter == known.to_string())?.1,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(1 << shift).map(Self::Number);
        }
        let bytes = decimal(number)?.parse::<f64>().ok()? * (1u64 << shift) as f64;
        (bytes < (1u64 << 63) as f64).then_some(Self::Number(bytes as u64))
    }
}

/// Only digits and a point: Rust's own parser would take `inf` and `1e9` too.
fn decimal(text: &str) -> Option<&str> {
    text.chars().all(|c| c.is_ascii_digit() || c == '.').then_some(text)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => {
                let unit = UNITS.iter().find(|(_, shift)| *number != 0 && number % (1 << shift) == 0);
                match unit {
                    Some((letter, shift)) => write!(f, "{}{letter}", number >> shift),
                    None => write!(f, "{number}"),
                }
            }
            Self::Percent(share) => write!(f, "{share}%"),
            Self::Word(word) => f.write_str(word),
        }
    }
}
