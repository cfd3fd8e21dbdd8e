//! The work of one client. This module chooses the client's next transaction and its inputs, and handles the result of
//! the last transaction.

use std::fmt::Write;

use ironbench_core::drive::jobs::{LAG_QUEUE, Next, Role};
use pgbench_script::{Program, Variables};

use super::deck::Kind;
use super::inputs::{Inputs, Order};
use super::market::{Entry, PendingJob, Work};
use super::names::Input;
use super::{Roles, SECOND, scripts};
use crate::brokerage::Purpose;
use crate::brokerage::market::{Symbol, moment, price_cents};
use crate::input_variables::{InputVariables, Slots};
use crate::row::TextBuffer;
use crate::row_rng::RowRng;

/// Numbers of the queues in which market clients and the maintenance client wait.
const MARKET: usize = LAG_QUEUE;
const MAINTENANCE: usize = MARKET + 1;
/// Interval at which the market checks for work from other threads. An order can be answered late only if its delay is
/// shorter than this interval, which is the case for one order in 200.
const POLL_NS: u64 = 5_000_000;
pub(super) const TABLES: i64 = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    Customer,
    Market,
    Maintenance,
    Everything,
}

/// The current job of a client, with the data that are needed when the job ends.
enum CurrentJob {
    Order(Order, bool),
    Market { due: PendingJob, price_cents: i64 },
    Other,
}

pub(super) struct ClientRole<'a> {
    roles: &'a Roles,
    kind_of_client: ClientKind,
    scripts: [Option<usize>; Kind::ALL.len()],
    slots: Slots,
    inputs: Inputs<'a>,
    buffer: TextBuffer,
    list: String,
    /// Number of Data-Maintenance transactions so far.
    maintained: u64,
    current_job: CurrentJob,
}

impl<'a> ClientRole<'a> {
    pub(super) fn new(roles: &'a Roles, program: &Program, client: usize) -> Self {
        let rng = RowRng::new(roles.seed, Purpose::Inputs as u64, roles.client_number(client));
        Self {
            roles,
            kind_of_client: roles.kind_of_client(client),
            scripts: scripts(program),
            slots: Slots::of::<Input>(program),
            inputs: Inputs::new(&roles.brokerage, &roles.activity, rng),
            buffer: TextBuffer::default(),
            list: String::new(),
            maintained: 0,
            current_job: CurrentJob::Other,
        }
    }

    fn script(&self, kind: Kind) -> usize {
        self.scripts[kind as usize].expect("no kind is chosen that has no script")
    }

    fn customer(&mut self, at: u64, variables: &mut Variables) -> usize {
        let Self { roles, slots, inputs, buffer, .. } = self;
        let deck = roles.deck.get().expect("the scripts were checked");
        let kind = deck.lock().expect("no thread panics while it draws").draw();
        let vars = &mut InputVariables { slots, variables, buffer, hundredths: roles.options.hundredths };
        match kind {
            Kind::BrokerVolume => inputs.broker_volume(vars),
            Kind::CustomerPosition => inputs.customer_position(vars),
            Kind::MarketWatch => inputs.market_watch(vars),
            Kind::SecurityDetail => inputs.security_detail(vars),
            Kind::TradeLookup => inputs.trade_lookup(vars),
            Kind::TradeOrder => {
                let trade = roles.trade();
                let (order, roll_back) = inputs.trade_order(trade, roles.times(at), vars);
                self.current_job = CurrentJob::Order(order, roll_back);
            }
            Kind::TradeStatus => inputs.trade_status(vars),
            Kind::TradeUpdate => inputs.trade_update(vars),
            Kind::DataMaintenance | Kind::MarketFeed | Kind::TradeResult => unreachable!("the deck has no such card"),
        }
        self.script(kind)
    }

    fn answer(&mut self, due: PendingJob, at: u64, variables: &mut Variables) -> usize {
        let Self { roles, slots, buffer, list, .. } = self;
        let vars = &mut InputVariables { slots, variables, buffer, hundredths: roles.options.hundredths };
        vars.moment(Input::NowTime, moment(roles.times(at).now_ms));
        let (kind, price_cents) = match &due.work {
            Work::Result { trade, security, .. } => {
                let price_cents = price_cents(*security, roles.curve.ms(at));
                vars.number(Input::TradeId, *trade);
                vars.cents(Input::Price, price_cents);
                (Kind::TradeResult, price_cents)
            }
            Work::Feed(entries) => {
                write_ticker(list, entries, roles.options.hundredths);
                vars.text(Input::Ticker, list);
                vars.text(Input::Triggered, "");
                (Kind::MarketFeed, 0)
            }
        };
        self.current_job = CurrentJob::Market { due, price_cents };
        self.script(kind)
    }

    /// Returns the time of the next Data-Maintenance. The first one starts after half of the interval.
    fn maintenance_at(&self) -> u64 {
        let pace = self.roles.options.maintenance_s * SECOND as f64;
        (pace * (self.maintained as f64 + 0.5)) as u64
    }

    fn maintain(&mut self, variables: &mut Variables) -> usize {
        let Self { roles, slots, inputs, buffer, .. } = self;
        let vars = &mut InputVariables { slots, variables, buffer, hundredths: roles.options.hundredths };
        inputs.data_maintenance((roles.first_table + self.maintained as i64) % TABLES + 1, vars);
        self.maintained += 1;
        self.script(Kind::DataMaintenance)
    }

    fn maintains(&self) -> bool {
        self.scripts[Kind::DataMaintenance as usize].is_some()
    }

    fn everything(&mut self, at: u64, variables: &mut Variables) -> usize {
        if self.maintains() && self.maintenance_at() <= at {
            return self.maintain(variables);
        }
        let due = self.roles.market().next(at);
        match due {
            Ok(due) => self.answer(due, at, variables),
            Err(_) => self.customer(at, variables),
        }
    }
}

impl Role for ClientRole<'_> {
    fn job_queue(&self) -> Option<usize> {
        match self.kind_of_client {
            ClientKind::Customer | ClientKind::Everything => None,
            ClientKind::Market => Some(MARKET),
            ClientKind::Maintenance => Some(MAINTENANCE),
        }
    }

    fn next(&mut self, now: u64, variables: &mut Variables) -> Next {
        let at = self.roles.clock.step(now);
        let job = |script| Next::Job { script, due: now };
        match self.kind_of_client {
            ClientKind::Customer => job(self.customer(at, variables)),
            ClientKind::Everything => job(self.everything(at, variables)),
            ClientKind::Market => {
                let found = self.roles.market().next(at);
                match found {
                    Ok(due) => {
                        let since = self.roles.clock.start() + due.since;
                        Next::Job { script: self.answer(due, at, variables), due: since }
                    }
                    Err(wake) => Next::NotBefore(now + wake.saturating_sub(at).clamp(1, POLL_NS)),
                }
            }
            ClientKind::Maintenance if !self.maintains() => Next::NotBefore(u64::MAX),
            ClientKind::Maintenance => {
                let due = self.maintenance_at();
                if due > at {
                    return Next::NotBefore(now + (due - at));
                }
                let script = self.maintain(variables);
                Next::Job { script, due: self.roles.clock.start() + due }
            }
        }
    }

    fn ended(&mut self, variables: &mut Variables, well: bool) -> bool {
        let current_job = std::mem::replace(&mut self.current_job, CurrentJob::Other);
        if matches!(current_job, CurrentJob::Other) {
            return false;
        }
        let Self { roles, slots, buffer, .. } = self;
        let mut vars = InputVariables { slots, variables, buffer, hundredths: roles.options.hundredths };
        let at = roles.clock.passed();
        match current_job {
            CurrentJob::Order(order, roll_back) => {
                if well && vars.is_set_or(Input::Placed, !roll_back) {
                    roles.market().place(order, at);
                }
                roll_back
            }
            CurrentJob::Market { due, .. } if !well => {
                roles.market().failed(due, at);
                false
            }
            CurrentJob::Market { due, price_cents } => {
                match due.work {
                    Work::Result { trade, .. } => roles.market().traded(trade, price_cents, at),
                    Work::Feed(entries) if roles.options.no_data => roles.market().met(&entries, at),
                    Work::Feed(_) => roles.market().fed(vars.text_after(Input::Triggered), at),
                }
                false
            }
            CurrentJob::Other => false,
        }
    }
}

/// Writes the ticker as a JSON array of objects.
fn write_ticker(list: &mut String, entries: &[Entry], hundredths: bool) {
    list.clear();
    for (index, Entry { security, price_cents, quantity, .. }) in entries.iter().enumerate() {
        let symbol = Symbol::of(*security);
        let begin = if index == 0 { '[' } else { ',' };
        // Writing to a String cannot fail.
        let _ = write!(list, "{begin}{{\"symbol\":\"{}\",\"price\":", symbol.as_str());
        let _ = match hundredths {
            true => write!(list, "{price_cents}"),
            false => write!(list, "{}.{:02}", price_cents / 100, price_cents % 100),
        };
        let _ = write!(list, ",\"qty\":{quantity}}}");
    }
    list.push(']');
}
