//! Counters of a driving thread since its clients connected. The counters only grow. To get the counts of a window,
//! subtract the tally at its start from the tally at its end.

use std::collections::BTreeMap;

use super::Histogram;
use super::buckets::Buckets;
use super::clock::SECOND;
use super::cpu::CpuTime;
use super::directory::Answers;

/// Counts of one kind of transaction. With scripts, each script is a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Retries after serialization failures and deadlocks.
    pub retries: u64,
    /// Transactions, successful or failed, that were retried at least once.
    pub retried: u64,
    /// Number of `transactions` that were rolled back on purpose.
    pub rolled_back: u64,
    /// Number of `transactions` that were run by clients that wait for jobs and follow no schedule.
    pub unscheduled: u64,
}

impl Counts {
    pub fn plus(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            failed: self.failed + other.failed,
            retries: self.retries + other.retries,
            retried: self.retried + other.retried,
            rolled_back: self.rolled_back + other.rolled_back,
            unscheduled: self.unscheduled + other.unscheduled,
        }
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            transactions: self.transactions - earlier.transactions,
            failed: self.failed - earlier.failed,
            retries: self.retries - earlier.retries,
            retried: self.retried - earlier.retried,
            rolled_back: self.rolled_back - earlier.rolled_back,
            unscheduled: self.unscheduled - earlier.unscheduled,
        }
    }
}

/// Counts the connections that clients reopened between transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reconnects {
    pub count: u64,
    /// Total time that clients waited for their new connections, from the end of a transaction.
    pub sum_ns: u64,
    /// CPU time of the threads that opened the connections.
    pub cpu: CpuTime,
}

impl Reconnects {
    pub fn plus(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum_ns: self.sum_ns + other.sum_ns, cpu: self.cpu.plus(other.cpu) }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count - earlier.count,
            sum_ns: self.sum_ns - earlier.sum_ns,
            cpu: self.cpu.since(earlier.cpu),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    pub kinds: Vec<Counts>,
    /// Commits by the engine. A script of three statements without BEGIN commits three times.
    pub commits: u64,
    /// Changes that a directory refused. The directory itself counts them as completed.
    pub refused_changes: u64,
    pub directory: Answers,
    /// Number of errors of each class. The class is the engine's error code, such as an SQLSTATE, or ironbench's own
    /// class. Errors of retried attempts are included.
    pub errors: BTreeMap<String, u64>,
    /// The first message of each class of error. The message contains the place of the error.
    pub messages: BTreeMap<String, String>,
    /// For each kind, the message of the first failed transaction.
    pub failures: Vec<Option<String>>,
    /// The message of the first error after which a retry could not have succeeded.
    pub lasting: Option<String>,
    /// Reply times of each command of the program. Empty unless each statement is timed.
    pub reply_times: Vec<ReplyTimes>,
    pub reconnects: Reconnects,
    /// Number of connections that broke or were ended by the server, without ending the trial.
    pub connections_lost: u64,
    /// Histograms of the same reply times as in `reply_times`, or None while the window is not open.
    answers: Option<Vec<Buckets>>,
}

/// Reply times of one command.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReplyTimes {
    pub count: u64,
    /// Replies that reported an error.
    pub failed: u64,
    pub sum_ns: u64,
    /// Sum of the squared times, in ns².
    pub squares: f64,
}

impl ReplyTimes {
    pub fn mean_s(&self) -> f64 {
        self.sum_ns as f64 / self.count as f64 / SECOND as f64
    }

    /// Returns the standard deviation in seconds.
    pub fn stdev_s(&self) -> f64 {
        let mean = self.sum_ns as f64 / self.count as f64;
        (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt() / SECOND as f64
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            failed: self.failed + other.failed,
            sum_ns: self.sum_ns + other.sum_ns,
            squares: self.squares + other.squares,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count - earlier.count,
            failed: self.failed - earlier.failed,
            sum_ns: self.sum_ns - earlier.sum_ns,
            squares: self.squares - earlier.squares,
        }
    }
}

impl Tally {
    pub fn new(kinds: usize) -> Self {
        Self { kinds: vec![Counts::default(); kinds], failures: vec![None; kinds], ..Self::default() }
    }

    /// Counts an error. `words` formats its message. Only the first message of each class is kept.
    pub fn error(&mut self, class: &str, words: impl FnOnce() -> String) {
        match self.errors.get_mut(class) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(class.to_owned(), 1);
                self.messages.insert(class.to_owned(), words());
            }
        }
    }

    /// Counts the error that made a transaction of `kind` fail. `retryable` is true if a retry could have succeeded.
    pub fn failure(&mut self, kind: usize, class: &str, retryable: bool, words: impl Fn() -> String) {
        self.error(class, &words);
        if self.failures[kind].is_none() {
            self.failures[kind] = Some(words());
        }
        if !retryable && self.lasting.is_none() {
            self.lasting = Some(words());
        }
    }

    /// Counts the reply to a command, which took `ns`.
    pub fn record_reply_time(&mut self, command: usize, ns: u64, failed: bool) {
        if command >= self.reply_times.len() {
            self.reply_times.resize(command + 1, ReplyTimes::default());
        }
        let times = &mut self.reply_times[command];
        times.count += 1;
        times.failed += u64::from(failed);
        times.sum_ns += ns;
        times.squares += ns as f64 * ns as f64;
        if let Some(answers) = &mut self.answers {
            if command >= answers.len() {
                answers.resize_with(command + 1, Buckets::default);
            }
            answers[command].record(ns);
        }
    }

    /// Starts to record histograms of reply times.
    pub fn start_reply_times(&mut self) {
        self.answers = Some(Vec::new());
    }

    /// Stops recording histograms of reply times. Returns the histogram of each command.
    pub fn take_reply_times(&mut self) -> Vec<Histogram> {
        self.answers.take().unwrap_or_default().iter_mut().map(Buckets::take).collect()
    }

    pub fn total(&self) -> Counts {
        self.kinds.iter().fold(Counts::default(), |sum, kind| sum.plus(*kind))
    }

    pub fn merge(&mut self, other: &Self) {
        self.kinds.resize(self.kinds.len().max(other.kinds.len()), Counts::default());
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            *mine = mine.plus(*theirs);
        }
        self.failures.resize(self.kinds.len(), None);
        for (mine, theirs) in self.failures.iter_mut().zip(&other.failures) {
            *mine = mine.take().or_else(|| theirs.clone());
        }
        self.lasting = self.lasting.take().or_else(|| other.lasting.clone());
        self.reply_times.resize(self.reply_times.len().max(other.reply_times.len()), ReplyTimes::default());
        for (mine, theirs) in self.reply_times.iter_mut().zip(&other.reply_times) {
            *mine = mine.plus(*theirs);
        }
        self.commits += other.commits;
        self.refused_changes += other.refused_changes;
        self.directory = self.directory.plus(other.directory);
        self.reconnects = self.reconnects.plus(other.reconnects);
        self.connections_lost += other.connections_lost;
        for (class, count) in &other.errors {
            *self.errors.entry(class.clone()).or_default() += count;
        }
        for (class, message) in &other.messages {
            self.messages.entry(class.clone()).or_insert_with(|| message.clone());
        }
    }

    /// Pauses recording histograms of reply times. Returns the values recorded so far.
    pub fn pause_reply_times(&mut self) -> Option<Vec<Buckets>> {
        self.answers.take()
    }

    /// Resumes recording histograms of reply times. `kept` contains the values recorded before the pause.
    pub fn resume_reply_times(&mut self, kept: Option<Vec<Buckets>>) {
        self.answers = kept;
    }

    /// Returns the counts since `earlier`, an older state of the same tally.
    pub fn since(&self, earlier: &Self) -> Self {
        let errors = self.errors.iter().filter_map(|(class, &count)| {
            let new = count - earlier.errors.get(class).copied().unwrap_or(0);
            (new > 0).then(|| (class.clone(), new))
        });
        let errors: BTreeMap<_, _> = errors.collect();
        let messages = self.messages.iter().filter(|(class, _)| errors.contains_key(*class));
        let times = |(command, now): (usize, &ReplyTimes)| {
            now.since(earlier.reply_times.get(command).copied().unwrap_or_default())
        };
        Self {
            kinds: self.kinds.iter().zip(&earlier.kinds).map(|(now, then)| now.since(*then)).collect(),
            failures: self.failures.clone(),
            lasting: self.lasting.clone(),
            reply_times: self.reply_times.iter().enumerate().map(times).collect(),
            answers: None,
            commits: self.commits - earlier.commits,
            refused_changes: self.refused_changes - earlier.refused_changes,
            directory: self.directory.since(earlier.directory),
            reconnects: self.reconnects.since(earlier.reconnects),
            connections_lost: self.connections_lost - earlier.connections_lost,
            messages: messages.map(|(class, message)| (class.clone(), message.clone())).collect(),
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_difference_of_two_states() {
        let mut tally = Tally::new(2);
        tally.kinds[0].transactions = 5;
        tally.error("40001", || "first".into());
        let before = tally.clone();
        tally.kinds[1].transactions = 3;
        tally.kinds[1].unscheduled = 1;
        tally.refused_changes = 2;
        tally.directory.search(0);
        tally.directory.search(3);
        tally.reconnects = Reconnects { count: 1, sum_ns: 5, cpu: CpuTime::default() };
        tally.connections_lost = 4;
        tally.error("40001", || "second".into());
        tally.failure(1, "42P01", false, || "no table".into());
        let window = tally.since(&before);
        assert_eq!((window.total().transactions, window.total().unscheduled), (3, 1));
        assert_eq!(window.errors, BTreeMap::from([("40001".into(), 1), ("42P01".into(), 1)]));
        assert_eq!((window.reconnects, window.refused_changes), (tally.reconnects, 2));
        assert_eq!(window.connections_lost, 4);
        let directory = window.directory;
        assert_eq!((directory.searches, directory.empty_searches, directory.entries), (2, 1, 3));
        assert_eq!(window.messages["40001"], "first");
        let mut sum = before;
        sum.merge(&window);
        assert_eq!(sum, tally);
    }

    #[test]
    fn the_times_of_a_command_are_those_of_the_window_alone() {
        let mut tally = Tally::new(1);
        tally.record_reply_time(2, 1_000_000_000, true);
        let before = tally.clone();
        tally.start_reply_times();
        for ns in [1_000, 3_000] {
            tally.record_reply_time(2, ns, false);
        }
        let answers: Vec<_> = tally.take_reply_times().iter().map(Histogram::count).collect();
        assert_eq!(answers, [0, 0, 2]);
        assert!(tally.take_reply_times().is_empty());
        let times = tally.since(&before).reply_times[2];
        assert_eq!((times.count, times.failed, times.sum_ns), (2, 0, 4_000));
        assert!((times.mean_s() - 2e-6).abs() < 1e-12);
        let mut sum = before;
        sum.merge(&tally.since(&sum));
        assert_eq!(sum.reply_times[2].count, 3);
    }
}
