//! When the scheduler's switches are recorded.
//!
//! A switch with its stack costs about ten microseconds. If there are too many switches, they are therefore recorded
//! only in windows of time. Each window represents the time since the previous window. At the start of a window, the
//! stacks at which the threads wait are unknown. The first part of the window serves to learn them and does not count.
//!
//! Transactions take longer while switches are recorded, so fewer transactions end in a window than in an equally long
//! time outside. The waits for events (sleeps, I/O, messages) of a transaction are not shorter because of that. These
//! waits are therefore multiplied by the number of transactions that a window represents, and not by the time. Waits
//! for a CPU depend on how busy the CPUs are, and are multiplied by the time.

use crate::progress::Progress;
use crate::timeline::Windows;

/// Maximum rate, in bytes per second for each CPU, at which all switches are recorded. This rate corresponds to about
/// 2,500 switches, which cost 3% of the CPU time.
const MOST_PER_CPU: f64 = 22e6;
/// Minimum fraction of the time in which switches are recorded. If the fraction reaches the next constant, all switches
/// are recorded.
const LEAST: f64 = 0.05;
const ALL: f64 = 0.8;
/// Maximum length of a window in nanoseconds. The next constant is the minimum.
const LONGEST_NS: f64 = 100e6;
const SHORTEST_NS: f64 = 10e6;
/// Fraction of a window that serves to learn the stacks and does not count.
const LEARNING: f64 = 0.2;
/// Fraction of a ring buffer that the records of a window may fill.
const FILLED: f64 = 0.6;
/// Minimum number of transactions in all windows. With fewer transactions, their number in the windows is too uncertain,
/// and all waits are multiplied by the time.
const LEAST_TRANSACTIONS: f64 = 100.0;

/// What to do with the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Record,
    Pause,
}

/// Selects the windows.
pub struct Duty {
    cpus: f64,
    /// Size of a CPU's ring in bytes.
    capacity: f64,
    is_on: bool,
    /// Whether switches are recorded only in windows.
    by_windows: bool,
    /// Start of the current window or pause. The next field is its end.
    since: u64,
    until: u64,
    /// Number of recorded bytes per second. The next field is the number of bytes recorded before `since`.
    rate: f64,
    bytes: usize,
    random: u64,
}

impl Duty {
    /// `bytes` is the number of bytes recorded before `now`.
    pub fn new(cpus: usize, capacity: usize, now: u64, bytes: usize) -> Self {
        let (cpus, capacity) = (cpus.max(1) as f64, capacity as f64);
        // The number of switches is still unknown, so the first window is short.
        let until = now + SHORTEST_NS as u64;
        Self { cpus, capacity, is_on: true, by_windows: true, since: now, until, rate: 0.0, bytes, random: now | 1 }
    }

    /// Whether a window is being recorded whose end is already known.
    pub fn is_in_window(&self) -> bool {
        self.is_on && self.by_windows
    }

    /// Returns the time at which `next` must be called.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Starts a pause if the current window is over, or a window if the current pause is over. Returns None if nothing
    /// changes. `bytes` is the number of bytes recorded so far.
    pub fn next(&mut self, bytes: usize, now: u64) -> Option<Change> {
        if now < self.until {
            return None;
        }
        if !self.is_on {
            (self.is_on, self.since, self.until) = (true, now, now + self.window() as u64);
            return Some(Change::Record);
        }
        let rate = (bytes - self.bytes) as f64 * 1e9 / (now - self.since).max(1) as f64;
        self.rate = if self.rate == 0.0 { rate } else { f64::midpoint(self.rate, rate) };
        self.bytes = bytes;
        let share = (self.cpus * MOST_PER_CPU / self.rate.max(1.0)).max(LEAST);
        let length = (now - self.since) as f64;
        (self.since, self.by_windows) = (now, share < ALL);
        if !self.by_windows {
            self.until = now + LONGEST_NS as u64;
            return None;
        }
        self.is_on = false;
        // The length is random, because pauses of constant length could be in step with the workload.
        let pause = length * (1.0 / share - 1.0) * (0.5 + self.random());
        self.until = now + pause as u64;
        Some(Change::Pause)
    }

    /// Returns the length of the first part of the next window, which does not count.
    pub fn learning(&self) -> u64 {
        (LEARNING * self.window()) as u64
    }

    fn window(&self) -> f64 {
        let fills = self.capacity * FILLED * 1e9 / (self.rate / self.cpus).max(1.0);
        fills.clamp(SHORTEST_NS, LONGEST_NS)
    }

    /// Returns a number between 0 and 1 (Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The counted parts of the windows in which switches were recorded.
#[derive(Default)]
pub struct Traced {
    /// Start and end of each window. The end of the current window is `u64::MAX`.
    windows: Vec<(u64, u64)>,
}

impl Traced {
    /// Starts a window. `learning` is the length of its first part, which does not count.
    pub fn start(&mut self, time: u64, learning: u64) {
        self.windows.push((time + learning, u64::MAX));
    }

    /// Ends the current window, if there is one.
    pub fn end(&mut self, time: u64) {
        if let Some(last) = self.windows.last_mut().filter(|last| last.1 == u64::MAX) {
            last.1 = time.max(last.0);
        }
    }

    /// Returns the part of a wait that lies in the last window. Returns None if the wait does not overlap the window.
    pub fn counted(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let &(from, until) = self.windows.last()?;
        let (start, end) = (start.max(from), end.min(until));
        (start < end).then_some((start, end))
    }

    /// Returns the factor by which the waits at a time are multiplied. The factor is above 1, because these waits also
    /// represent the time since the previous window.
    pub fn weight(&self, time: u64) -> f64 {
        let place = self.windows.partition_point(|&(_, end)| end <= time).min(self.windows.len().saturating_sub(1));
        let Some(&(start, end)) = self.windows.get(place) else { return 1.0 };
        let before = if place == 0 { start } else { self.windows[place - 1].1 };
        if end > start { (end - before) as f64 / (end - start) as f64 } else { 1.0 }
    }

    /// Returns a further factor for waits for a CPU. The windows overlap the measured times by chance, so the weighted
    /// windows do not represent exactly the length of the measured times. The factor corrects this.
    pub fn time_factor(&self, measured: &Windows) -> f64 {
        let sums = self.sums(measured, |start, end| (end - start) as f64);
        if sums.represented > 0.0 { sums.measured / sums.represented } else { 1.0 }
    }

    /// Returns the same factor for waits for an event. It corrects the number of transactions instead of the time.
    pub fn blocked_factor(&self, measured: &Windows, progress: &Progress) -> f64 {
        let sums = self.sums(measured, |start, end| progress.between(start, end));
        if sums.seen < LEAST_TRANSACTIONS { self.time_factor(measured) } else { sums.measured / sums.represented }
    }

    /// Adds up an amount over time.
    fn sums(&self, measured: &Windows, amount: impl Fn(u64, u64) -> f64) -> Sums {
        let common = |start: u64, end: u64| -> f64 {
            let parts = measured.iter().map(|&(from, until)| (start.max(from), end.min(until)));
            parts.filter(|(start, end)| start < end).map(|(start, end)| amount(start, end)).sum()
        };
        let seen = |&(start, end): &(u64, u64)| common(start, end);
        Sums {
            measured: measured.iter().map(|&(start, end)| amount(start, end)).sum(),
            seen: self.windows.iter().map(seen).sum(),
            represented: self.windows.iter().map(|window| seen(window) * self.weight(window.0)).sum(),
        }
    }
}

/// An amount, such as time or transactions, in three kinds of periods.
struct Sums {
    /// In the measured times.
    measured: f64,
    /// In the common parts of the windows and the measured times. The next field is the same amount with the weights of
    /// the windows.
    seen: f64,
    represented: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Returns the fraction of the time in which switches are recorded on two CPUs. `rate` is in megabytes per second.
    fn recorded(rate: usize) -> f64 {
        let mut duty = Duty::new(2, 32 << 20, 0, 0);
        let (mut is_on, mut on, mut bytes) = (true, 0, 0);
        for ms in 1..=60_000 {
            if is_on {
                (on, bytes) = (on + 1, bytes + rate * 1000);
            }
            is_on = match duty.next(bytes, ms * MS) {
                Some(Change::Record) => true,
                Some(Change::Pause) => false,
                None => is_on,
            };
        }
        f64::from(on) / 60_000.0
    }

    #[test]
    fn all_switches_are_recorded_up_to_a_rate_and_a_bounded_number_beyond() {
        assert!((recorded(44) - 1.0).abs() < 1e-9);
        assert!((recorded(440) * 440.0 / 44.0 - 1.0).abs() < 0.15);
        assert!((recorded(44_000) / LEAST - 1.0).abs() < 0.15);
    }

    #[test]
    fn the_records_of_a_window_fit_into_the_ring() {
        let mut duty = Duty::new(2, 1 << 20, 0, 0);
        duty.next(4 << 20, 100 * MS);
        assert!((duty.window() - 0.6 * 100e6 / 2.0).abs() < 1e3);
    }

    #[test]
    fn each_window_represents_the_time_since_the_previous_one() {
        let mut traced = Traced::default();
        traced.start(0, 0);
        traced.end(100 * MS);
        traced.start(480 * MS, 20 * MS);
        traced.end(600 * MS);
        assert_eq!(traced.counted(490 * MS, 510 * MS), Some((500 * MS, 510 * MS)));
        assert_eq!(traced.counted(490 * MS, 499 * MS), None);
        assert!((traced.weight(50 * MS) - 1.0).abs() < 1e-9);
        assert!((traced.weight(550 * MS) - 5.0).abs() < 1e-9);
        assert!((traced.time_factor(&[(0, 600 * MS)]) - 1.0).abs() < 1e-9);
        assert!((traced.time_factor(&[(0, 500 * MS)]) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn waits_for_events_follow_the_transactions_and_not_the_time() {
        let (mut traced, mut progress) = (Traced::default(), Progress::default());
        let mut completed = 0;
        for second in 0..10_u64 {
            let start = second * 1000 * MS;
            progress.note(start, completed);
            progress.note(start + 900 * MS, completed + 900);
            traced.start(start + 900 * MS, 20 * MS);
            // Transactions take twice as long in the window.
            completed += 950;
            progress.note(start + 1000 * MS, completed);
            traced.end(start + 1000 * MS);
        }
        let measured = [(0, 10_000 * MS)];
        let (by_time, by_transactions) = (traced.time_factor(&measured), traced.blocked_factor(&measured, &progress));
        // 40 of the 9,500 transactions end in the counted part of each window.
        let weighted: f64 = (0..10).map(|second| 40.0 * traced.weight((second * 1000 + 950) * MS)).sum();
        assert!((weighted * by_transactions / 9500.0 - 1.0).abs() < 1e-9);
        assert!((by_transactions / by_time - 1.9).abs() < 1e-9);
        assert!((traced.blocked_factor(&measured, &Progress::default()) - by_time).abs() < 1e-9);
    }

    #[test]
    fn a_profile_without_pauses_counts_everything_once() {
        let mut traced = Traced::default();
        traced.start(5, 0);
        assert_eq!(traced.counted(7, 9), Some((7, 9)));
        traced.end(100);
        assert!((traced.weight(50) - 1.0).abs() < 1e-9 && (traced.time_factor(&[(10, 20)]) - 1.0).abs() < 1e-9);
    }
}
