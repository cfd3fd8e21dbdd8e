//! A source of jobs that draws the inputs of every transaction: numbers from a distribution, and texts of random
//! digits.
//!
//! Scripts cannot draw these inputs themselves, because pgbench's language has no texts and only some of the
//! distributions.

use std::collections::BTreeMap;

use ironbench_core::drive::jobs::{Jobs, Next, Role};
use ironbench_core::drive::plan::Part;
use ironbench_core::{Error, Result};
use pgbench_script::{Program, Random, Slot, SplitMix64, Value, Variables};
use serde::Deserialize;

use crate::distribution::{Distribution, Kind};

/// The variables to set before each transaction, in the order in which they are drawn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    pub draws: Vec<Input>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub variable: String,
    pub value: InputKind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum InputKind {
    /// A number in `low..=high`.
    Number { distribution: Kind, low: i64, high: i64 },
    /// A text with a random digit for each `#`.
    Digits(String),
}

/// The source of inputs of one trial.
pub struct Inputs {
    sources: Vec<(String, Source)>,
    part: Part,
    seed: u64,
}

enum Source {
    Number(Distribution),
    Digits(String),
}

impl Inputs {
    /// Creates the source for the clients of this part.
    ///
    /// # Errors
    /// Input: a range is empty, or the exponent of a distribution is not positive.
    pub fn new(options: Options, part: Part, seed: u64) -> Result<Self> {
        let source = |Input { variable, value }| {
            let source = match value {
                InputKind::Number { low, high, .. } if low > high => {
                    return Err(Error::input(format!("variable {variable}"), format!("{low} is above {high}")));
                }
                InputKind::Number { distribution: Kind::Zipfian { exponent }, .. }
                    if exponent.is_nan() || exponent <= 0.0 =>
                {
                    let cause = format!("the exponent of its distribution is {exponent}");
                    return Err(Error::input(format!("variable {variable}"), cause));
                }
                InputKind::Number { distribution, low, high } => {
                    Source::Number(Distribution::new(distribution, low, high))
                }
                InputKind::Digits(pattern) => Source::Digits(pattern),
            };
            Ok((variable, source))
        };
        Ok(Self { sources: options.draws.into_iter().map(source).collect::<Result<_>>()?, part, seed })
    }
}

impl Jobs for Inputs {
    fn name(&self) -> &'static str {
        "inputs"
    }

    /// Returns no names, because the plan names the variables.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn waiting_clients(&self) -> usize {
        0
    }

    fn check(&self, program: &Program) -> Result<()> {
        if program.scripts.len() != 1 {
            return Err(Error::input("scripts", format!("{} scripts cannot share inputs", program.scripts.len())));
        }
        match self.sources.iter().find(|(name, _)| program.symbols.get(name).is_none()) {
            Some((name, _)) => Err(Error::input(format!("variable {name}"), "is not defined")),
            None => Ok(()),
        }
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        let slot = |name| program.symbols.get(name).expect("the variables were checked");
        Box::new(InputRole {
            sources: self.sources.iter().map(|(name, source)| (slot(name), source)).collect(),
            random: Random::new(SplitMix64::mixed(self.seed).wrapping_add((self.part.first_client + client) as u64)),
            text: Vec::new(),
        })
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
}

/// Draws the inputs of one client.
struct InputRole<'a> {
    sources: Vec<(Slot, &'a Source)>,
    random: Random,
    text: Vec<u8>,
}

impl Role for InputRole<'_> {
    fn job_queue(&self) -> Option<usize> {
        None
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        for (slot, source) in &self.sources {
            match source {
                Source::Number(distribution) => {
                    variables.set(*slot, Value::Integer(distribution.draw(&mut self.random)));
                }
                Source::Digits(pattern) => {
                    self.text.clear();
                    write_digits(pattern, &mut self.random, &mut self.text);
                    variables.set_text(*slot, &self.text);
                }
            }
        }
        Next::Job { script: 0, due: now }
    }

    fn ended(&mut self, _: &mut Variables, _: bool) -> bool {
        false
    }
}

/// Number of digits taken from one random number.
const DIGITS: u32 = 15;

/// Appends `pattern` with a random digit for each `#`.
pub fn write_digits(pattern: &str, random: &mut Random, out: &mut Vec<u8>) {
    let (mut left, mut pool) = (0, 0);
    for &byte in pattern.as_bytes() {
        if byte != b'#' {
            out.push(byte);
            continue;
        }
        if left == 0 {
            (left, pool) = (DIGITS, random.up_to(10u64.pow(DIGITS) - 1));
        }
        out.push(b'0' + (pool % 10) as u8);
        (left, pool) = (left - 1, pool / 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgbench_script::{Automatic, Given, Source as Script};

    const DRAWS: &str = r##"{"draws": [
        {"variable": "id", "value": {"number": {"distribution": "special", "low": 1, "high": 1000}}},
        {"variable": "rank", "value": {"number": {"distribution": {"zipfian": {"exponent": 0.8}}, "low": 1, "high": 9}}},
        {"variable": "pad", "value": {"digits": "'###########-##'"}}]}"##;

    fn program(names: &[&str]) -> Program {
        let defined: Vec<_> = names.iter().map(|name| ((*name).to_owned(), "0".to_owned())).collect();
        let text = "SELECT 1;".to_owned();
        Program::compile(&[Script { name: "s".into(), text, weight: 1 }], &defined).unwrap()
    }

    fn inputs(draws: &str, part: Part, seed: u64) -> Result<Inputs> {
        Inputs::new(serde_json::from_str(draws).unwrap(), part, seed)
    }

    /// Returns the inputs of a client's transactions, as text.
    fn drawn(inputs: &Inputs, client: usize, transactions: usize) -> Vec<Vec<String>> {
        let program = program(&["id", "rank", "pad"]);
        let mut variables = Variables::new(&program, &[], &Automatic::default());
        let mut role = inputs.role(&program, client);
        let text = |variables: &Variables, name: &str| {
            let mut out = Vec::new();
            assert!(variables.write_text(program.symbols.get(name).unwrap(), &mut out));
            String::from_utf8(out).unwrap()
        };
        let mut next = |now| {
            assert_eq!(role.next(now, &mut variables), Next::Job { script: 0, due: now });
            assert!(matches!(
                variables.held(program.symbols.get("id").unwrap()),
                Some(Given::Value(Value::Integer(_)))
            ));
            ["id", "rank", "pad"].map(|name| text(&variables, name)).to_vec()
        };
        (0..transactions as u64).map(&mut next).collect()
    }

    #[test]
    fn each_transaction_gets_new_inputs_and_a_seed_repeats_them() {
        let whole = inputs(DRAWS, Part::whole(4), 7).unwrap();
        let first = drawn(&whole, 0, 50);
        for row in &first {
            assert!(
                (1..=1000).contains(&row[0].parse::<i64>().unwrap())
                    && (1..=9).contains(&row[1].parse::<i64>().unwrap())
            );
            assert!(row[2].len() == 16 && row[2].starts_with('\'') && row[2].ends_with('\'') && &row[2][12..13] == "-");
        }
        let texts: std::collections::BTreeSet<_> = first.iter().map(|row| &row[2]).collect();
        assert_eq!(texts.len(), 50);
        assert_eq!(first, drawn(&inputs(DRAWS, Part::whole(4), 7).unwrap(), 0, 50));
        assert_ne!(first, drawn(&inputs(DRAWS, Part::whole(4), 8).unwrap(), 0, 50));
        assert_ne!(first, drawn(&whole, 1, 50));
    }

    #[test]
    fn a_client_draws_the_same_inputs_in_any_part() {
        let part = Part { number: 1, of: 2, first_client: 2, all_clients: 4 };
        let (whole, second) = (inputs(DRAWS, Part::whole(4), 7).unwrap(), inputs(DRAWS, part, 7).unwrap());
        assert_eq!(drawn(&whole, 3, 5), drawn(&second, 1, 5));
    }

    #[test]
    fn all_digits_are_drawn_evenly() {
        let (mut random, mut text) = (Random::new(5), Vec::new());
        write_digits(&"#".repeat(100_000), &mut random, &mut text);
        for digit in b'0'..=b'9' {
            // The tolerance is five standard deviations of a binomial distribution with p = 0.1.
            assert!(text.iter().filter(|one| **one == digit).count().abs_diff(10_000) < 475);
        }
    }

    #[test]
    fn impossible_draws_are_refused() {
        let refused = |draws: &str| inputs(draws, Part::whole(1), 1).err().map(|error| error.to_string());
        let number = |distribution: &str, low: i64| {
            format!(
                r#"{{"draws": [{{"variable": "id", "value": {{"number": {{"distribution": {distribution}, "low": {low}, "high": 5}}}}}}]}}"#
            )
        };
        assert_eq!(refused(&number(r#""uniform""#, 6)), Some("variable id: 6 is above 5".to_owned()));
        let zipfian = r#"{"zipfian": {"exponent": 0}}"#;
        assert_eq!(refused(&number(zipfian, 1)), Some("variable id: the exponent of its distribution is 0".to_owned()));
        let inputs = inputs(DRAWS, Part::whole(1), 1).unwrap();
        assert_eq!(inputs.check(&program(&["id", "rank"])).unwrap_err().to_string(), "variable pad: is not defined");
        assert!(inputs.check(&program(&["id", "rank", "pad"])).is_ok());
    }
}
