//! The terminals of a trial: each draws its transactions from its own deck of cards, with their inputs.
//!
//! With the standard's pacing, a terminal keys before each transaction and thinks after it.

mod deck;
mod inputs;
mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ironbench_core::drive::jobs::{Jobs, Next, Role};
use ironbench_core::drive::plan::Part;
use ironbench_core::measure::clock;
use ironbench_core::{Error, Result};
use pgbench_script::{Program, Variables};
use serde::Deserialize;

use crate::Generator;
use crate::deck::Deck;
use crate::dice::Dice;
use crate::row::Phrase;
use crate::sheet::{Name, Sheet, Slots};
use crate::tpcc::Tpcc;
use deck::Kind;
use inputs::{Constants, Home, Inputs};
use names::Input;

/// Names of the input variables.
pub const VARIABLES: &[&str] = Input::ALL;

/// A think time is at most this many times its mean.
const LONGEST_THINK: f64 = 10.0;

/// Time that terminals have worked before the trial, so that they do not all start at once.
/// A cycle takes 21 s on average.
const WORKED_S: f64 = 100.0;

/// Separates random numbers that are drawn for the same terminal.
#[derive(Clone, Copy)]
enum Purpose {
    Constants = 451,
    Deck,
    Inputs,
    Pace,
}

/// Options in the plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The generator of the loaded data.
    pub data: Generator,
    /// Whether a terminal works for its own warehouse; otherwise for a random one in each transaction.
    pub home: bool,
    /// Whether terminals wait for the standard's keying and think times.
    #[serde(default)]
    pub paced: bool,
    /// Whether prices are stored as integer cents.
    #[serde(default)]
    pub hundredths: bool,
}

/// The terminals of one trial.
pub struct Terminals {
    tpcc: Tpcc,
    options: Options,
    constants: Constants,
    part: Part,
    seed: u64,
}

impl Terminals {
    /// Creates the terminals of this part.
    ///
    /// # Errors
    /// Input: the options are invalid.
    pub fn new(options: Options, part: Part, seed: u64) -> Result<Self> {
        let Generator::Tpcc(tpcc) = options.data.clone() else {
            return Err(Error::input("data of the terminals", "are not data of tpcc"));
        };
        let constants = Constants::drawn(&mut Dice::new(seed, Purpose::Constants as u64, 0), tpcc.c_load);
        Ok(Self { tpcc, options, constants, part, seed })
    }

    fn home(&self, terminal: u64) -> Home {
        if self.options.home {
            Home::of(terminal, self.part.all_clients as u64, self.tpcc.warehouses)
        } else {
            Home::ANY
        }
    }
}

/// Returns the index of each type's script.
fn scripts(program: &Program) -> [Option<usize>; Kind::ALL.len()] {
    let known = |kind: Kind| program.scripts.iter().position(|script| script.name == kind.name() && script.weight > 0);
    Kind::ALL.map(known)
}

impl Jobs for Terminals {
    fn name(&self) -> &'static str {
        "delivery"
    }

    fn variables(&self) -> &'static [&'static str] {
        VARIABLES
    }

    fn waiting_clients(&self) -> usize {
        0
    }

    fn paces(&self) -> bool {
        self.options.paced
    }

    fn check(&self, program: &Program) -> Result<()> {
        if scripts(program).iter().all(Option::is_none) {
            return Err(Error::input("scripts", "no script is a transaction of TPC-C"));
        }
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        Box::new(Terminal::new(self, program, self.part.first_client + client))
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
}

/// One terminal.
struct Terminal {
    scripts: [Option<usize>; Kind::ALL.len()],
    slots: Slots,
    hundredths: bool,
    deck: Deck<Kind>,
    inputs: Inputs,
    phrase: Phrase,
    /// Draws the times that the terminal waits.
    pace: Dice,
    /// The card drawn for the next transaction.
    drawn: Option<Kind>,
    /// The last transaction.
    last: Option<Kind>,
    /// Whether the current transaction is to be rolled back.
    rolled_back: bool,
}

impl Terminal {
    fn new(terminals: &Terminals, program: &Program, terminal: usize) -> Self {
        let Terminals { tpcc, options, constants, seed, .. } = terminals;
        let place = terminal as u64;
        let dice = |purpose: Purpose| Dice::new(*seed, purpose as u64, place);
        let scripts = scripts(program);
        // If some transactions are missing, the others keep their proportions.
        let kinds = Kind::ALL.into_iter().filter(|kind| scripts[*kind as usize].is_some());
        Self {
            scripts,
            slots: Slots::of::<Input>(program),
            hundredths: options.hundredths,
            deck: Deck::new(kinds.map(|kind| (kind, kind.cards())), dice(Purpose::Deck)),
            inputs: Inputs::new(tpcc.warehouses, *constants, terminals.home(place), dice(Purpose::Inputs)),
            phrase: Phrase::default(),
            pace: dice(Purpose::Pace),
            drawn: None,
            last: None,
            rolled_back: false,
        }
    }

    fn think_s(&mut self, after: Kind) -> f64 {
        let mean_s = after.mean_think_s();
        (-mean_s * self.share().ln()).min(LONGEST_THINK * mean_s)
    }

    /// Draws from (0, 1].
    fn share(&mut self) -> f64 {
        const STEPS: u64 = 1 << 53;
        (self.pace.below(STEPS) + 1) as f64 / STEPS as f64
    }
}

impl Role for Terminal {
    fn line(&self) -> Option<usize> {
        None
    }

    fn rest_ns(&mut self) -> u64 {
        let mut rest_s = if self.last.is_none() { -WORKED_S } else { 0.0 };
        loop {
            let next = self.deck.draw();
            rest_s += self.last.map_or(0.0, |last| self.think_s(last)) + next.keying_s();
            self.drawn = Some(next);
            if rest_s > 0.0 {
                return clock::from_seconds(rest_s);
            }
            self.last = Some(next);
        }
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let kind = self.drawn.take().unwrap_or_else(|| self.deck.draw());
        let Self { slots, inputs, phrase, hundredths, .. } = self;
        let sheet = &mut Sheet { slots, variables, phrase, hundredths: *hundredths };
        self.rolled_back = false;
        match kind {
            Kind::NewOrder => self.rolled_back = inputs.new_order(sheet),
            Kind::Payment => inputs.payment(sheet),
            Kind::OrderStatus => inputs.order_status(sheet),
            Kind::Delivery => {
                let (warehouse, carrier) = inputs.delivery();
                sheet.number(Input::WId, warehouse as i64);
                sheet.number(Input::Carrier, carrier);
            }
            Kind::StockLevel => inputs.stock_level(sheet),
        }
        self.last = Some(kind);
        let script = self.scripts[kind as usize].expect("the deck has no card without a script");
        Next::Job { script, due: now }
    }

    fn ended(&mut self, _: &mut Variables, _: bool) -> bool {
        self.rolled_back
    }
}
