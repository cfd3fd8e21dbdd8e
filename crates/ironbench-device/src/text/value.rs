//! Values of options: a number or size, a percentage, or a word.

use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A plain number, or a number of bytes: `4000`, `64K` and `64KiB` (2¹⁰), `64KB` (10³), as parsed by
    /// `ironbench.units`.
    Number(u64),
    /// A percentage: `80%` is 80.
    Percent(f64),
    /// A word, such as `on` or `off`.
    Word(String),
}

const UNITS: [(char, u32); 4] = [('T', 40), ('G', 30), ('M', 20), ('K', 10)];

impl Value {
    /// Parses a value. Returns None if it is malformed.
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
        let factor = factor(&unit.to_ascii_uppercase())?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Self::Number);
        }
        let bytes = decimal(number)?.parse::<f64>().ok()? * factor as f64;
        (bytes < (1u64 << 63) as f64).then_some(Self::Number(bytes as u64))
    }
}

/// Returns the factor of a unit written in capitals.
fn factor(unit: &str) -> Option<u64> {
    if matches!(unit, "" | "B") {
        return Some(1);
    }
    let (_, shift) = UNITS.iter().find(|(letter, _)| unit.starts_with(*letter))?;
    match &unit[1..] {
        "" | "IB" => Some(1 << shift),
        "B" => Some(1000u64.pow(shift / 10)),
        _ => None,
    }
}

/// Parses digits and a point, and nothing else. Rust's own parser would also accept `inf` and `1e9`.
fn decimal(text: &str) -> Option<&str> {
    text.chars().all(|c| c.is_ascii_digit() || c == '.').then_some(text)
}

/// Formats a number in the shortest exact form. The function prefers `20G` to `20GiB`, which mean the same.
fn shortest_form(number: u64) -> String {
    let binary = UNITS.iter().map(|(letter, shift)| (1u64 << shift, letter.to_string()));
    let decimal = UNITS.iter().map(|(letter, shift)| (1000u64.pow(shift / 10), format!("{letter}B")));
    let fitting = binary.chain(decimal).filter(|(factor, _)| number != 0 && number.is_multiple_of(*factor));
    let texts = fitting.map(|(factor, unit)| format!("{}{unit}", number / factor));
    texts.chain([number.to_string()]).min_by_key(String::len).unwrap_or_default()
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&shortest_form(*number)),
            Self::Percent(share) => write!(f, "{share}%"),
            Self::Word(word) => f.write_str(word),
        }
    }
}
