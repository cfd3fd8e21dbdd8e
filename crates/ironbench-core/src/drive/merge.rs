//! Merges the outcomes of several drives that loaded one system together.
//!
//! Counts are added and histograms are merged bucket by bucket. Percentiles are computed only from merged histograms.
//! Seconds are counted from the common start, so no duration is computed from the clocks of two machines.

use std::collections::BTreeMap;

use super::outcome::{Columns, Outcome, response_columns};
use super::summary::{ScriptSummary, StatementSummary, Summary};
use crate::measure::Histogram;
use crate::measure::clients::pooled;
use crate::measure::seconds::{MergeableSecond, Second};
use crate::{Error, Result};

/// Merges the outcomes of several parts. Outcomes are merged as they arrive, because the histograms of a thousand
/// outcomes do not fit in memory. The result contains no samples of the machines.
///
/// # Errors
/// Input: there is no outcome, or an outcome does not come from a part. Errors of `parts` are returned unchanged.
pub fn merged(parts: impl IntoIterator<Item = Result<Outcome>>) -> Result<Outcome> {
    let bad = |cause: &str| Error::input("results of workers", cause.to_owned());
    let (mut whole, mut seconds, mut lateness) = (None::<Outcome>, Vec::new(), Histogram::new());
    for part in parts {
        let mut part = part?;
        let kept = part.mergeable.take().ok_or_else(|| bad("one result does not come from a worker"))?;
        lateness.merge(&kept.lateness);
        seconds.push(kept.seconds);
        match &mut whole {
            None => whole = Some(part),
            Some(sum) => add(sum, part),
        }
    }
    let mut sum = whole.ok_or_else(|| bad("there are no results"))?;
    sum.samples.clear();
    response_columns(&mut sum.seconds, &merged_seconds(&seconds)?);
    sum.summary.set_lateness(&lateness);
    Ok(sum)
}

fn add(sum: &mut Outcome, part: Outcome) {
    add_columns(&mut sum.timeline, &part.timeline);
    add_columns(&mut sum.seconds, &part.seconds);
    for (name, histogram) in &part.histograms {
        sum.histograms.entry(name.clone()).or_default().merge(histogram);
    }
    sum.summary.add(part.summary);
}

fn merged_seconds(kept: &[Vec<MergeableSecond>]) -> Result<Vec<Second>> {
    let longest = kept.iter().map(Vec::len).max().unwrap_or(0);
    let second = |number: usize| {
        let mut response = Histogram::new();
        let (mut failed, mut first_committed, mut width_ns) = (0, 0, 0);
        for passed in kept.iter().filter_map(|seconds| seconds.get(number)) {
            response.add_pairs(&passed.pairs)?;
            failed += passed.failed;
            first_committed += passed.first_committed;
            width_ns = width_ns.max(passed.width_ns);
        }
        Ok(Second::new(&response, failed, first_committed, width_ns))
    };
    // Each thread merges a range of the seconds. A thousand drives of half a minute have thirty
    // thousand histograms.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(longest.max(1));
    let share = |thread: usize| (longest * thread / threads..longest * (thread + 1) / threads).map(second);
    std::thread::scope(|scope| {
        let working: Vec<_> = (0..threads).map(|thread| scope.spawn(move || share(thread).collect())).collect();
        let parts: Vec<Result<Vec<Second>>> =
            working.into_iter().map(|one| one.join().expect("adding up does not panic")).collect();
        parts.into_iter().collect::<Result<Vec<_>>>().map(|each| each.concat())
    })
}

/// Adds the counts row by row. The times of the rows are taken from the longer table.
fn add_columns(sum: &mut Columns, other: &Columns) {
    for (name, values) in other {
        let column = sum.entry(name.clone()).or_default();
        let known = column.len();
        if name != "t_s" {
            column.iter_mut().zip(values).for_each(|(total, value)| *total += value);
        }
        column.extend_from_slice(values.get(known..).unwrap_or_default());
    }
}

/// Merges the counts of the sources of jobs. If a name ends in `_max`, the result is the maximum, otherwise the sum.
fn add_figures(sum: &mut BTreeMap<String, f64>, other: BTreeMap<String, f64>) {
    for (name, value) in other {
        let is_most = name.ends_with("_max");
        let figure = sum.entry(name).or_default();
        *figure = if is_most { figure.max(value) } else { *figure + value };
    }
}

fn add_counts(sum: &mut BTreeMap<String, u64>, other: BTreeMap<String, u64>) {
    for (name, count) in other {
        *sum.entry(name).or_default() += count;
    }
}

impl Summary {
    fn add(&mut self, other: Self) {
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
        self.transactions += other.transactions;
        self.scheduled += other.scheduled;
        add_counts(&mut self.errors, other.errors);
        for (code, message) in other.error_messages {
            self.error_messages.entry(code).or_insert(message);
        }
        self.failed += other.failed;
        self.retries += other.retries;
        self.retried += other.retried;
        self.not_started += other.not_started;
        self.unfinished += other.unfinished;
        self.unfinished_s += other.unfinished_s;
        self.due = self.due.zip(other.due).map(|(ours, theirs)| ours + theirs);
        self.longest_wait_s = self.longest_wait_s.max(other.longest_wait_s);
        self.censored += other.censored;
        self.cut_off += other.cut_off;
        self.cut_off_s += other.cut_off_s;
        self.loop_wait_s += other.loop_wait_s;
        self.receive_rearms += other.receive_rearms;
        self.carried_s += other.carried_s;
        self.commits += other.commits;
        self.refused_changes += other.refused_changes;
        self.completed += other.completed;
        self.server_commits_uncertain += other.server_commits_uncertain;
        self.reconnects += other.reconnects;
        self.reconnects_s += other.reconnects_s;
        self.reconnects_cpu_s += other.reconnects_cpu_s;
        self.connections_lost += other.connections_lost;
        self.clients_lost += other.clients_lost;
        if self.loss_cause.is_empty() {
            self.loss_cause = other.loss_cause;
        }
        self.per_client = self.per_client.zip(other.per_client).map(|(ours, theirs)| ours.plus(theirs));
        self.scripts.iter_mut().zip(other.scripts).for_each(|(script, more)| script.add(more));
        for more in other.statements {
            match self.statements.iter_mut().find(|statement| statement.is_of(&more)) {
                Some(statement) => statement.add(&more),
                None => self.statements.push(more),
            }
        }
        self.client_cpu_s.user += other.client_cpu_s.user;
        self.client_cpu_s.system += other.client_cpu_s.system;
        let cpu_s = self.client_cpu_s.user + self.client_cpu_s.system;
        self.client_cpu_per_transaction_s = (self.transactions > 0).then(|| cpu_s / self.transactions as f64);
        if self.io != other.io {
            self.io = format!("{}, {}", self.io, other.io);
        }
        self.cut_short |= other.cut_short;
        if other.aborted && !self.aborted {
            (self.aborted, self.cause) = (true, other.cause);
        }
        self.stopped_on_error |= other.stopped_on_error;
        self.started_unix_s = self.started_unix_s.min(other.started_unix_s);
        self.observer_cpu_s += other.observer_cpu_s;
        self.samples_dropped += other.samples_dropped;
        self.samples_missed += other.samples_missed;
        self.observer_notes.extend(other.observer_notes);
        self.observer_backend_pids.extend(other.observer_backend_pids);
        self.observer_connections += other.observer_connections;
        self.observer_commits += other.observer_commits;
        self.observer_commits_uncertain += other.observer_commits_uncertain;
        self.threads += other.threads;
        self.clients += other.clients;
        self.waiting_clients += other.waiting_clients;
        add_figures(&mut self.figures, other.figures);
    }
}

impl ScriptSummary {
    fn add(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.failed += other.failed;
        self.retries += other.retries;
        self.retried += other.retried;
        self.rolled_back += other.rolled_back;
        self.completed += other.completed;
        self.rolled_back_in_all += other.rolled_back_in_all;
        self.failed_in_all += other.failed_in_all;
        if self.first_failure.is_empty() {
            self.first_failure = other.first_failure;
        }
    }
}

impl StatementSummary {
    fn is_of(&self, other: &Self) -> bool {
        (&self.script, self.line, self.command) == (&other.script, other.line, other.command)
    }

    fn add(&mut self, other: &Self) {
        if self.count + other.count == 0 {
            return;
        }
        let values = |of: &Self| (of.count as f64, of.mean_s, of.stdev_s);
        (self.mean_s, self.stdev_s) = pooled(values(self), values(other));
        self.count += other.count;
        self.failed += other.failed;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drive::outcome::Mergeable;
    use crate::drive::summary::CpuSeconds;

    /// Returns the outcome of one drive. `seconds` contains the response times of each second.
    fn outcome(seconds: &[Vec<u64>]) -> Outcome {
        let of = |values: &[u64]| {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            histogram
        };
        let all = of(&seconds.concat());
        let counts: Vec<f64> = seconds.iter().map(|second| second.len() as f64).collect();
        let times: Vec<f64> = (0..seconds.len()).map(|number| number as f64).collect();
        let columns =
            || BTreeMap::from([("t_s".to_owned(), times.clone()), ("transactions".to_owned(), counts.clone())]);
        let rows: Vec<_> = seconds.iter().map(|values| Second::new(&of(values), 1, 0, 7)).collect();
        let mut by_second = columns();
        response_columns(&mut by_second, &rows);
        let kept = |values: &Vec<u64>| {
            let pairs = of(values).to_pairs();
            MergeableSecond { pairs, failed: 1, first_committed: 0, width_ns: 7 }
        };
        Outcome {
            summary: Summary {
                transactions: all.count(),
                client_cpu_s: CpuSeconds { user: 1.0, system: 0.5 },
                ..serde_json::from_str(EMPTY).unwrap()
            },
            timeline: columns(),
            seconds: by_second,
            histograms: BTreeMap::from([("response_time".to_owned(), all)]),
            samples: BTreeMap::new(),
            mergeable: Some(Mergeable { seconds: seconds.iter().map(kept).collect(), lateness: of(&seconds.concat()) }),
        }
    }

    const EMPTY: &str = r#"{"elapsed_s": 2.0, "warmup_s": 0.0, "transactions": 0, "errors": {"40001": 1},
        "error_messages": {}, "failed": 1, "retries": 0, "retried": 0, "not_started": 0, "unfinished": 0,
        "unfinished_s": 0.0, "carried_s": 0.0, "commits": 0, "completed": 0, "server_commits_uncertain": 0,
        "scripts": [], "statements": [], "client_cpu_s": {"user": 0.0, "system": 0.0},
        "client_cpu_per_transaction_s": null, "lateness_mean_s": 0.0, "lateness_p99_s": 0.0, "lateness_max_s": 0.0,
        "io": "null", "cut_short": false, "aborted": false, "cause": "", "stopped_on_error": false,
        "started_unix_s": 5.0, "observer_cpu_s": 0.0, "samples_dropped": 0, "samples_missed": 0,
        "observer_notes": [], "observer_backend_pids": [], "threads": 1, "clients": 3}"#;

    fn times() -> impl Strategy<Value = Vec<Vec<u64>>> {
        prop::collection::vec(prop::collection::vec(1u64..10_000_000_000, 0..30), 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn merging_parts_equals_one_drive_with_all_response_times(parts in prop::collection::vec(times(), 1..6)) {
            let longest = parts.iter().map(Vec::len).max().unwrap();
            let second = |number: usize| parts.iter().filter_map(|part| part.get(number)).flatten().copied().collect();
            let whole: Vec<Vec<u64>> = (0..longest).map(second).collect();
            let one = outcome(&whole);
            let serialized = |part: &Vec<Vec<u64>>| Outcome::from_bytes(&outcome(part).to_bytes());
            let sum = merged(parts.iter().map(serialized)).unwrap();
            prop_assert_eq!(sum.histograms["response_time"].buckets(), one.histograms["response_time"].buckets());
            prop_assert_eq!(&sum.timeline, &one.timeline);
            // The values are compared as text, because percentiles of an empty second are NaN.
            prop_assert_eq!(format!("{:?}", sum.seconds), format!("{:?}", one.seconds));
            prop_assert_eq!(sum.summary.transactions, one.summary.transactions);
            let lateness = &one.mergeable.as_ref().unwrap().lateness;
            let p99_s = if lateness.count() > 0 { lateness.quantile_s(0.99) } else { 0.0 };
            prop_assert_eq!(sum.summary.lateness_p99_s, p99_s);
            prop_assert_eq!(sum.summary.clients, 3 * parts.len());
            prop_assert_eq!(sum.summary.errors["40001"], parts.len() as u64);
            prop_assert!((sum.summary.client_cpu_s.user - parts.len() as f64).abs() < 1e-9);
        }
    }

    #[test]
    fn the_cause_is_that_of_the_first_aborted_drive() {
        let mut late = outcome(&[vec![1]]);
        (late.summary.aborted, late.summary.cause) = (true, "the server went away".to_owned());
        let sum = merged([Ok(outcome(&[vec![1]])), Ok(late)]).unwrap();
        assert!(sum.summary.aborted && sum.summary.cause == "the server went away");
    }

    #[test]
    fn figures_are_added_and_maxima_stay_maxima() {
        let of = |orders: f64, queue: f64| {
            let mut one = outcome(&[vec![1]]);
            let figures = [("market_pending_trades", orders), ("market_queue_max", queue)];
            one.summary.figures = figures.map(|(name, value)| (name.to_owned(), value)).into();
            one.summary.waiting_clients = 2;
            Ok(one)
        };
        let sum = merged([of(3.0, 7.0), of(4.0, 5.0)]).unwrap().summary;
        assert_eq!((sum.figures["market_pending_trades"], sum.figures["market_queue_max"]), (7.0, 7.0));
        assert_eq!(sum.waiting_clients, 4);
    }

    #[test]
    fn variances_of_statements_are_pooled() {
        let row = |mean_s, stdev_s| StatementSummary {
            script: "a".to_owned(),
            line: 1,
            command: 1,
            text: String::new(),
            count: 2,
            failed: 1,
            mean_s,
            stdev_s,
        };
        let mut sum = row(1.0, 0.0);
        sum.add(&row(3.0, 0.0));
        assert_eq!((sum.count, sum.failed, sum.mean_s, sum.stdev_s), (4, 2, 2.0, 1.0));
    }
}
