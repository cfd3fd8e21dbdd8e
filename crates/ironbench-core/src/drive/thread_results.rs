//! Results of the driving threads.

use super::pace;
use super::plan::{Plan, Stop};
use crate::measure::recorder::Recording;
use crate::measure::seconds::{MergeableSecond, Second};
use crate::measure::{Histogram, clock};
use crate::sample::Samples;

/// Work that was unfinished when a thread's window closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnfinishedWork {
    /// Numbers of started transactions of the shared schedule, or None if the worker does not follow the schedule.
    pub scheduled: Option<Scheduled>,
    /// Number of transactions that were due but not started. Transactions of the shared schedule are added only when
    /// all threads have ended.
    pub not_started: u64,
    /// Number of transactions that were started but not finished.
    pub unfinished: u64,
    /// Time that unfinished transactions had taken inside the window, summed over all clients.
    pub unfinished_ns: u64,
    /// Number of transactions that were still unfinished after the drain. The engine may or may not have committed
    /// these transactions.
    pub abandoned: u64,
    /// Number of times that receiving had to be restarted because all receive buffers were in use.
    pub receive_rearms: u64,
}

/// Transactions of the shared schedule that a thread started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Number of transactions that were started before the window closed.
    pub in_time: u64,
    /// Number of all transactions that were started, including those after the window closed.
    pub begun: u64,
}

/// The load that the shared schedule demanded, computed from the schedule itself.
#[derive(Debug, Default)]
pub struct DemandedLoad {
    /// Number of transactions due inside the window, or None for a closed loop.
    pub in_window: Option<u64>,
    /// Waiting times of the due transactions that never started.
    pub never_started: Histogram,
    /// The longest time that a due transaction had waited at the end of the window without starting.
    pub longest_wait_ns: u64,
}

impl UnfinishedWork {
    pub fn plus(self, other: Self) -> Self {
        let both = |a: Scheduled, b: Scheduled| Scheduled { in_time: a.in_time + b.in_time, begun: a.begun + b.begun };
        Self {
            scheduled: match (self.scheduled, other.scheduled) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (one, other) => one.or(other),
            },
            not_started: self.not_started + other.not_started,
            unfinished: self.unfinished + other.unfinished,
            unfinished_ns: self.unfinished_ns + other.unfinished_ns,
            abandoned: self.abandoned + other.abandoned,
            receive_rearms: self.receive_rearms + other.receive_rearms,
        }
    }
}

/// The results of all threads.
pub struct ThreadResults {
    pub recordings: Vec<Recording>,
    pub unfinished: UnfinishedWork,
    pub due: DemandedLoad,
    pub seconds: Vec<Second>,
    /// The seconds of this drive, in a form that can be merged with the seconds of other parts. Empty unless this drive
    /// is a part.
    pub mergeable: Vec<MergeableSecond>,
    pub samples: Samples,
    pub io: String,
    pub started_unix_ns: u64,
    /// Whether the trial was stopped from outside before its end.
    pub cut_short: bool,
    /// Why the trial ended early without being stopped from outside. Empty if it did not.
    pub cause: String,
    /// Whether a failed transaction ended the trial.
    pub by_error: bool,
    /// Number of clients that ended because they lost their connection. `loss_cause` is the cause of the first loss.
    pub clients_lost: usize,
    pub loss_cause: String,
}

impl ThreadResults {
    /// Returns the result of a trial that was stopped before it started.
    pub(super) fn not_started() -> Self {
        Self {
            recordings: Vec::new(),
            unfinished: UnfinishedWork::default(),
            due: DemandedLoad::default(),
            seconds: Vec::new(),
            mergeable: Vec::new(),
            samples: Samples::default(),
            io: String::new(),
            started_unix_ns: clock::unix_now(),
            cut_short: true,
            cause: String::new(),
            by_error: false,
            clients_lost: 0,
            loss_cause: String::new(),
        }
    }

    /// Counts the transactions of the schedule that were due. Also counts those of them that never started.
    /// Transactions start in the order of the schedule, so the transactions that never started are the last ones.
    pub(super) fn count_demanded(&mut self, plan: &Plan, origin: u64, window_start: u64, gave_up: u64) {
        let (Some(mut schedule), Some(scheduled)) = (pace::schedule(plan, origin), self.unfinished.scheduled) else {
            return;
        };
        let elapsed = self.recordings.iter().map(|recording| recording.elapsed_ns).max().unwrap_or(0);
        let end = (window_start + elapsed).min(gave_up);
        // If a trial stops after a number of transactions, the rest of the schedule does not count as due but not
        // started.
        let leaves_out = matches!(plan.stop, Stop::Transactions(_));
        let (mut number, mut in_window) = (0, 0);
        while schedule.due() < end {
            let due = schedule.due();
            in_window += u64::from(due >= window_start);
            if number >= scheduled.in_time && !leaves_out {
                self.unfinished.not_started += 1;
                self.due.longest_wait_ns = self.due.longest_wait_ns.max(end - due);
            }
            if number >= scheduled.begun && due >= window_start && !leaves_out {
                self.due.never_started.record(gave_up - due);
            }
            number += 1;
            schedule.advance();
        }
        self.due.in_window = Some(in_window);
    }
}
