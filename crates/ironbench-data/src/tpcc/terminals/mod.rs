//! The terminals of a trial. Each terminal draws its transactions, with their inputs, from its own deck of cards.
//!
//! With the standard's pacing, a terminal waits for a keying time before each transaction and for a think time after
//! it. With deferred deliveries, a terminal only queues a Delivery, and additional clients carry it out.

mod deck;
mod inputs;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use ironbench_core::drive::jobs::{Jobs, LAG_QUEUE, Next, Role};
use ironbench_core::drive::plan::Part;
use ironbench_core::measure::clock;
use ironbench_core::{Error, Result};
use pgbench_script::{Program, Variables};
use serde::Deserialize;

use crate::Generator;
use crate::deck::Deck;
use crate::input_variables::{InputVariables, Name, Slots};
use crate::row::TextBuffer;
use crate::row_rng::RowRng;
use crate::tpcc::{DISTRICTS, Tpcc};
use deck::Kind;
use inputs::{Constants, Home, Inputs};
use names::Input;

/// Names of the input variables.
pub const VARIABLES: &[&str] = Input::ALL;

/// Maximum think time, as a multiple of the mean.
const LONGEST_THINK: f64 = 10.0;

/// Simulated time for which the terminals have worked before the trial. Because of it, they start at different points
/// of their cycle, which takes 21 s on average.
const WORKED_S: f64 = 100.0;

/// Interval at which a client checks whether a terminal of another thread has queued a Delivery.
const POLL_NS: u64 = 5_000_000;

/// Uses of random numbers. For the same terminal, different uses draw independent numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Constants = 451,
    Deck,
    Inputs,
    Pace,
}

/// Options of the terminals, as given in the plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The generator of the loaded data.
    pub data: Generator,
    /// Whether a terminal works for its own warehouse, rather than for a random one in each transaction.
    pub home: bool,
    /// Whether terminals wait for the standard's keying and think times.
    #[serde(default)]
    pub paced: bool,
    /// Total number of clients over all parts that carry out deferred deliveries. With 0, each terminal carries out its
    /// own deliveries.
    #[serde(default)]
    pub delivery_clients: usize,
    /// Whether prices are stored as integer cents.
    #[serde(default)]
    pub hundredths: bool,
}

/// A Delivery that a terminal has queued.
struct QueuedDelivery {
    warehouse: u64,
    carrier: i64,
    since: u64,
}

/// Queued deliveries of this part. `longest` is the maximum number of deliveries that were queued at the same time.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<QueuedDelivery>,
    longest: usize,
}

/// The terminals of one trial.
pub struct Terminals {
    tpcc: Tpcc,
    options: Options,
    constants: Constants,
    clients: usize,
    part: Part,
    seed: u64,
    queue: Mutex<Queue>,
    /// Total number of districts, over all deliveries, in which a Delivery found no order.
    skipped: AtomicU64,
}

impl Terminals {
    /// Creates the terminals of this part, which has `clients` clients.
    ///
    /// # Errors
    /// Input: the options are invalid.
    pub fn new(options: Options, clients: usize, part: Part, seed: u64) -> Result<Self> {
        let Generator::Tpcc(tpcc) = options.data.clone() else {
            return Err(Error::input("data of the terminals", "are not data of tpcc"));
        };
        let constants = Constants::drawn(&mut RowRng::new(seed, Purpose::Constants as u64, 0), tpcc.c_load);
        let (queue, skipped) = Default::default();
        Ok(Self { tpcc, options, constants, clients, part, seed, queue, skipped })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no thread panics while it holds the queue")
    }

    fn defers(&self) -> bool {
        self.options.delivery_clients > 0
    }

    fn home(&self, terminal: u64) -> Home {
        if self.options.home {
            Home::of(terminal, self.part.all_clients as u64, self.tpcc.warehouses)
        } else {
            Home::ANY
        }
    }
}

/// Name of the script of a terminal that queues a Delivery.
const REQUEST: &str = "delivery-request";

fn script(program: &Program, name: &str) -> Option<usize> {
    program.scripts.iter().position(|script| script.name == name && script.weight > 0)
}

/// Returns the index of the script for each type of transaction. Returns None for a type without a script.
fn scripts(program: &Program) -> [Option<usize>; Kind::ALL.len()] {
    Kind::ALL.map(|kind| script(program, kind.name()))
}

impl Jobs for Terminals {
    fn name(&self) -> &'static str {
        "delivery"
    }

    fn variables(&self) -> &'static [&'static str] {
        VARIABLES
    }

    /// Returns the number of delivery clients of this part. Each part has an equal share of them, but at least one,
    /// because clients of other parts cannot carry out its deliveries.
    fn waiting_clients(&self) -> usize {
        let (all, Part { number, of, .. }) = (self.options.delivery_clients, self.part);
        if all == 0 { 0 } else { (all * (number + 1) / of - all * number / of).max(1) }
    }

    fn paces(&self) -> bool {
        self.options.paced
    }

    fn check(&self, program: &Program) -> Result<()> {
        if scripts(program).iter().all(Option::is_none) {
            return Err(Error::input("scripts", "no script is a transaction of TPC-C"));
        }
        if self.defers() && (script(program, REQUEST).is_none() || script(program, Kind::Delivery.name()).is_none()) {
            return Err(Error::input("scripts", format!("deferred deliveries need {REQUEST} and delivery")));
        }
        Ok(())
    }

    fn role<'a>(&'a self, program: &Program, client: usize) -> Box<dyn Role + 'a> {
        if client < self.clients {
            Box::new(Terminal::new(self, program, self.part.first_client + client))
        } else {
            Box::new(Deliverer::new(self, program))
        }
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::from([("skipped_districts".to_owned(), self.skipped.load(Relaxed) as f64)]);
        if self.defers() {
            let queue = self.queue();
            figures.insert("delivery_queue_max".to_owned(), queue.longest as f64);
            figures.insert("deliveries_left".to_owned(), queue.waiting.len() as f64);
        }
        figures
    }
}

/// One terminal.
struct Terminal<'a> {
    terminals: &'a Terminals,
    scripts: [Option<usize>; Kind::ALL.len()],
    slots: Slots,
    deck: Deck<Kind>,
    inputs: Inputs,
    buffer: TextBuffer,
    /// Source of the random times that the terminal waits.
    pace: RowRng,
    /// The card drawn for the next transaction.
    drawn: Option<Kind>,
    /// The type of the last transaction.
    last: Option<Kind>,
    /// Whether the current transaction is to be rolled back.
    rolled_back: bool,
    /// The Delivery that the current transaction queues.
    queues: Option<QueuedDelivery>,
}

impl<'a> Terminal<'a> {
    fn new(terminals: &'a Terminals, program: &Program, terminal: usize) -> Self {
        let Terminals { tpcc, constants, seed, .. } = terminals;
        let place = terminal as u64;
        let rng = |purpose: Purpose| RowRng::new(*seed, purpose as u64, place);
        let mut scripts = scripts(program);
        if terminals.defers() {
            scripts[Kind::Delivery as usize] = script(program, REQUEST);
        }
        // If some types of transaction have no script, the others keep their proportions.
        let kinds = Kind::ALL.into_iter().filter(|kind| scripts[*kind as usize].is_some());
        Self {
            terminals,
            scripts,
            slots: Slots::of::<Input>(program),
            deck: Deck::new(kinds.map(|kind| (kind, kind.cards())), rng(Purpose::Deck)),
            inputs: Inputs::new(tpcc.warehouses, *constants, terminals.home(place), rng(Purpose::Inputs)),
            buffer: TextBuffer::default(),
            pace: rng(Purpose::Pace),
            drawn: None,
            last: None,
            rolled_back: false,
            queues: None,
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

impl Role for Terminal<'_> {
    fn job_queue(&self) -> Option<usize> {
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
        let Self { terminals, slots, inputs, buffer, .. } = self;
        let vars = &mut InputVariables { slots, variables, buffer, hundredths: terminals.options.hundredths };
        self.rolled_back = false;
        match kind {
            Kind::NewOrder => self.rolled_back = inputs.new_order(vars),
            Kind::Payment => inputs.payment(vars),
            Kind::OrderStatus => inputs.order_status(vars),
            Kind::Delivery => {
                let (warehouse, carrier) = inputs.delivery();
                if terminals.defers() {
                    self.queues = Some(QueuedDelivery { warehouse, carrier, since: now });
                } else {
                    deliver(vars, warehouse, carrier);
                }
            }
            Kind::StockLevel => inputs.stock_level(vars),
        }
        self.last = Some(kind);
        let script = self.scripts[kind as usize].expect("the deck has no card without a script");
        Next::Job { script, due: now }
    }

    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool {
        if let Some(queued) = self.queues.take() {
            let mut queue = self.terminals.queue();
            queue.waiting.push_back(queued);
            queue.longest = queue.longest.max(queue.waiting.len());
        } else if self.last == Some(Kind::Delivery) && well {
            let Self { terminals, slots, buffer, .. } = self;
            count_skipped(terminals, &InputVariables { slots, variables, buffer, hundredths: false });
        }
        self.rolled_back
    }
}

/// A client that carries out deferred deliveries.
struct Deliverer<'a> {
    terminals: &'a Terminals,
    script: usize,
    slots: Slots,
    buffer: TextBuffer,
}

impl<'a> Deliverer<'a> {
    fn new(terminals: &'a Terminals, program: &Program) -> Self {
        let script = script(program, Kind::Delivery.name()).expect("the scripts were checked");
        Self { terminals, script, slots: Slots::of::<Input>(program), buffer: TextBuffer::default() }
    }
}

impl Role for Deliverer<'_> {
    fn job_queue(&self) -> Option<usize> {
        Some(LAG_QUEUE)
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let queued = self.terminals.queue().waiting.pop_front();
        let Some(QueuedDelivery { warehouse, carrier, since }) = queued else { return Next::NotBefore(now + POLL_NS) };
        let Self { slots, buffer, .. } = self;
        deliver(&mut InputVariables { slots, variables, buffer, hundredths: false }, warehouse, carrier);
        Next::Job { script: self.script, due: since }
    }

    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool {
        if well {
            let Self { terminals, slots, buffer, .. } = self;
            count_skipped(terminals, &InputVariables { slots, variables, buffer, hundredths: false });
        }
        false
    }
}

fn deliver(vars: &mut InputVariables, warehouse: u64, carrier: i64) {
    vars.number(Input::WId, warehouse as i64);
    vars.number(Input::Carrier, carrier);
    vars.number(Input::Delivered, 0);
}

/// Counts the districts in which a Delivery found no order.
fn count_skipped(terminals: &Terminals, vars: &InputVariables) {
    if let Some(delivered) = vars.number_after(Input::Delivered) {
        terminals.skipped.fetch_add(DISTRICTS.saturating_sub(delivered as u64), Relaxed);
    }
}
